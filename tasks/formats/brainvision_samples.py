"""Sample types of BrainVision files, and a copy of those that its reader refuses or, worse, takes for others.

The reader knows three of the types and no big-endian order, which it would read as noise without a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["SAMPLE_TYPES", "SampleType", "rewritten"]

_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class SampleType:
    """A type of samples in a file: as numpy writes it, what it is copied to, and whether the reader takes it itself."""

    code: str
    copy: str
    is_read: bool

    @property
    def width(self) -> int:
        """Bytes of one sample."""
        return np.dtype(self.code).itemsize

    @property
    def copy_width(self) -> int:
        """Bytes of one sample in a copy."""
        return np.dtype(_CODES[self.copy]).itemsize


_CODES = {"INT_16": "i2", "INT_32": "i4", "IEEE_FLOAT_32": "f4", "UINT_16": "u2", "IEEE_FLOAT_64": "f8"}
_COPIED_AS = {"UINT_16": "INT_32", "IEEE_FLOAT_64": "IEEE_FLOAT_32"}

SAMPLE_TYPES: Mapping[str, SampleType] = MappingProxyType(
    {name: SampleType(code, _COPIED_AS.get(name, name), name not in _COPIED_AS) for name, code in _CODES.items()}
)
"""By the word after ``BinaryFormat=``. Single precision keeps the 16 bits that are served of a double."""


def rewritten(vhdr: Path, samples: Path, work: Path, *, kind: str, big_endian: bool) -> Path:
    """A header in ``work`` and beside it the samples of type ``kind`` as one its reader takes, little-endian."""
    own = SAMPLE_TYPES[kind]
    source, wanted = np.dtype((">" if big_endian else "<") + own.code), np.dtype("<" + _CODES[own.copy])
    copy = work / f"{vhdr.stem}.eeg"
    with samples.open("rb") as file, copy.open("wb") as out:
        while len(part := np.fromfile(file, source, _AT_ONCE)):
            part.astype(wanted).tofile(out)
    text = vhdr.read_bytes()
    for entry, value in (("DataFile", copy.name), ("BinaryFormat", own.copy), ("UseBigEndianOrder", "NO")):
        line = re.compile(rb"(?im)^[ \t]*" + entry.encode() + rb"[ \t]*=[^\r\n]*")
        text = line.sub(lambda _, new=f"{entry}={value}": new.encode(), text)  # type: ignore[misc]  # bound per entry
    header = work / f"{vhdr.stem}.vhdr"
    header.write_bytes(text)
    return header
