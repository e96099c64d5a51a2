"""EDF and BDF, record by record, by the format's own definition (Kemp et al. 1992; BioSemi's 24-bit variant)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.verify.recording.protocol import SourceChannel
from tasks.verify.report import Unverifiable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["EdfReading"]

_FIELDS = (16, 80, 8, 8, 8, 8, 8, 80, 8, 32)
_ANNOTATIONS = frozenset({"EDF Annotations", "BDF Annotations"})


@dataclass(frozen=True, slots=True)
class _Signal:
    label: str
    unit: str
    gain: float
    physical_min: float
    digital_min: float
    per_record: int
    start: int
    """Samples of a record that stand before this signal's."""


class EdfReading:
    """An EDF (``width`` 2) or BDF (3) file."""

    def __init__(self, path: Path, width: int) -> None:
        self._file = path.open("rb")
        try:
            self._open(path, width)
        except BaseException:
            self._file.close()
            raise

    def _open(self, path: Path, width: int) -> None:
        head = self._file.read(256)
        count = int(_number(head[252:256]))
        block = self._file.read(256 * count)
        record_s, declared = _number(head[244:252]), int(_number(head[236:244]))
        signals = _signals(block, count)
        self._width = width
        self._head_bytes = 256 * (count + 1)
        self._record_bytes = width * sum(signal.per_record for signal in signals)
        if record_s <= 0 or self._record_bytes <= 0:
            raise Unverifiable("its data records have no duration or no samples")
        held = (path.stat().st_size - self._head_bytes) // self._record_bytes
        n_records = held if declared < 0 else min(declared, held)
        annotated = head[192:196] in (b"EDF+", b"BDF+") or declared < 0 or b"\0" in head[168:256]
        self._signals = [s for s in signals if not (annotated and s.label in _ANNOTATIONS)]
        self.channels: Sequence[SourceChannel] = [
            SourceChannel(s.label, s.per_record / record_s, s.per_record * n_records, s.unit, bool(s.label))
            for s in self._signals
        ]

    def read(self, rows: Sequence[int], start: int, stop: int) -> NDArray[np.float64]:
        """Samples of channels of one rate; see ``Reading.read``."""
        per_record = self._signals[rows[0]].per_record
        first, last = start // per_record, -(-stop // per_record)
        self._file.seek(self._head_bytes + first * self._record_bytes)
        data = self._file.read((last - first) * self._record_bytes)
        records = np.frombuffer(data, np.uint8).reshape(last - first, self._record_bytes)
        out = np.empty((len(rows), stop - start))
        for at, row in enumerate(rows):
            signal = self._signals[row]
            own = records[:, signal.start * self._width : (signal.start + per_record) * self._width]
            digital = _integers(own, self._width)[start - first * per_record : stop - first * per_record]
            out[at] = (digital - signal.digital_min) * signal.gain + signal.physical_min
        return out

    def close(self) -> None:
        """Let the file go."""
        self._file.close()


def _integers(stored: NDArray[np.uint8], width: int) -> NDArray[np.float64]:
    if width == 2:
        return np.ascontiguousarray(stored).view("<i2").ravel().astype(np.float64)
    parts = stored.reshape(-1, 3).astype(np.int32)
    whole = parts[:, 0] | parts[:, 1] << 8 | parts[:, 2] << 16
    signed: NDArray[np.float64] = (whole - ((whole & 0x800000) << 1)).astype(np.float64)
    return signed


def _signals(block: bytes, count: int) -> list[_Signal]:
    columns: list[list[bytes]] = []
    at = 0
    for width in _FIELDS:
        columns.append([block[at + i * width : at + (i + 1) * width] for i in range(count)])
        at += width * count
    labels, _, units, low, high, digital_low, digital_high, _, samples, _ = columns
    found: list[_Signal] = []
    start = 0
    for i in range(count):
        physical, digital = (_number(low[i]), _number(high[i])), (_number(digital_low[i]), _number(digital_high[i]))
        span = digital[1] - digital[0]
        gain = (physical[1] - physical[0]) / span if span else 0.0
        per_record = int(_number(samples[i]))
        found.append(_Signal(_text(labels[i]), _text(units[i]), gain, physical[0], digital[0], per_record, start))
        start += per_record
    return found


def _text(field: bytes) -> str:
    field = field.split(b"\0", 1)[0]
    try:
        return field.decode("utf-8").strip()
    except UnicodeDecodeError:
        return field.decode("latin-1").strip()


def _number(field: bytes) -> float:
    text: Any = _text(field).replace(",", ".")
    try:
        return float(text)
    except ValueError:
        raise Unverifiable(f"its header has {text!r} where a number belongs") from None
