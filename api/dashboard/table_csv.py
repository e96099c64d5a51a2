"""The table of a dataset's recordings as CSV, as long as it is: a part at a time, so that a slow reader holds nothing."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

from contract.times import utc_stamp
from db.recording_table import recording_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from api.service import Service
    from db.dataset_values import Dataset
    from db.recording_table import TableRow, Wanted

__all__ = ["csv_lines"]

_BATCH: Final = 2000
_COLUMNS: Final = (
    "path", "state", "code", "reason", "due", "why", "detail", "last_error", "attempts", "last_attempt_at", "next_attempt_at", "verified",
    "format", "modality", "size_bytes", "zarr",
)  # fmt: skip
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def csv_lines(service: Service, dataset: Dataset, wanted: Wanted) -> Iterator[str]:
    """The lines in parts. What a spreadsheet would take for a formula begins with an apostrophe."""
    yield ",".join(_COLUMNS) + "\n"
    after = ""
    while True:
        with service.reading() as c:
            rows = list(recording_rows(c, dataset=dataset, wanted=wanted, after=after, limit=_BATCH))
        yield _text(rows)
        if len(rows) < _BATCH:
            return
        after = rows[-1].path


def _text(rows: list[TableRow]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([_cell(value) for value in _values(row)] for row in rows)
    return out.getvalue()


def _values(row: TableRow) -> tuple[object, ...]:
    moments = tuple(None if one is None else utc_stamp(one) for one in (row.last_attempt_at, row.next_attempt_at))
    return (
        row.path, row.state, row.code, row.reason, row.due, row.why, row.detail, row.last_error, row.attempts, *moments, row.judged,
        row.format, row.modality, row.size_bytes, row.zarr,
    )  # fmt: skip


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
