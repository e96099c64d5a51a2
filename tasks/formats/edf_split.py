"""Takes an EDF or BDF file of mixed rates apart into files of one rate each, sample for sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasks.formats.content import corrupt
from tasks.formats.edf_header import ANNOTATION_LABELS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tasks.formats.protocol import Header

__all__ = ["RatePart", "split_by_rate"]

_BLOCK_BYTES = 8 * 1024**2
_WIDTHS = (16, 80, 8, 8, 8, 8, 8, 80, 8, 32)
_LABEL, _SAMPLES = 0, 8  # of the header's columns


@dataclass(frozen=True, slots=True)
class RatePart:
    """The signals of one rate: a file of their own, and which of the whole file's signals they are (annotations do not count)."""

    path: Path
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Layout:
    head: bytes
    columns: tuple[tuple[bytes, ...], ...]
    sample_width: int

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(int(_text(field) or "0") for field in self.columns[_SAMPLES])


def split_by_rate(path: Path, folder: Path, header: Header) -> list[RatePart]:
    """One file below ``folder`` for each rate of ``path``, in the order in which the rates appear.

    Samples, labels, scales and annotations are copied as they stand; the memory needed does not depend on the file's size.

    Raises
    ------
    RecordingFailed
        ``corrupt_or_truncated`` for a signal without samples.
    """
    layout = _layout(path)
    labels = [_text(field) for field in layout.columns[_LABEL]]
    marked = [label in ANNOTATION_LABELS for label in labels]
    # In a plain EDF that label is a signal's like any other; the header's count says which this file is.
    annotations = marked if len(labels) - sum(marked) == header.n_channels else [False] * len(labels)
    by_count: dict[int, list[int]] = {}
    for index, count in enumerate(layout.counts):
        if count < 1:
            raise corrupt(f"{path.name} declares the signal {labels[index]!r} without samples")
        if not annotations[index]:
            by_count.setdefault(count, []).append(index)
    signals = [index for index, annotation in enumerate(annotations) if not annotation]
    kept = [index for index, annotation in enumerate(annotations) if annotation]
    chosen = [sorted([*indices, *kept]) for indices in by_count.values()]
    files = [folder / f"rate-{number}{path.suffix.lower()}" for number in range(len(chosen))]
    _copy(path, layout, chosen, files)
    return [
        RatePart(file, tuple(signals.index(index) for index in indices))
        for file, indices in zip(files, by_count.values(), strict=True)
    ]


def _layout(path: Path) -> _Layout:
    with path.open("rb") as file:
        head = file.read(256)
        count = int(_text(head[252:256]))
        block = file.read(256 * count)
    columns: list[tuple[bytes, ...]] = []
    start = 0
    for width in _WIDTHS:
        columns.append(tuple(block[start + i * width : start + (i + 1) * width] for i in range(count)))
        start += width * count
    return _Layout(head, tuple(columns), 3 if head[:1] == b"\xff" else 2)


def _copy(path: Path, layout: _Layout, chosen: Sequence[Sequence[int]], files: Sequence[Path]) -> None:
    """Write every part in one pass over the whole data records of ``path``."""
    import numpy as np

    sizes = [layout.sample_width * count for count in layout.counts]
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    record_bytes = sum(sizes)
    held = (path.stat().st_size - 256 * (len(sizes) + 1)) // record_bytes
    declared = int(_text(layout.head[236:244]))
    n_records = held if declared < 0 else min(held, declared)
    outputs = [file.open("wb") for file in files]
    try:
        for output, indices in zip(outputs, chosen, strict=True):
            output.write(_header(layout, indices))
        with path.open("rb") as source:
            source.seek(256 * (len(sizes) + 1))
            at_once = max(1, _BLOCK_BYTES // record_bytes)
            for first in range(0, n_records, at_once):
                count = min(at_once, n_records - first)
                records = np.frombuffer(source.read(count * record_bytes), dtype=np.uint8).reshape(count, record_bytes)
                for output, indices in zip(outputs, chosen, strict=True):
                    parts = [records[:, starts[index] : starts[index] + sizes[index]] for index in indices]
                    output.write(np.concatenate(parts, axis=1).tobytes())
    finally:
        for output in outputs:
            output.close()


def _header(layout: _Layout, indices: Sequence[int]) -> bytes:
    """The whole file's header with these signals only; a number of records that was never written stays unwritten."""
    head = bytearray(layout.head)
    head[184:192] = str(256 * (len(indices) + 1)).encode().ljust(8)
    head[252:256] = str(len(indices)).encode().ljust(4)
    return bytes(head) + b"".join(column[index] for column in layout.columns for index in indices)


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("latin-1").strip()
