"""The header of an EDF or BDF file, read without any EDF library."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasks.formats.content import corrupt, empty, not_continuous, reading
from tasks.formats.edf_onsets import RecordLayout, largest_gap_s
from tasks.formats.edf_spelling import decoded, plain_copy, spelling_of
from tasks.formats.protocol import Header

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ANNOTATION_LABELS", "EdfSignal", "header_bytes", "read_header", "readable", "signal_counts"]

_MAX_SIGNALS = 4096
_USUAL_BYTES = 256 * (1 + 128)  # asked for at first: hardly any cap has more channels
ANNOTATION_LABELS = frozenset({"EDF Annotations", "BDF Annotations"})
_NO_START = ("its start date or time cannot be understood; metadata shows 1985 or midnight in its place",)
_WIDTHS = (16, 80, 8, 8, 8, 8, 8, 80, 8, 32)  # label transducer unit pmin pmax dmin dmax prefilter samples reserved


@dataclass(frozen=True, slots=True)
class EdfSignal:
    """One signal of the header; ``rate_hz`` is samples per data record over the record's duration."""

    label: str
    prefilter: str
    samples_per_record: int
    rate_hz: float
    flat_range: bool
    no_digital_range: bool


@dataclass(frozen=True, slots=True)
class _Raw:
    """The header's bytes and what stands in them."""

    size: int
    head: bytes
    block: bytes
    signals: list[EdfSignal]
    record_s: float
    sample_width: int

    @property
    def record_bytes(self) -> int:
        return self.sample_width * sum(s.samples_per_record for s in self.signals)

    @property
    def is_plus(self) -> bool:
        return self.head[192:196] == (b"EDF+" if self.sample_width == 2 else b"BDF+")


def read_header(path: Path, *, sample_width: int) -> Header:
    """Header of an EDF (``sample_width`` 2) or BDF (3) file; annotation signals do not count.

    Only an EDF+ or BDF+ file has annotation signals: in a plain one that label is a signal's like any other, as the
    strict reader takes it. The tolerant reader goes by the label alone.

    Raises
    ------
    RecordingFailed
        ``corrupt_or_truncated`` when the file ends before the records it declares, or declares none, or records of no
        duration; ``empty_recording`` when it declares no signal; ``not_continuous`` when its data records leave gaps.
    """
    with reading(path):
        raw = _read(path, sample_width)
        held, n_records, unfinished = _records(path, raw)
        tolerant = unfinished or _needs_tolerance(raw)
        signals = _signal_channels(path, raw)
        if n_records == 0:
            raise corrupt(f"{path.name} {'holds no whole data record' if unfinished else 'declares 0 data records'}")
        if not (raw.record_s > 0 and math.isfinite(raw.record_s)):
            raise corrupt(f"{path.name} declares data records of {raw.record_s:g} s")
        gap_s = largest_gap_s(path, layout) if (layout := _layout(raw, n_records)) is not None else 0.0
    if gap_s > 0:
        raise not_continuous(f"the data records of {path.name} leave gaps, the largest of {gap_s:g} s")
    plain = spelling_of(raw.head, raw.block, len(raw.signals))
    return _header(
        signals if raw.is_plus or tolerant else raw.signals,
        n_records,
        tolerant=tolerant,
        respelled={} if plain is None else plain.labels,
        copied_bytes=0 if plain is None else raw.size,
        notes=_left_over(raw, held, n_records) + (_NO_START if plain is not None and plain.start_unknown else ()),
    )


def header_bytes(size_bytes: int, start: bytes) -> int | None:
    """How long the header of a file that begins like this is; a guess while the number of signals is not known.

    None for a file that is no EDF or BDF file, or has more signals than any.
    """
    if len(start) < 256:
        return min(size_bytes, _USUAL_BYTES)
    try:
        count = int(_number(start[252:256]))
    except ValueError:
        return None
    return min(size_bytes, 256 * (1 + count)) if 0 <= count <= _MAX_SIGNALS else None


def signal_counts(path: Path, n_signals: int) -> tuple[int, int, list[tuple[int, bool]]]:
    """Where the data records of a sound file start, bytes of a sample, and of each signal its samples in a record and whether it is one.

    Signals called annotations are none where ``n_signals``, a reader's count, leaves them out.
    """
    with path.open("rb") as file:
        head = file.read(256)
        count = int(_number(head[252:256]))
        block = file.read(256 * count)
    signals = _signals(block, count, _number(head[244:252]))
    marked = [signal.label in ANNOTATION_LABELS for signal in signals]
    apart = count - sum(marked) == n_signals
    counts = [(s.samples_per_record, not (apart and mark)) for s, mark in zip(signals, marked, strict=True)]
    return 256 * (1 + count), 3 if head[:1] == b"\xff" else 2, counts


def readable(primary: Path, work: Path, header: Header) -> Path:
    """The file itself, or a copy in ``work`` whose header is in the ASCII that its reader insists on."""
    if not header.copied_bytes:
        return primary
    with primary.open("rb") as file:
        head = file.read(256)
        count = int(_number(head[252:256]))
        plain = spelling_of(head, file.read(256 * count), count)
    return primary if plain is None else plain_copy(primary, work, plain.header)


def _read(path: Path, sample_width: int) -> _Raw:
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
    return _Raw(path.stat().st_size, head, block, _signals(block, count, record_s), record_s, sample_width)


def _signal_channels(path: Path, raw: _Raw) -> list[EdfSignal]:
    signals = [s for s in raw.signals if s.label not in ANNOTATION_LABELS]
    if not any(s.samples_per_record for s in signals):
        raise empty(f"{path.name} declares no signal samples")
    silent = next((s for s in signals if s.samples_per_record < 1), None)
    if silent is not None:
        # the tolerant reader would fill such a channel with zeros nobody recorded
        raise corrupt(f"{path.name} declares {silent.samples_per_record} samples a data record for one of its signals")
    unscaled = next((i for i, s in enumerate(signals) if s.no_digital_range and not s.flat_range), None)
    if unscaled is not None:
        # a reader would serve the recorder's own numbers as if they were in the signal's unit
        raise corrupt(f"the digital limits of signal {unscaled + 1} in {path.name} are equal, so it has no scale")
    return signals


def _needs_tolerance(raw: _Raw) -> bool:
    return (
        b"+D" in raw.head[192:236]
        or b"\0" in raw.head[168:256]
        or _padded(raw.block, len(raw.signals))
        or any(s.flat_range or s.samples_per_record == 0 for s in raw.signals)
    )


def _header(
    signals: list[EdfSignal],
    n_records: int,
    *,
    tolerant: bool,
    respelled: dict[str, str],
    copied_bytes: int,
    notes: tuple[str, ...],
) -> Header:
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
        respelled=respelled,
        copied_bytes=copied_bytes,
        notes=notes,
    )


def _records(path: Path, raw: _Raw) -> tuple[int, int, bool]:
    """Data records held and to be read, and whether the recorder never wrote their number."""
    declared = int(_number(raw.head[236:244]))
    if raw.record_bytes <= 0:
        return 0, 0, False
    held = max(0, (raw.size - 256 * (len(raw.signals) + 1)) // raw.record_bytes)
    if declared < 0:
        return held, held, True
    if held < declared:
        raise corrupt(f"{path.name} holds {held} of the {declared} data records it declares")
    return held, declared, False


def _left_over(raw: _Raw, held: int, n_records: int) -> tuple[str, ...]:
    """What the reader leaves out at the end of the file, said where it is a data record or part of an unfinished one."""
    if held > n_records:
        return (f"the file holds {held} data records and declares {n_records}; only these are served",)
    rest = (raw.size - 256 * (len(raw.signals) + 1)) % raw.record_bytes
    if rest and int(_number(raw.head[236:244])) < 0:
        return (f"the last {rest} bytes are no whole data record and are not served",)
    return ()


def _layout(raw: _Raw, n_records: int) -> RecordLayout | None:
    """Where the onsets stand; None in a file without any."""
    at = next((i for i, s in enumerate(raw.signals) if s.label in ANNOTATION_LABELS and s.samples_per_record > 0), None)
    if at is None or not raw.is_plus:
        return None
    text = decoded(raw.head[244:252]).replace(",", ".")
    decimals = len(text.partition(".")[2])
    return RecordLayout(
        start=256 * (len(raw.signals) + 1),
        record_bytes=raw.record_bytes,
        onset_at=raw.sample_width * sum(s.samples_per_record for s in raw.signals[:at]),
        n_records=n_records,
        record_s=raw.record_s,
        record_slack_s=0.5 * 10.0**-decimals if decimals else 0.0,
        sample_s=1.0 / max(s.rate_hz for s in raw.signals if s.label not in ANNOTATION_LABELS),
    )


def _signals(block: bytes, count: int, record_s: float) -> list[EdfSignal]:
    columns: list[list[bytes]] = []
    start = 0
    for width in _WIDTHS:
        columns.append([block[start + i * width : start + (i + 1) * width] for i in range(count)])
        start += width * count
    labels, _, _, pmin, pmax, dmin, dmax, prefilters, samples, _ = columns
    return [
        EdfSignal(
            label=decoded(labels[i]),
            prefilter=decoded(prefilters[i]) or "n/a",
            samples_per_record=int(_number(samples[i])),
            rate_hz=int(_number(samples[i])) / record_s if record_s > 0 else 0.0,
            flat_range=_number(pmin[i]) == _number(pmax[i]),
            no_digital_range=_number(dmin[i]) == _number(dmax[i]),
        )
        for i in range(count)
    ]


def _padded(block: bytes, count: int) -> bool:
    """Whether a numeric field is padded with NUL, which the strict reader refuses."""
    return b"\0" in block[104 * count : 136 * count] or b"\0" in block[216 * count : 224 * count]


def _number(field: bytes) -> float:
    """The value of a numeric field; NUL padding and a decimal comma occur in real files. A ValueError says it is broken."""
    return float(decoded(field).replace(",", "."))
