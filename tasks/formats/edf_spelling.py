"""EDF and BDF headers that are not spelled as the format wants: a copy that the strict reader accepts, and the labels as they were.

The strict reader calls a file corrupt for one accent in a patient's name, a label or a unit, and for a start time with
colons. The samples are sound; the letters are Latin-1 or UTF-8, whatever the recorder's system used.
"""

from __future__ import annotations

import re
import shutil
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Spelling", "decoded", "plain_copy", "spelling_of"]

_PLAIN = bytes(range(32, 127))
_ASCII = {"\u03bc": "u", "°": "deg", "\u03a9": "Ohm", "ß": "ss", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "AE"}
"""After decomposition, which makes one of both micro signs and of both ohm signs."""
_FILE_TEXT = ((8, 80), (88, 80), (192, 44))
"""Patient, recording and reserved in the first 256 bytes: start and width."""
_MOMENTS = ((168, (31, 12, 99), "01.01.85"), (176, (23, 59, 59), "00.00.00"))
"""Start date and time: where, the largest value of each part, and what an unknown one is written as. The format has no
word for unknown; anonymised files hold 00.00.00, letters or colons, which the strict reader refuses."""
_MOMENT = re.compile(rb"(\d\d)\D(\d\d)\D(\d\d)")
_SIGNAL_TEXT = ((0, 16), (16, 80), (96, 8), (136, 80), (224, 32))
"""Label, transducer, unit, prefilter and reserved: where their column starts per signal, and width."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """The header in plain ASCII, and labels in it -> labels of the file, where they differ and the former is nobody else's.

    ``start_unknown`` says that the file's start date or time could not be understood and stands as 1985 or midnight.
    """

    header: bytes
    labels: dict[str, str]
    start_unknown: bool


def decoded(field: bytes) -> str:
    """The text of a field: UTF-8 where it is that, else Latin-1; cut at the first NUL, stripped."""
    field = field.split(b"\0", 1)[0]
    try:
        return field.decode("utf-8").strip()
    except UnicodeDecodeError:
        return field.decode("latin-1").strip()


def spelling_of(head: bytes, block: bytes, count: int) -> Spelling | None:
    """How to spell the header of ``count`` signals in ASCII; None when it is plain already."""
    header = bytearray(head + block)
    fields = [*_FILE_TEXT]
    fields += [(256 + start * count + i * width, width) for start, width in _SIGNAL_TEXT for i in range(count)]
    changed, unknown = _set_moments(header)
    for start, width in fields:
        field = bytes(header[start : start + width])
        if field.translate(None, _PLAIN):
            header[start : start + width] = _ascii(decoded(field)).encode("ascii")[:width].ljust(width)
            changed = True
    if not changed:
        return None
    own = [decoded(block[i * 16 : (i + 1) * 16]) for i in range(count)]
    plain = [header[256 + i * 16 : 256 + (i + 1) * 16].decode("ascii").strip() for i in range(count)]
    labels = {new: old for new, old in zip(plain, own, strict=True) if new != old and plain.count(new) == 1}
    return Spelling(bytes(header), labels, unknown)


def plain_copy(primary: Path, work: Path, header: bytes) -> Path:
    """A copy of the file in ``work`` whose header is ``header``."""
    copy = work / primary.name
    shutil.copyfile(primary, copy)
    with copy.open("r+b") as file:
        file.write(header)
    return copy


def _set_moments(header: bytearray) -> tuple[bool, bool]:
    """Write date and time as the format wants them; whether anything changed, and whether one of them is unknown."""
    before, unknown_parts = bytes(header[168:184]), 0
    for start, largest, unknown in _MOMENTS:
        found = _MOMENT.fullmatch(bytes(header[start : start + 8]))
        parts = tuple(map(int, found.groups())) if found else ()
        least = 1 if start == _MOMENTS[0][0] else 0
        sound = found is not None and all(
            (least if i < 2 else 0) <= part <= most for i, (part, most) in enumerate(zip(parts, largest, strict=True))
        )
        unknown_parts += not sound
        text = ".".join(f"{part:02d}" for part in parts) if sound else unknown
        header[start : start + 8] = text.encode("ascii")
    return bytes(header[168:184]) != before, unknown_parts > 0


def _ascii(text: str) -> str:
    """Letters without their accents, a few signs spelled out, and a question mark for whatever is left."""
    bare = (_ASCII.get(c, c) for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return "".join(c if " " <= c <= "~" else "?" for c in "".join(bare))
