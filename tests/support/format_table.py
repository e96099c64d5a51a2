"""The table of docs/formats.md: what came of converting one recording of every kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from format_cases import Case
from reference_signal import ServedSignal

BEGIN, END = "<!-- measured: written by make format-table -->", "<!-- end of measured -->"
_HEAD = (
    "| recording | route | real file | channels | Hz at the source → served | samples → served | largest difference | read by |",
    "|---|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True)
class Group:
    """One channel group as served, and what it should be (served rate, served units)."""

    served: ServedSignal
    wanted: np.ndarray
    source_samples: int


def steps(group: Group) -> float:
    """The largest difference of any sample, in quantisation steps of its channel."""
    off = np.abs(group.served.physical - group.wanted).max(axis=1)
    return float((off / group.served.scale).max())


def rows(case: Case, route: str, groups: Iterable[Group]) -> list[str]:
    """Lines of the table for one case, one a channel group."""
    found = []
    for group in groups:
        channels, samples = group.served.physical.shape
        cells = (
            case.what,
            route.replace("_", " "),
            case.source,
            str(channels),
            f"{group.served.source_rate_hz:g} → {group.served.rate_hz:g}",
            f"{group.source_samples} → {samples}",
            f"{steps(group):.1f} steps",
            case.reader,
        )
        found.append("| " + " | ".join(cells) + " |")
    return found


def rendered(lines: Iterable[str]) -> str:
    """The block of the page, its markers included."""
    return "\n".join((BEGIN, *_HEAD, *lines, END))


def block(page: Path) -> str:
    """The block as it stands in the page."""
    text = page.read_text(encoding="utf-8")
    return text[text.index(BEGIN) : text.index(END) + len(END)]


def write(page: Path, new: str) -> None:
    """Put a new block in the place of the old one."""
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace(block(page), new), encoding="utf-8")
