"""Text files of the demonstration: tables and JSON as BIDS wants them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cli.demo.formats import Signal

__all__ = ["write_channels", "write_electrodes", "write_json", "write_table", "write_text"]


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text, folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write one JSON object, indented, its keys in the order given."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_table(path: Path, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a TSV; None becomes ``n/a``."""
    lines = ["\t".join(columns)]
    lines += ["\t".join("n/a" if cell is None else _cell(cell) for cell in row) for row in rows]
    write_text(path, "\n".join(lines) + "\n")


def _cell(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def write_channels(
    path: Path,
    signal: Signal,
    *,
    units: Sequence[str] | None = None,
    extra: Mapping[str, Sequence[object]] | None = None,
) -> None:
    """Write channels.tsv for ``signal``; ``units`` where they differ from the file's own, ``extra`` for further columns."""
    more = extra or {}
    named = units or [signal.unit.replace("uV", "µV")] * len(signal.labels)
    rows = [
        (label, kind, unit, signal.rate_hz, "good", *(column[i] for column in more.values()))
        for i, (label, kind, unit) in enumerate(zip(signal.labels, signal.types, named, strict=True))
    ]
    write_table(path, ("name", "type", "units", "sampling_frequency", "status", *more), rows)


def write_electrodes(path: Path, signal: Signal, *, sizes_mm2: float | None = None) -> None:
    """Write electrodes.tsv from the positions of ``signal``; rows without a place are left out."""
    if signal.positions is None:
        raise ValueError(f"{path.name}: the signal has no positions")
    columns = ("name", "x", "y", "z") if sizes_mm2 is None else ("name", "x", "y", "z", "size")
    size = () if sizes_mm2 is None else (sizes_mm2,)
    rows = [
        (label, *(f"{value:.1f}" for value in place), *size)
        for label, place in zip(signal.labels, signal.positions, strict=True)
        if not np.isnan(place).any()
    ]
    write_table(path, columns, rows)
