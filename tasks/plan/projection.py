"""What a conversion will need, before it starts: a pure function of format, header, size and what was learnt."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from contract.rates import served_rate
from tasks.formats.memory import FLOOR_BYTES, SMALLEST_BYTES, streamed_scratch_bytes
from tasks.formats.protocol import Header, Route
from tasks.formats.shape import group_shapes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tasks.formats.protocol import RecordingFormat
    from tasks.plan.learning import Learnt

__all__ = ["NOTHING_LEARNT", "Basis", "Projection", "project"]

_STORE_FIXED_BYTES = 2_000_000
_STORE_BYTES_PER_SAMPLE = 3.1
"""Served bytes of one int16 sample with its view pyramid; zstd gains almost nothing on wideband signals."""

NOTHING_LEARNT: Mapping[tuple[str, str], Learnt] = MappingProxyType({})


class Basis(StrEnum):
    """What a projection rests on."""

    LEARNT = "learnt"
    """The formula, corrected by what such recordings measured before."""
    FORMULA = "formula"
    """The formula over the recording's own header."""
    SIZE = "size"
    """The formula over a guess: the header is not known, the size of the files is."""
    FLOOR = "floor"
    """Nothing is known of its size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """What to reserve for one conversion.

    Parameters
    ----------
    projected_bytes
        Memory of the child above its memory at birth.
    floor_bytes
        The formula alone over the recording's header. Only this may say that a recording is too large for every machine; 0
        where the header is not known, and then nothing may.
    scratch_bytes
        Disk: files to be fetched, the streaming route's mapped files, and the store.
    basis
        What ``projected_bytes`` rests on.
    learnt
        What was learnt of its kind, where that was used.
    """

    projected_bytes: int
    floor_bytes: int
    scratch_bytes: int
    route: Route
    basis: Basis
    learnt: Learnt | None = None


def project(
    one: RecordingFormat,
    header: Header | None,
    size_bytes: int,
    modality: str | None,
    *,
    fetched_bytes: int = 0,
    learnt: Mapping[tuple[str, str], Learnt] = NOTHING_LEARNT,
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
    learnt
        By (format, route), what earlier conversions measured against the formula.
    """
    known = header if header is not None else Header()
    rate_hz = None if known.rate_hz is None else served_rate(known.rate_hz, modality)
    route = one.route(known)
    formula = one.projected_bytes(known, size_bytes, route, rate_hz)
    scratch_bytes = fetched_bytes + _scratch_bytes(known, size_bytes, rate_hz)
    if known.n_channels is None or known.n_samples is None:
        return Projection(
            projected_bytes=max(formula, FLOOR_BYTES),
            floor_bytes=0,
            scratch_bytes=scratch_bytes,
            route=route,
            basis=Basis.SIZE if size_bytes > 0 else Basis.FLOOR,
        )
    of_kind = learnt.get((one.name, route.value))
    return Projection(
        projected_bytes=formula if of_kind is None else max(of_kind.bytes_for(formula), SMALLEST_BYTES),
        floor_bytes=formula,
        scratch_bytes=scratch_bytes,
        route=route,
        basis=Basis.FORMULA if of_kind is None else Basis.LEARNT,
        learnt=of_kind,
    )


def _scratch_bytes(header: Header, size_bytes: int, served_rate_hz: float | None) -> int:
    """Disk for the store, and beside it for mapped files and for copies of the source; groups are converted in turn."""
    shapes = group_shapes(header, size_bytes, served_rate_hz, file_sample_bytes=2)
    served = sum(shape.n_channels * shape.served_samples for shape in shapes)
    store = _STORE_FIXED_BYTES * len(shapes) + int(_STORE_BYTES_PER_SAMPLE * served)
    kept = header.kept_sample_bytes
    mapped = max(streamed_scratch_bytes(shape, kept_sample_bytes=kept) for shape in shapes)
    corrected = 8 * shapes[0].n_channels * shapes[0].n_samples if header.maxshield else 0
    taken_apart = size_bytes if len(header.rates_hz) > 1 else 0
    return store + mapped + corrected + taken_apart + header.copied_bytes
