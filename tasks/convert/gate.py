"""What a finished store must satisfy before anything that is served is replaced by it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract.codes import FailureCode, PendingReason
from contract.errors import NotNow, RecordingFailed
from contract.rates import served_rate
from tasks.convert.store import all_finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tasks.convert.store import StoreGroup
    from tasks.formats.protocol import Header

__all__ = ["CountMismatch", "check_channels", "check_groups"]

_SAME_RATE = 1e-6


@dataclass(frozen=True, slots=True)
class CountMismatch:
    """A channels.tsv that lists more channels than file and store have: served, and disclosed in the store."""

    channels_tsv: int
    in_file: int
    in_store: int

    def as_attribute(self) -> dict[str, int]:
        """The root attribute ``channels_tsv_count_mismatch``."""
        return {"channels_tsv": self.channels_tsv, "in_file": self.in_file, "in_store": self.in_store}


def check_channels(groups: Sequence[StoreGroup], header: Header, sidecar_rows: int | None) -> CountMismatch | None:
    """Compare the channels of the store with the file's own header and its channels.tsv.

    The header is the witness, because a sidecar can be wrong in the same way as the importer (a tool that keys
    channels by label loses the same duplicates) or list channels that the file never had.

    Returns
    -------
    CountMismatch or None
        What to disclose when only the sidecar claims more.

    Raises
    ------
    RecordingFailed
        ``channel_count_mismatch``: fewer channels than the header, or, without a header's count, than the sidecar.
    """
    in_store = sum(group.shape[0] for group in groups)
    in_file = header.n_channels
    if in_file is not None and in_store < in_file:
        raise RecordingFailed(
            FailureCode.CHANNEL_COUNT_MISMATCH, detail=f"the store has {in_store} channels, the file's header {in_file}"
        )
    if sidecar_rows is None or in_store >= sidecar_rows:
        return None
    if in_file is None:
        raise RecordingFailed(
            FailureCode.CHANNEL_COUNT_MISMATCH, detail=f"the store has {in_store} channels, channels.tsv {sidecar_rows}"
        )
    return CountMismatch(sidecar_rows, in_file, in_store)


def check_groups(groups: Sequence[StoreGroup], header: Header) -> None:
    """Check every group on its own and against the header.

    Raises
    ------
    RecordingFailed
        ``empty_recording`` for a store without samples, ``corrupt_or_truncated`` when the reader found fewer samples
        than the header declares.
    NotNow
        The store contradicts itself: a fault of this machine or this converter, so the recording is tried again.
    """
    if not groups:
        raise RecordingFailed(FailureCode.EMPTY_RECORDING, detail="the store has no channel group")
    for group in groups:
        _check_shape(group)
        _check_scales(group)
        _check_views(group)
        _check_rate(group, header)
        _check_samples(group, header)
    _check_rows(groups, header)


def _broken(group: StoreGroup, what: str) -> NotNow:
    return NotNow(PendingReason.INFRA_FAILURE, detail=f"the store was not written as it should be: {group.name} {what}")


def _check_shape(group: StoreGroup) -> None:
    if len(group.shape) != 2 or 0 in group.shape:
        raise RecordingFailed(FailureCode.EMPTY_RECORDING, detail=f"{group.name} has the shape {group.shape}")
    declared = (group.attributes.get("n_channels"), group.attributes.get("n_samples"))
    if declared != group.shape or len(group.labels) != group.shape[0]:
        raise _broken(group, f"declares {declared} and holds {group.shape}")


def _check_scales(group: StoreGroup) -> None:
    scale, offset = group.level0.get("scale", ()), group.level0.get("offset", ())
    whole = len(scale) == len(offset) == group.shape[0]
    if not whole or not all_finite(scale) or not all_finite(offset) or any(value == 0 for value in scale):
        raise _broken(group, "has a scale or offset that is no number, or none for a channel")


def _check_views(group: StoreGroup) -> None:
    declared = tuple(group.attributes.get("view_levels", ()))
    expected = tuple(range(1, len(declared) + 1))
    if (
        declared != expected
        or group.attributes.get("n_view_levels") != len(declared)
        or tuple(group.view_shapes) != declared
    ):
        raise _broken(group, f"declares the view levels {declared} and holds {tuple(group.view_shapes)}")
    columns = group.shape[1]
    for level in declared:
        columns //= int(group.attributes["view_downsample"])
        if group.view_shapes[level] != (2, group.shape[0], columns):
            raise _broken(group, f"has view level {level} of shape {group.view_shapes[level]}")


def _check_rate(group: StoreGroup, header: Header) -> None:
    rate: Any = group.attributes.get("rate")
    source_rate: Any = group.level0.get("source_rate_hz")
    if not all_finite((rate, source_rate)) or rate != group.level0.get("rate") or not 0 < rate <= source_rate:
        raise _broken(group, f"declares the rate {rate} from {source_rate}")
    known = header.rates_hz or (() if header.rate_hz is None else (header.rate_hz,))
    if known and not any(math.isclose(source_rate, one, rel_tol=_SAME_RATE) for one in known):
        raise _broken(group, f"comes from {source_rate} Hz, the file's header says {', '.join(map(str, known))}")
    allowed = served_rate(source_rate, str(group.attributes.get("modality")))
    if not math.isclose(rate, allowed, rel_tol=_SAME_RATE):
        raise _broken(group, f"is served at {rate} Hz, {source_rate} Hz must become {allowed}")


def _check_rows(groups: Sequence[StoreGroup], header: Header) -> None:
    """Every rate of a mixed-rate file must have its channels in its own groups."""
    if len(header.rates_hz) < 2 or not header.channel_rates_hz:
        return
    for rate_hz in header.rates_hz:
        own = [g for g in groups if math.isclose(g.level0["source_rate_hz"], rate_hz, rel_tol=_SAME_RATE)]
        held, declared = sum(g.shape[0] for g in own), header.channel_rates_hz.count(rate_hz)
        if held != declared:
            detail = f"the store has {held} channels of {rate_hz:g} Hz, the file's header {declared}"
            raise RecordingFailed(FailureCode.CHANNEL_COUNT_MISMATCH, detail=detail)


def _check_samples(group: StoreGroup, header: Header) -> None:
    """Served samples must be the header's, times the ratio of rates, within the rounding of one sample.

    A slower group is as long as the fastest one, so its samples are the header's duration times its own rate.
    """
    if header.n_samples is None or header.rate_hz is None:
        return
    expected = header.n_samples * float(group.attributes["rate"]) / header.rate_hz
    if group.shape[1] > expected + 1:
        raise _broken(group, f"has {group.shape[1]} samples where the file's header allows {expected:.1f}")
    if header.exact_samples and group.shape[1] < expected - 1:
        detail = f"{group.shape[1]} samples could be read where the file's header declares {expected:.1f}"
        raise RecordingFailed(FailureCode.CORRUPT_OR_TRUNCATED, detail=detail)
