"""Digests that say whether a store is still true to what it was made from."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from contract import layout
from contract.rates import RATE_CAPS_HZ

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["conversion_options", "options_fingerprint", "pairs_encoding", "source_fingerprint", "state_hash"]


def pairs_encoding(pairs: Iterable[tuple[str, str]]) -> bytes:
    """The pairs, sorted, as bytes from which they could be read back.

    Every text stands behind its length, so that no two sets of pairs give the same bytes: without it ("a", "bc") and
    ("ab", "c") would. Bytes of a name that are no UTF-8 are taken as they are.
    """
    encoded: list[bytes] = []
    for pair in sorted(pairs):
        for text in pair:
            raw = text.encode("utf-8", "surrogateescape")
            encoded.append(b"%d:%b" % (len(raw), raw))
    return b"".join(encoded)


def source_fingerprint(inputs: Mapping[str, str]) -> str:
    """64 hex characters (SHA-256) that change when an input is added, removed, renamed or changed.

    Parameters
    ----------
    inputs
        Path -> content id of every member, companion and sidecar of a recording. Their order does not matter.
    """
    return hashlib.sha256(pairs_encoding(inputs.items())).hexdigest()


def state_hash(pairs: Iterable[tuple[str, str]]) -> str:
    """40 hex characters (BLAKE2b, 20 bytes) that name the state of a dataset without commits.

    Parameters
    ----------
    pairs
        (path, content id) of every file that decides something published. Their order does not matter.
    """
    return hashlib.blake2b(pairs_encoding(pairs), digest_size=20, person=b"zarrmill tree").hexdigest()


def conversion_options() -> dict[str, object]:
    """Everything of ours besides source, engine and biosigIO that decides the bytes of a store, as JSON values."""
    return {
        "revision": layout.CONVERSION_REVISION,
        "chunk_seconds": layout.CHUNK_SECONDS,
        "shard_seconds": layout.SHARD_SECONDS,
        "view_chunk_columns": layout.VIEW_CHUNK_COLUMNS,
        "view_downsample": layout.VIEW_DOWNSAMPLE,
        "signal_dtype": layout.SIGNAL_DTYPE,
        "rate_caps_hz": dict(RATE_CAPS_HZ),
    }


def options_fingerprint(options: Mapping[str, object] | None = None) -> str:
    """64 hex characters (SHA-256) that change when an option of the conversion changes.

    Parameters
    ----------
    options
        JSON values; ``conversion_options()`` when None.
    """
    options = conversion_options() if options is None else options
    return hashlib.sha256(json.dumps(options, sort_keys=True, allow_nan=False).encode("ascii")).hexdigest()
