"""Sidecars as they stand in the source, read plainly: whatever is not plain is not used as a witness."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Table", "nearest_number", "plain_number", "read_json", "read_table"]

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_ABSENT = frozenset({"", "n/a", "na", "nan", "none", "null"})


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text: its headers as written, and rows of exactly as many stripped cells."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column(self, name: str) -> tuple[str, ...] | None:
        """The cells below a header, matched in any case; the first one counts. None without it."""
        for position, header in enumerate(self.headers):
            if header.lower() == name:
                return tuple(row[position] for row in self.rows)
        return None


def read_table(path: Path) -> Table | None:
    """The table in a file; None for one that is not UTF-8, has ragged rows or holds control characters."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    if "\0" in text or '"' in text:
        return None
    lines = [line for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line.strip()]
    cells = [tuple(cell.strip() for cell in line.split("\t")) for line in lines]
    if not cells or any(len(row) != len(cells[0]) for row in cells):
        return None
    return Table(cells[0], tuple(cells[1:]))


def plain_number(cell: str) -> tuple[bool, float | None]:
    """Whether the cell is a finite decimal number or a missing one, and the number; a comma makes it neither."""
    text = cell.strip()
    if text.lower() in _ABSENT:
        return True, None
    if _NUMBER.fullmatch(text) is None or not math.isfinite(float(text)):
        return False, None
    return True, float(text)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON sidecar; {} for anything else."""
    try:
        value = json.loads(path.read_bytes().decode("utf-8-sig"))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def nearest_number(sidecars: Sequence[dict[str, Any]], key: str) -> float | None:
    """The number above zero that the last sidecar with one gives for ``key``; they stand from the root to the recording."""
    for sidecar in reversed(sidecars):
        value = sidecar.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0:
            return float(value)
    return None
