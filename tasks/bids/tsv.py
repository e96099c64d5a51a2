"""The one parser of BIDS tables: channels, events, electrodes, participants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasks.bids.cells import rows_have
from tasks.bids.text import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Table", "parse_tsv"]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text cells.

    Parameters
    ----------
    headers
        Unique and not blank, stripped, in file order.
    rows
        One tuple a row, as long as ``headers``. Cells are stripped text as written (``n/a`` stays ``n/a``); a missing
        cell is empty.
    encoding
        As in ``DecodedText``.
    notes
        A sentence for everything that was repaired or left out; empty for a clean file.
    """

    headers: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    encoding: str = "utf-8"
    notes: tuple[str, ...] = ()

    def column(self, name: str) -> tuple[str, ...] | None:
        """The cells under ``name``; None without such a header. An exact match wins, then the first in any case."""
        if name in self.headers:
            index = self.headers.index(name)
        else:
            lowered = [header.lower() for header in self.headers]
            if name.lower() not in lowered:
                return None
            index = lowered.index(name.lower())
        return tuple(row[index] for row in self.rows)


def parse_tsv(data: bytes) -> Table:
    """The table in the bytes of a ``.tsv`` file; whatever they hold, nothing is raised.

    Lines end with LF, CRLF or CR; blank lines are no rows. A cell that starts with a double quote ends at the matching
    one on the same line (``""`` inside is one quote) when that ends the cell; any other quote is text. Short rows are
    filled with empty cells. A column without a header is dropped, and so are cells beyond the last header. Of repeated
    headers all are kept, the later ones prefixed with ``x_`` until they are unique.
    """
    decoded = decode(data)
    notes = list(decoded.notes)
    lines = [line for line in decoded.text.split("\n") if line.strip()]
    if not lines:
        return Table((), (), decoded.encoding, (*notes, "the table is empty"))
    raw_headers = _cells(lines[0])
    kept = [index for index, header in enumerate(raw_headers) if header]
    headers = _unique([raw_headers[index] for index in kept], notes)
    rows: list[tuple[str, ...]] = []
    short = beyond = 0
    width = max((index + 1 for index in kept), default=0)
    contiguous = width == len(kept)
    for line in lines[1:]:
        cells = _cells(line)
        if len(cells) < width:
            short += 1
            cells += [""] * (width - len(cells))
        beyond += len(cells) > width and any(cells[width:])
        rows.append(tuple(cells[:width] if contiguous else (cells[index] for index in kept)))
    if not contiguous:
        notes.append("columns without a header were left out")
    if short:
        notes.append(f"{rows_have(short)} fewer cells than the header")
    if beyond:
        notes.append(f"{rows_have(beyond)} cells beyond the header, which were left out")
    return Table(headers, tuple(rows), decoded.encoding, tuple(notes))


def _unique(headers: Sequence[str], notes: list[str]) -> tuple[str, ...]:
    taken = set(headers)
    seen: set[str] = set()
    unique: list[str] = []
    for header in headers:
        name = header
        if name in seen:
            while name in taken:
                name = f"x_{name}"
            notes.append(f"the header {header} is repeated; a later one is prefixed with x_")
            taken.add(name)
        seen.add(name)
        unique.append(name)
    return tuple(unique)


def _cells(line: str) -> list[str]:
    if '"' not in line:
        return [cell.strip() for cell in line.split("\t")]
    cells: list[str] = []
    start = 0
    while start <= len(line):
        end, cell = _quoted(line, start) if line.startswith('"', start) else (-1, "")
        if end < 0:
            tab = line.find("\t", start)
            end = len(line) if tab < 0 else tab
            cell = line[start:end]
        cells.append(cell.strip())
        start = end + 1
    return cells


def _quoted(line: str, start: int) -> tuple[int, str]:
    """End and content of the quoted cell at ``start``; end -1 when it is not closed before a tab or the line's end."""
    at = start + 1
    while (quote := line.find('"', at)) >= 0:
        if line.startswith('""', quote):
            at = quote + 2
            continue
        if quote + 1 == len(line) or line[quote + 1] == "\t":
            return quote + 1, line[start + 1 : quote].replace('""', '"')
        return -1, ""
    return -1, ""
