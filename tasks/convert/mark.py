"""The mark of one publish in the root of a store, for targets where nothing else tells two publishes apart.

An object store's etag is a hash of the content. A rebuild may change samples and leave the bytes of the root as they were; then
a reader who compares the root before and after his reads would not see that he read parts of two stores.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from contract.layout import ROOT_METADATA
from contract.store import PUBLISH_ID
from tasks.convert.order import ObjectDigest
from tasks.convert.store import edit_attributes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from infra.storage.protocol import Target

__all__ = ["marked"]


def marked(
    target: Target,
    key: str,
    store: Path,
    objects: Mapping[str, ObjectDigest],
    believed: Mapping[str, tuple[str, str]],
    *,
    publish_id: str,
) -> dict[str, ObjectDigest]:
    """Write ``publish_id`` into the root of the store on scratch; the digests with the root's new one.

    A store that is, but for its mark, what stands at the target gets the mark that stands there, so that nothing need be put.
    """
    root = store / ROOT_METADATA
    rest = {name: one.sha256 for name, one in objects.items() if name != ROOT_METADATA}
    if rest == {name: sha256 for name, (sha256, _etag) in believed.items() if name != ROOT_METADATA}:
        live = target.read(f"{key}/{ROOT_METADATA}")
        if live is not None and _unmarked(live.data) == _unmarked(root.read_bytes()):
            root.write_bytes(live.data)
            return _with_root(objects, live.data)
    edit_attributes(store, lambda values: values.update({PUBLISH_ID: publish_id}))
    return _with_root(objects, root.read_bytes())


def _unmarked(document: bytes) -> Any:
    try:
        root = json.loads(document)
        root["attributes"].pop(PUBLISH_ID, None)
    except (ValueError, KeyError, TypeError, AttributeError):
        return document
    return root


def _with_root(objects: Mapping[str, ObjectDigest], root: bytes) -> dict[str, ObjectDigest]:
    return {**objects, ROOT_METADATA: ObjectDigest(len(root), hashlib.sha256(root).hexdigest())}
