"""An index checked an entry at a time: as ``parse`` checks it, without 25,000 entries as models at once (120 MB)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from contract.documents import parse
from contract.errors import Refused
from contract.index import FailureEntry, IndexHead, LocalIndexHead, PendingEntry, StoreEntry

if TYPE_CHECKING:
    from contract.closed import Closed

__all__ = ["check_index"]

_LISTS: tuple[tuple[str, type[Closed], str], ...] = (
    ("stores", StoreEntry, "zarr"),
    ("failures", FailureEntry, "path"),
    ("pending", PendingEntry, "path"),
)
_decoder = json.JSONDecoder()


def check_index(document: bytes, *, local: bool) -> None:
    """Check an index that ``write_index`` has written: schema, counts, order, every path once.

    Parameters
    ----------
    local
        Whether it may name addresses of this machine (``LocalIndex``).

    Raises
    ------
    Refused
        It breaks its contract; the sentence names the first field that does.
    """
    text = document.decode("ascii")
    # no string of JSON holds an unescaped quote, so this is where the lists begin
    head, _, _ = text.partition(',"stores":[')
    at, counts, paths = len(head), {}, set[str]()
    for name, model, key in _LISTS:
        opening = f',"{name}":['
        if not text.startswith(opening, at):
            raise Refused(f"This is no valid index: {name} do not stand where they should.")
        at, counts[name] = _check_list(text, at + len(opening), (name, model, key), paths)
    facts = parse(LocalIndexHead if local else IndexHead, head + text[at:])
    said = {"stores": facts.store_count, "failures": facts.failure_count, "pending": facts.pending_count}
    if counts != said:
        raise Refused(f"This is no valid index: the head counts {said}, but there are {counts}.")


def _check_list(text: str, at: int, listed: tuple[str, type[Closed], str], paths: set[str]) -> tuple[int, int]:
    """Check the list whose first entry begins at ``at``; where it ends, and how many entries it has."""
    name, model, key = listed
    before, count = "", 0
    while not text.startswith("]", at):
        try:
            _value, end = _decoder.raw_decode(text, at)
        except ValueError as error:
            raise Refused("This is no valid index: it is not JSON.", detail=str(error)[:200]) from error
        entry = _checked(model, text[at:end], f"{name}.{count}")
        path, this = (str(getattr(entry, field)) for field in ("path", key))
        if count and before >= this:
            raise Refused(
                f"This is no valid index: {name} are not sorted, or one is there twice: {before!r} stands before {this!r}."
            )
        if path in paths:
            raise Refused(f"This is no valid index: {path!r} is listed twice.")
        paths.add(path)
        before, count = this, count + 1
        at = end + text.startswith(",", end)
    return at + 1, count


def _checked(model: type[Closed], entry: str, where: str) -> Closed:
    try:
        return parse(model, entry)
    except Refused as error:
        raise Refused(f"{where}: {error.sentence}", detail=error.detail) from error
