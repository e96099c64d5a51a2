"""The header of an EDF or BDF file, read without any EDF library."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasks.formats.content import corrupt, empty, reading
from tasks.formats.protocol import Header

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["EdfSignal", "read_header"]

_MAX_SIGNALS = 4096
_ANNOTATIONS = frozenset({"EDF Annotations", "BDF Annotations"})
_WIDTHS = (16, 80, 8, 8, 8, 8, 8, 80, 8, 32)  # label transducer unit pmin pmax dmin dmax prefilter samples reserved


@dataclass(frozen=True, slots=True)
class EdfSignal:
    """One signal of the header; ``rate_hz`` is samples per data record over the record's duration."""

    label: str
    prefilter: str
    samples_per_record: int
    rate_hz: float
    flat_range: bool


def read_header(path: Path, *, sample_width: int) -> Header:
    """Header of an EDF (``sample_width`` 2) or BDF (3) file; annotation signals do not count.

    Only an EDF+ or BDF+ file has annotation signals: in a plain one that label is a signal's like any other, as the
    strict reader takes it. The tolerant reader goes by the label alone.

    Raises
    ------
    RecordingFailed
        ``corrupt_or_truncated`` when the file ends before the records it declares, or declares none, or records of no
        duration; ``empty_recording`` when it declares no signal.
    """
    with reading(path):
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(256)
            if len(head) < 256 or not (head[:8].strip(b" \0") == b"0" or head[:8] == b"\xffBIOSEMI"):
                raise corrupt(f"{path.name} does not start like an EDF or BDF file")
            count = int(_number(head[252:256]))
            if not 0 <= count <= _MAX_SIGNALS:
                raise corrupt(f"{path.name} declares {count} signals")
            block = file.read(256 * count)
        if len(block) < 256 * count:
            raise corrupt(f"{path.name} ends inside its header")
        record_s = _number(head[244:252])
        every = _signals(block, count, record_s)
        n_records, unfinished = _records(path, size, head, every, sample_width)
        tolerant = (
            unfinished
            or b"+D" in head[192:236]
            or b"\0" in head[168:256]
            or _padded(block, count)
            or any(s.flat_range or s.samples_per_record == 0 for s in every)
        )
    signals = [s for s in every if s.label not in _ANNOTATIONS]
    if not signals or not any(s.samples_per_record for s in signals):
        raise empty(f"{path.name} declares no signal samples")
    silent = next((s for s in signals if s.samples_per_record < 1), None)
    if silent is not None:
        # the tolerant reader would fill such a channel with zeros nobody recorded
        raise corrupt(f"{path.name} declares {silent.samples_per_record} samples a data record for one of its signals")
    if n_records == 0:
        said = "holds no whole data record" if unfinished else "declares 0 data records"
        raise corrupt(f"{path.name} {said}")
    if not (record_s > 0 and math.isfinite(record_s)):
        raise corrupt(f"{path.name} declares data records of {record_s:g} s")
    is_plus = head[192:196] == (b"EDF+" if sample_width == 2 else b"BDF+")
    return _header(signals if is_plus or tolerant else every, n_records, tolerant=tolerant)


def _header(signals: list[EdfSignal], n_records: int, *, tolerant: bool) -> Header:
    rates = tuple(sorted({s.rate_hz for s in signals}))
    return Header(
        n_channels=len(signals),
        n_samples=n_records * max(s.samples_per_record for s in signals),
        rate_hz=rates[-1],
        rates_hz=rates,
        tolerant=tolerant,
        channel_rates_hz=tuple(s.rate_hz for s in signals),
        channel_samples=tuple(n_records * s.samples_per_record for s in signals),
        channel_labels=tuple(s.label for s in signals),
        prefilters=tuple(s.prefilter for s in signals),
        sample_bytes=8,
    )


def _records(path: Path, size: int, head: bytes, signals: list[EdfSignal], sample_width: int) -> tuple[int, bool]:
    """Data records present, and whether the recorder never wrote their number."""
    declared = int(_number(head[236:244]))
    record_bytes = sample_width * sum(s.samples_per_record for s in signals)
    if record_bytes == 0:
        return 0, False
    held = (size - 256 * (len(signals) + 1)) // record_bytes
    if declared < 0:
        return held, True
    if held < declared:
        raise corrupt(f"{path.name} holds {max(held, 0)} of the {declared} data records it declares")
    return declared, False


def _signals(block: bytes, count: int, record_s: float) -> list[EdfSignal]:
    columns: list[list[bytes]] = []
    start = 0
    for width in _WIDTHS:
        columns.append([block[start + i * width : start + (i + 1) * width] for i in range(count)])
        start += width * count
    labels, _, _, pmin, pmax, _, _, prefilters, samples, _ = columns
    return [
        EdfSignal(
            label=_text(labels[i]),
            prefilter=_text(prefilters[i]) or "n/a",
            samples_per_record=int(_number(samples[i])),
            rate_hz=int(_number(samples[i])) / record_s if record_s > 0 else 0.0,
            flat_range=_number(pmin[i]) == _number(pmax[i]),
        )
        for i in range(count)
    ]


def _padded(block: bytes, count: int) -> bool:
    """Whether a numeric field is padded with NUL, which the strict reader refuses."""
    return b"\0" in block[104 * count : 136 * count] or b"\0" in block[216 * count : 224 * count]


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("latin-1").strip()


def _number(field: bytes) -> float:
    """The value of a numeric field; NUL padding and a decimal comma occur in real files. A ValueError says it is broken."""
    return float(_text(field).replace(",", "."))
