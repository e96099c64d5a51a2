"""Rates and durations, against the recording, the caps and what the modality's JSON sidecars declare."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from contract.rates import RATE_CAPS_HZ, resampling_ratio, served_rate
from contract.verification import Check
from tasks.verify.tables import nearest_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tasks.verify.channels import Rows
    from tasks.verify.groups import Opened
    from tasks.verify.recording.protocol import Reading
    from tasks.verify.report import Report

__all__ = ["check_declared", "check_rates"]

_SAME_RATE = 1e-6
_DECLARED_RATE_HZ = 0.5
_DECLARED_DURATION_S = 1.0


def check_rates(rows: Sequence[Rows], reading: Reading, modality: str | None, report: Report) -> bool:
    """Compare each group's rate and length with the recording's: the ratio of ``contract.rates``, within one sample.

    Whether all of them hold.
    """
    before = report.mismatches
    for one in rows:
        group, source = one.group, reading.channels[one.source[0]]
        own = group.says.modality
        if modality is not None:
            detail = f"{group.name} is of the modality {own}, the recording's name says {modality}"
            report.hold(Check.METADATA, own == modality.upper(), detail)
        wanted_hz = served_rate(source.rate_hz, own)
        holds = math.isclose(group.says.rate, wanted_hz, rel_tol=_SAME_RATE)
        detail = f"{group.name} is served at {group.says.rate:g} Hz, {source.rate_hz:g} Hz must become {wanted_hz:g}"
        report.hold(Check.RATE, holds, detail)
        holds = math.isclose(group.says.original_rate, source.rate_hz, rel_tol=_SAME_RATE)
        detail = f"{group.name} says that it comes from {group.says.original_rate:g} Hz, the recording has {source.rate_hz:g}"
        report.hold(Check.RATE, holds, detail)
        samples = source.n_samples * resampling_ratio(source.rate_hz, own)
        holds = abs(group.says.n_samples - samples) <= 1
        detail = f"{group.name} has {group.says.n_samples} samples, the recording's {source.n_samples} must become {float(samples):.1f}"
        report.hold(Check.DURATION, holds, detail)
    return report.mismatches == before


def check_declared(opened: Opened, sidecars: Sequence[dict[str, Any]], report: Report, *, as_recorded: bool) -> None:
    """Compare with ``SamplingFrequency`` (within 0.5 Hz, up to the cap) and ``RecordingDuration`` (within 1 s).

    Only where a sidecar declares a number. Of a recording of several rates one group has to be at the declared one. Where the
    groups are known to be ``as_recorded``, it is the sidecar that is wrong: that is disclosed and fails nothing.
    """
    if not opened.groups:
        return

    def hold(check: Check, holds: bool, detail: str) -> None:
        if holds or not as_recorded:
            report.hold(check, holds, detail)
        else:
            report.disclose(Check.SIDECAR, detail)

    declared_hz = nearest_number(sidecars, "SamplingFrequency")
    if declared_hz is not None:
        gaps = [
            abs(group.says.rate - min(declared_hz, RATE_CAPS_HZ.get(group.says.modality, declared_hz)))
            for group in opened.groups
        ]
        rates = ", ".join(f"{group.says.rate:g}" for group in opened.groups)
        detail = f"served at {rates} Hz, the sidecar declares SamplingFrequency {declared_hz:g}"
        hold(Check.RATE, min(gaps) <= _DECLARED_RATE_HZ, detail)
    declared_s = nearest_number(sidecars, "RecordingDuration")
    if declared_s is not None:
        longest_s = max(group.says.n_samples / group.says.rate for group in opened.groups)
        detail = f"{longest_s:g} s are served, the sidecar declares RecordingDuration {declared_s:g}"
        hold(Check.DURATION, abs(longest_s - declared_s) <= _DECLARED_DURATION_S, detail)
