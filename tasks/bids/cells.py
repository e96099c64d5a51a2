"""What the cells of a BIDS table mean: missing values, and numbers as people and spreadsheets write them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Numbers", "filled", "number", "numbers", "rows_have"]

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_COMMA = re.compile(r"([+-]?[0-9]*),([0-9]+)(?:[eE][+-]?[0-9]+)?")
_NO_NUMBER = frozenset({"", "n/a", "na", "nan", "none", "null"})
"""How a number that is missing is written, in lower case."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of numbers.

    Parameters
    ----------
    values
        Finite, or None where the cell is missing or no number.
    strange
        Cells that say something which is no number.
    decimal_comma
        Whether the comma of the cells was read as a decimal one.
    """

    values: tuple[float | None, ...]
    strange: int = 0
    decimal_comma: bool = False


def rows_have(count: int) -> str:
    """``1 row has``, ``2 rows have``."""
    return "1 row has" if count == 1 else f"{count} rows have"


def filled(cell: str) -> str | None:
    """The text of a cell; None for a blank one and for ``n/a`` in any case."""
    text = cell.strip()
    return None if not text or text.lower() == "n/a" else text


def number(cell: str) -> float | None:
    """A finite decimal number; ``1,5``, ``1_000``, ``nan`` and ``inf`` are none."""
    text = cell.strip()
    if _NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def numbers(*columns: Sequence[str]) -> tuple[Numbers, ...]:
    """Columns of one file as numbers.

    A comma is a decimal one only where nothing speaks against it: every number of all columns has one or is whole, none
    has a point, and at least one cannot mean thousands (``0,5``, ``1,25``; but ``1,234`` can). Otherwise a cell with a
    comma is no number, because half a file in one reading is worse than a gap.
    """
    commas = _has_decimal_comma(cell.strip() for column in columns for cell in column)
    return tuple(_column(column, commas=commas) for column in columns)


def _has_decimal_comma(cells: Iterable[str]) -> bool:
    seen = sure = False
    for cell in cells:
        found = _COMMA.fullmatch(cell)
        if found is not None:
            seen = True
            sure = sure or len(found[2]) != 3 or found[1].lstrip("+-") in {"", "0"}
        elif "." in cell and _NUMBER.fullmatch(cell) is not None:
            return False
    return seen and sure


def _column(cells: Sequence[str], *, commas: bool) -> Numbers:
    values: list[float | None] = []
    strange = 0
    used = False
    for cell in cells:
        text = cell.strip()
        if commas and _COMMA.fullmatch(text) is not None:
            text = text.replace(",", ".")
            used = True
        value = number(text)
        strange += value is None and text.lower() not in _NO_NUMBER
        values.append(value)
    return Numbers(tuple(values), strange, used)
