"""Whether the data records of an EDF+ or BDF+ file follow each other without a gap.

Each data record of such a file begins its first annotation signal with its own onset, ``+567.25 0x14 0x14``
(Kemp and Olivan, "European data format plus", section 2.2.4). Readers that join the records anyway shift everything
after a gap.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["RecordLayout", "largest_gap_s"]

_ONSET = re.compile(rb"\A([+-]\d{1,12}(?:\.(\d{0,9}))?)\x14")
_ONSET_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLayout:
    """Where the onsets of a file stand.

    Parameters
    ----------
    start, record_bytes, onset_at
        Bytes: of the first data record in the file, of one record, and of the annotation signal in its record.
    n_records
        Data records that hold samples.
    record_s, record_slack_s
        Duration of one record, and how far its text can be from the truth.
    sample_s
        Duration of one sample of the fastest channel.
    """

    start: int
    record_bytes: int
    onset_at: int
    n_records: int
    record_s: float
    record_slack_s: float
    sample_s: float


def largest_gap_s(path: Path, layout: RecordLayout) -> float:
    """Seconds of the largest step between two data records that is not a record's length; 0.0 when there is none.

    Records stand in the order of time, so a last onset that is where it must be proves that there is no gap: two short
    reads. Only a file whose last onset is elsewhere is walked through, because a slow drift of the recorder's clock adds
    up to as much and is no gap anywhere. A file whose onsets cannot be read is not judged.
    """
    if layout.n_records < 2:
        return 0.0
    with path.open("rb") as file:

        def onset(record: int) -> tuple[float, float] | None:
            file.seek(layout.start + record * layout.record_bytes + layout.onset_at)
            found = _ONSET.match(file.read(_ONSET_BYTES))
            return None if found is None else (float(found.group(1)), 10.0 ** -len(found.group(2) or b""))

        first, last = onset(0), onset(layout.n_records - 1)
        if first is None or last is None:
            return 0.0
        slack = layout.sample_s + (first[1] + last[1] if first[1] < 1 or last[1] < 1 else 0.0)
        steps = layout.n_records - 1
        if abs(last[0] - first[0] - steps * layout.record_s) <= slack + steps * layout.record_slack_s:
            return 0.0
        largest, before = 0.0, first[0]
        for record in range(1, layout.n_records):
            found = onset(record)
            if found is None:
                return 0.0
            largest = max(largest, abs(found[0] - before - layout.record_s))
            before = found[0]
        return largest if largest > slack + layout.record_slack_s else 0.0
