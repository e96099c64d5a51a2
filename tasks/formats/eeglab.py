"""EEGLAB .set recordings: MATLAB 5 or 7.3 (HDF5), samples inside or in a .fdt beside."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tasks.formats.content import corrupt, empty, not_continuous, reading, require_content, unreadable
from tasks.formats.links import linked
from tasks.formats.matlab_layout import plain_layout
from tasks.formats.memory import in_memory_bytes, streamed_bytes
from tasks.formats.protocol import Header, Route
from tasks.formats.set_fields import SetFields, read_set_fields
from tasks.formats.shape import shape_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Eeglab"]

_FDT_SAMPLE_BYTES = 4
_MAX_ASKED_BYTES = 1024**2
_REST_BYTES, _MOST_REST_BYTES = 64, 16 * 1024**2
"""Of a compressed .set beside a .fdt, what its fields take once inflated: 2,000 events of 8 fields 15 MB, whatever they were packed to."""


class Eeglab:
    """EEGLAB: streamed; in memory where the samples stand compressed inside the .set."""

    name = "eeglab"
    extensions: tuple[str, ...] = (".set",)
    folder_extensions: tuple[str, ...] = ()
    companions: frozenset[str] = frozenset({".fdt"})
    precedence = 40
    source_format = "eeglab"

    def header(self, primary: Path) -> Header:
        """Read nbchan, pnts, trials and srate without the sample matrix, and check the size of a .fdt.

        Trials are read here because biosigIO takes an epoched .set with a .fdt for a continuous one.
        """
        with reading(primary):
            fields = read_set_fields(primary)
        if fields.trials > 1:
            raise not_continuous(f"{primary.name} holds {fields.trials} epochs")
        if fields.n_channels is not None and fields.n_channels < 1:
            raise empty(f"{primary.name} declares no channel")
        n_samples = fields.n_samples
        n_channels = fields.n_channels
        if fields.external is not None:
            n_samples = self._external_samples(primary, fields)
        elif fields.matrix is not None:
            n_channels, n_samples = self._matrix_shape(primary, fields.matrix)
        if n_samples is not None and n_samples < 1:
            raise empty(f"{primary.name} declares no samples")
        rate_hz = fields.rate_hz if fields.rate_hz and 0 < fields.rate_hz < math.inf else None
        if rate_hz is None:
            # biosigIO would assume 1000 Hz, and every onset and duration would be invented.
            raise unreadable(f"{primary.name} declares no sampling rate")
        return Header(
            n_channels=n_channels,
            n_samples=n_samples,
            rate_hz=rate_hz,
            rates_hz=(rate_hz,),
            sample_bytes=fields.sample_bytes,
            whole=fields.external is None and not _is_plain(primary, n_channels, n_samples),
        )

    def start_bytes(self, path: str, size_bytes: int, start: bytes) -> int | None:  # noqa: ARG002 - of the Protocol
        """A .set of up to 1 MiB, as one is whose samples lie in a .fdt; of that only the size counts."""
        if not path.lower().endswith(".set"):
            return 0
        return size_bytes if size_bytes <= _MAX_ASKED_BYTES else None

    @staticmethod
    def _matrix_shape(primary: Path, matrix: tuple[int, ...]) -> tuple[int, int]:
        """Channels and samples of embedded samples: the matrix itself, because a field edited by hand is no witness."""
        if len(matrix) > 2 and matrix[2] > 1:
            raise not_continuous(f"{primary.name} holds {matrix[2]} epochs")
        if len(matrix) < 2 or min(matrix) < 0:
            raise corrupt(f"the samples of {primary.name} are no matrix")
        if 0 in matrix:
            raise empty(f"{primary.name} holds no samples")
        return matrix[0], matrix[1]

    @staticmethod
    def _external_samples(primary: Path, fields: SetFields) -> int | None:
        """Samples in the .fdt: the one of the same stem, else the one the header names.

        Raises
        ------
        RecordingFailed
            ``file_read_error`` when it is missing, ``annex_object_missing`` when it is a pointer,
            ``corrupt_or_truncated`` when its size is not nbchan x pnts x 4 bytes.
        """
        named = (fields.external or "").replace("\\", "/").rsplit("/", 1)[-1]
        candidates = [
            _own_samples(primary) or primary.with_suffix(".fdt"),
            *([primary.with_name(named)] if named not in {"", ".", ".."} else []),
        ]
        for candidate in candidates:
            if candidate.is_symlink() or candidate.exists():
                require_content(candidate)
                size = candidate.stat().st_size
                break
        else:
            raise unreadable(f"the samples of {primary.name} are missing: {candidates[0].name} is not there")
        if fields.n_channels is None or fields.n_samples is None:
            return None
        expected = fields.n_channels * fields.n_samples * _FDT_SAMPLE_BYTES
        if size != expected:
            raise corrupt(f"{candidate.name} holds {size} bytes, {primary.name} declares {expected}")
        return fields.n_samples

    def route(self, header: Header) -> Route:
        """Streamed; in memory what cannot be mapped, and what is not known."""
        return Route.IN_MEMORY if header.whole or header.n_samples is None else Route.STREAMED

    def projected_bytes(self, header: Header, size_bytes: int, route: Route, served_rate_hz: float | None) -> int:
        """In memory single precision 5.2 C N, double precision 9 C N; streamed as every streamed format, and what is not samples."""
        shape = shape_of(header, size_bytes, served_rate_hz, file_sample_bytes=header.sample_bytes)
        if route is Route.STREAMED:
            rest = max(size_bytes - header.sample_bytes * shape.n_channels * shape.n_samples, 0)
            return streamed_bytes(shape) + min(_REST_BYTES * rest, _MOST_REST_BYTES)
        per_value = 5.2 if header.sample_bytes <= 4 else 9.0
        return in_memory_bytes(shape, bytes_per_value=per_value)

    def read_target(self, primary: Path, header: Header, work: Path) -> Path:  # noqa: ARG002 - by name alone
        """The .set; beside a link to its samples where their ending is not in lower case."""
        beside = _own_samples(primary)
        if beside is None or beside == primary.with_suffix(".fdt"):
            return primary
        linked(work, f"{primary.stem}.fdt", beside)
        return linked(work, primary.name, primary)


def _is_plain(primary: Path, n_channels: int | None, n_samples: int | None) -> bool:
    """Whether the samples stand in the .set as a matrix that can be mapped."""
    layout = plain_layout(primary, "EEG")
    matrix = None if layout is None else layout.matrix("data")
    return matrix is not None and matrix.shape == (n_channels, n_samples)


def _own_samples(primary: Path) -> Path | None:
    """The .fdt of the same stem, or the only one that differs from it in case; None without one."""
    own = primary.with_suffix(".fdt")
    if own.is_symlink() or own.exists():
        return own
    wanted = own.name.lower()
    others = [path for path in primary.parent.iterdir() if path.name.lower() == wanted]
    return others[0] if len(others) == 1 else None
