"""What stores say of their dataset, brought up to date without touching a signal: only each root ``zarr.json`` is written."""

from __future__ import annotations

import hashlib
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from contract.documents import CONTENT_TYPE
from contract.errors import PreconditionFailed, PublishError
from contract.layout import store_key, store_url
from db import leases, store_objects, stores

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Engine

    from db.dataset_values import Dataset
    from db.runs import Run
    from infra.storage.protocol import Target

__all__ = ["ROOT", "Rewritten", "edited_root", "rewrite_roots"]

_log = logging.getLogger("zarrmill.publish")

ROOT: Final = "zarr.json"
_BATCH: Final = 200
_SIDE_BY_SIDE: Final = 16  # each is a small read and a small write: a matter of waiting, not of work


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """Stores whose root was written, those that said it already, and paths of those that could not be brought up to date."""

    written: int
    current: int
    failed: tuple[str, ...]


def edited_root(root: bytes, edit: Callable[[dict[str, Any]], None]) -> bytes:
    """A root ``zarr.json`` with its attributes edited, in the bytes that a conversion would write.

    Raises
    ------
    ValueError
        It is no such document, or the edit put NaN or infinity into it.
    """
    document = json.loads(root)
    if not isinstance(document, dict) or not isinstance(document.get("attributes"), dict):
        raise ValueError("it is no group's zarr.json")  # noqa: TRY004 - what is wrong is what stands in the file
    edit(document["attributes"])
    return json.dumps(document, indent=2, allow_nan=False).encode()


def rewrite_roots(engine: Engine, target: Target, run: Run, dataset: Dataset) -> Rewritten:
    """Make every published store state the dataset's present facts and address; safe to stop and to repeat.

    Provenance of the store itself, such as the state of the source that it was made from, stays as it is.

    Raises
    ------
    LostLease
        Another run has taken over; asked before every 200 stores.
    """
    base = target.addresses(dataset.dataset_id).contract_base
    facts = dataset.facts
    said = {"doi": facts.doi, "license": facts.license, "citation": facts.citation, "hed_version": facts.hed_version}
    with engine.connect() as c:
        zarrs = [zarr for zarr, _entry in stores.entries(c, dataset=dataset)]

    def one(zarr: str) -> tuple[bytes, str] | None:
        """The root as it stands now and its etag, when it was written; None when it said all this already."""

        def edit(attributes: dict[str, Any]) -> None:
            attributes["nemar"] = {**attributes.get("nemar", {}), **said, "contract_url": store_url(base, zarr)}

        return _replace(target, f"{store_key(dataset.dataset_id, zarr)}/{ROOT}", lambda root: edited_root(root, edit))

    written = current = 0
    failed: list[str] = []
    with ThreadPoolExecutor(_SIDE_BY_SIDE, thread_name_prefix="zarrmill-roots") as pool:
        for start in range(0, len(zarrs), _BATCH):
            batch = zarrs[start : start + _BATCH]
            with engine.begin() as c:
                leases.renew(c, run=run)
            new: dict[str, tuple[int, str, str]] = {}
            for zarr, future in [(zarr, pool.submit(one, zarr)) for zarr in batch]:
                try:
                    done = future.result()
                except (OSError, ValueError, PublishError) as error:
                    _log.warning("the root of %s could not be brought up to date: %s", zarr, error)
                    failed.append(zarr)
                    continue
                if done is None:
                    current += 1
                else:
                    written += 1
                    root, etag = done
                    new[zarr] = (len(root), hashlib.sha256(root).hexdigest(), etag)
            with engine.begin() as c:
                leases.renew(c, run=run)
                store_objects.note_object(c, dataset=dataset, name=ROOT, objects=new)
    return Rewritten(written=written, current=current, failed=tuple(failed))


def _replace(target: Target, key: str, edit: Callable[[bytes], bytes]) -> tuple[bytes, str] | None:
    """Edit a small object; over a newer version of it once more. None when the edit changes nothing."""
    for last in (False, True):
        live = target.read(key)
        if live is None:
            raise FileNotFoundError(f"{key} is gone")
        wanted = edit(live.data)
        if json.loads(wanted) == json.loads(live.data):
            return None
        try:
            return wanted, target.put(key, wanted, content_type=CONTENT_TYPE, if_match=live.etag)
        except PreconditionFailed:
            if last:
                raise
    raise AssertionError("the second try returns or raises")
