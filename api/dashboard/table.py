"""The table of a dataset's recordings as its address asks for it: filters, order, and the part that is shown."""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from api.dashboard.asked import check_word
from api.errors import ApiError
from contract.codes import FailureCode, PendingReason
from db.recording_table import SORTS, TABLE_STATES, TableKey, Wanted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from db.recording_table import TablePage

__all__ = ["ROWS", "STATE_WORDS", "WORDS", "neighbours", "wanted_of", "whole", "written"]

ROWS: Final = 50
STATE_WORDS: Final[Mapping[str, str]] = {
    "served": "served",
    "failed": "failed",
    "pending": "pending",
    "converting": "with a worker",
    "again": "served, and due again",
    "refused": "served, and failed since",
    "verified": "served and verified",
    "mismatched": "served, and other than its source",
    "unverified": "served, not compared yet",
    "gone": "gone from the source",
}
"""The states of the table in words."""
WORDS: Final = (*(one.value for one in FailureCode), *(one.value for one in PendingReason))
_NUMBER: Final = re.compile(r"-?\d{1,18}")
_MOMENT: Final = re.compile(r"-?infinity|[\d:.+ -]{10,40}")
_LONGEST: Final = 6000


def wanted_of(query: Mapping[str, str]) -> Wanted:
    """What an address asks for.

    Raises
    ------
    ApiError
        400 for a word that is none, or a place in the table that cannot be.
    """
    sort = query.get("sort") or "path"
    column = sort.removeprefix("-")
    state, word = query.get("state") or None, query.get("code") or None
    search = (query.get("q") or "").strip() or None
    for name, value, known in (("sort", column, SORTS), ("state", state, TABLE_STATES), ("code", word, WORDS)):
        check_word(name, value, known)
    if search is not None and ("\x00" in search or len(search) > 500):
        raise ApiError(HTTPStatus.BAD_REQUEST, "What is searched for is too long, or no text.")
    return Wanted(
        state=state,
        word=word,
        search=search,
        sort=column,
        descending=sort.startswith("-"),
        after=_key(query.get("after"), column),
        before=_key(query.get("before"), column),
        limit=ROWS,
    )


def _key(given: str | None, sort: str) -> TableKey | None:
    if not given:
        return None
    try:
        value, path = json.loads(base64.urlsafe_b64decode(given[:_LONGEST].encode("ascii")))
    except (ValueError, TypeError, binascii.Error):
        value = path = None
    texts = isinstance(value, str) and isinstance(path, str) and "\x00" not in value + path
    kind = SORTS[sort][1]
    fits = {"text": None, "timestamptz": _MOMENT}.get(kind, _NUMBER)
    if not texts or (fits is not None and not fits.fullmatch(value)) or not _sendable(value + path):
        raise ApiError(HTTPStatus.BAD_REQUEST, "There is no such place in the table; begin at its first part.")
    return TableKey(value=value, path=path)


def _sendable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def written(key: TableKey) -> str:
    """A place in the table as an address holds it."""
    return base64.urlsafe_b64encode(json.dumps([key.value, key.path]).encode()).decode()


def neighbours(page: TablePage) -> tuple[str | None, str | None]:
    """The places before and behind what is shown, as ``before`` and ``after`` of an address; None at the ends."""
    before = written(page.rows[0].key) if page.rows and page.skipped else None
    after = written(page.rows[-1].key) if page.rows and page.has_more else None
    return before, after


def whole(wanted: Wanted) -> Wanted:
    """The same filters, in the order of paths, from the beginning."""
    return replace(wanted, sort="path", descending=False, after=None, before=None)
