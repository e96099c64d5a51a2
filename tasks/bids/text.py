"""Bytes of a sidecar as text. Never fails: people's exports come in every encoding."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

__all__ = ["DecodedText", "decode"]


@dataclass(frozen=True, slots=True)
class DecodedText:
    """Text with line feeds only, no byte order mark and no NUL.

    Parameters
    ----------
    encoding
        utf-8, utf-16, cp1252 or latin-1.
    notes
        A sentence for everything that was not plain UTF-8.
    """

    text: str
    encoding: str
    notes: tuple[str, ...] = ()


def decode(data: bytes) -> DecodedText:
    """The text of a sidecar.

    UTF-16 when it starts with that byte order mark and decodes, else UTF-8, else cp1252, else Latin-1, which takes every
    byte; UTF-8's mark is dropped whatever follows it. The micro sign of a single-byte export (0xB5) is the same in the
    last two.
    """
    text, encoding = _decoded(data)
    notes = [] if encoding == "utf-8" else [f"the file is {encoding}, not UTF-8"]
    if "\x00" in text:
        # Postgres refuses NUL in text, and nothing of a table needs it.
        text = text.replace("\x00", "")
        notes.append("NUL characters were left out")
    return DecodedText(text.replace("\r\n", "\n").replace("\r", "\n"), encoding, tuple(notes))


def _decoded(data: bytes) -> tuple[str, str]:
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    data = data.removeprefix(codecs.BOM_UTF8)
    for codec, name in (("utf-16", "utf-16"), ("utf-8", "utf-8"), ("cp1252", "cp1252")):
        if name == "utf-16" and not wide:
            continue
        try:
            return data.decode(codec), name
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1"), "latin-1"
