"""Names and numbers of VneuroTK's HDF5 recordings, schemas 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

from contract.errors import Refused

__all__ = [
    "CHUNK_TARGET_BYTES",
    "CURRENT_SCHEMA",
    "MAGIC",
    "MOST_NAMES",
    "OLDEST_SCHEMA",
    "Compression",
    "chunk_shape",
    "require_writable_channels",
]

MAGIC: Final = "recording"
"""Value of the root attribute ``vneurotk_format``."""
OLDEST_SCHEMA: Final = 0
CURRENT_SCHEMA: Final = 1
CHUNK_TARGET_BYTES: Final = 1 << 20
MOST_NAMES: Final = 4000
"""Channel names are one attribute, and HDF5 keeps an attribute in 64 KiB: 4,000 names are saved, 4,096 are not."""

_LEVELS = range(10)


@dataclass(frozen=True, slots=True)
class Compression:
    """How samples are compressed: ``gzip`` with a level, ``lzf``, or not at all (None)."""

    filter: str | None = "gzip"
    level: int | None = 4

    @classmethod
    def parse(cls, text: str) -> Self:
        """``gzip`` (level 4), ``gzip-0`` to ``gzip-9``, ``lzf`` or ``none``.

        Raises
        ------
        Refused
            It is none of these.
        """
        name, dash, level = text.strip().lower().partition("-")
        if name == "gzip" and (not dash or (level.isdecimal() and int(level) in _LEVELS)):
            return cls("gzip", int(level) if dash else 4)
        if name in {"lzf", "none"} and not dash:
            return cls(None if name == "none" else name, None)
        raise Refused(f"The compression {text!r} is unknown: gzip, gzip-0 to gzip-9, lzf or none.")

    def options(self) -> dict[str, Any]:
        """Keywords for ``h5py.Group.create_dataset``, beside ``chunks``; bytes are shuffled before they are compressed."""
        if self.filter is None:
            return {}
        return {"compression": self.filter, "compression_opts": self.level, "shuffle": True}


def chunk_shape(shape: tuple[int, ...], itemsize: int, target_bytes: int = CHUNK_TARGET_BYTES) -> tuple[int, ...]:
    """VneuroTK's rule: the whole array, its longest axis halved (rounded up) until a chunk is at most ``target_bytes``."""
    chunk = [max(1, extent) for extent in shape]
    size = itemsize
    for extent in chunk:
        size *= extent
    while size > target_bytes and max(chunk) > 1:
        longest = chunk.index(max(chunk))
        size //= chunk[longest]
        chunk[longest] = -(-chunk[longest] // 2)
        size *= chunk[longest]
    return tuple(chunk)


def require_writable_channels(n_channels: int) -> None:
    """Return when the names of so many channels fit into one attribute.

    Raises
    ------
    Refused
        They do not; found before anything is written.
    """
    if n_channels > MOST_NAMES:
        raise Refused(
            f"{n_channels} channels cannot be named in one VneuroTK file, which holds {MOST_NAMES}; choose fewer channels."
        )
