"""What a conversion will need, before it starts: a pure function of format, header and size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contract.rates import served_rate
from tasks.formats.memory import FLOOR_BYTES, streamed_scratch_bytes
from tasks.formats.protocol import Header, Route
from tasks.formats.shape import shape_of

if TYPE_CHECKING:
    from tasks.formats.protocol import RecordingFormat

__all__ = ["Projection", "project"]

_STORE_FIXED_BYTES = 2_000_000
_STORE_BYTES_PER_SAMPLE = 3.1
"""Served bytes of one int16 sample with its view pyramid; zstd gains almost nothing on wideband signals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """What to reserve for one conversion.

    Parameters
    ----------
    projected_bytes
        Memory of the child above its memory at birth: the floor, or more where earlier attempts needed more.
    floor_bytes
        The formula alone. Only this may say that a recording is too large for every machine.
    scratch_bytes
        Disk: files to be fetched, the streaming route's mapped files, and the store.
    basis
        In words, what the numbers rest on.
    """

    projected_bytes: int
    floor_bytes: int
    scratch_bytes: int
    route: Route
    basis: str


def project(
    one: RecordingFormat,
    header: Header | None,
    size_bytes: int,
    modality: str | None,
    *,
    fetched_bytes: int = 0,
    learned_bytes: int | None = None,
) -> Projection:
    """Memory and scratch of one conversion.

    Parameters
    ----------
    header
        From the recording's own header; None when it was not or could not be read.
    size_bytes
        Members and companions; 0 when unknown. An unknown recording is charged the floor, never nothing.
    fetched_bytes
        Of these, what must be copied to scratch; 0 for a source that links.
    learned_bytes
        A high quantile of what such conversions measured; it only ever raises the projection.
    """
    known = header if header is not None else Header()
    rate_hz = None if known.rate_hz is None else served_rate(known.rate_hz, modality)
    route = one.route(known)
    floor = one.projected_bytes(known, size_bytes, route, rate_hz)
    if known.n_channels is None or known.n_samples is None:
        floor = max(floor, FLOOR_BYTES)
    shape = shape_of(known, size_bytes, rate_hz, file_sample_bytes=2)
    store = _STORE_FIXED_BYTES + int(_STORE_BYTES_PER_SAMPLE * shape.n_channels * shape.served_samples)
    mapped = streamed_scratch_bytes(shape) if route is Route.STREAMED else 0
    whole = 8 * shape.n_channels * shape.n_samples if known.maxshield else 0  # the corrected copy
    return Projection(
        projected_bytes=max(floor, learned_bytes or 0),
        floor_bytes=floor,
        scratch_bytes=fetched_bytes + mapped + store + whole,
        route=route,
        basis=_basis(known, size_bytes, floor, learned_bytes),
    )


def _basis(header: Header, size_bytes: int, floor: int, learned_bytes: int | None) -> str:
    if learned_bytes is not None and learned_bytes > floor:
        return "earlier conversions of this kind"
    if header.n_channels is not None and header.n_samples is not None:
        return f"header: {header.n_channels} channels x {header.n_samples} samples"
    if size_bytes > 0:
        return f"size: {size_bytes} bytes" + ("" if header.n_channels is None else f" in {header.n_channels} channels")
    return "nothing is known of its size"
