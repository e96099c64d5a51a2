"""Channels: names, order, number, types and units, against the recording itself and its channels.tsv."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contract.store import LABELS_DEDUPLICATED
from contract.verification import Check
from tasks.verify.units import quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contract.store import ChannelAttributes
    from tasks.verify.groups import Opened, ServedGroup
    from tasks.verify.recording.protocol import Reading, SourceChannel
    from tasks.verify.report import Report
    from tasks.verify.tables import Table

__all__ = ["DISCRETE", "Rows", "check_channels"]

DISCRETE = frozenset({"TRIG", "SYSCLOCK", "CTRL"})
_MEASURED = (
    "EEG, SEEG, ECOG, DBS, MEGMAG, MEGGRADAXIAL, MEGGRADPLANAR, MEGREFMAG, MEGREFGRADAXIAL, MEGREFGRADPLANAR, EMG, ECG, EKG, "
    "EOG, VEOG, HEOG, REF, MISC, OTHER, ACC, GYRO, QUAT, MAGN, RESP, GSR, TEMP, PPG"
)
_TYPES = DISCRETE | set(_MEASURED.split(", "))
_KNOWN_TO_ALL = frozenset({"V", "T", "T/m"})
_SAME_RATE = 1e-6


@dataclass(frozen=True, slots=True)
class Rows:
    """A served group with the rows of the recording that its own rows are."""

    group: ServedGroup
    source: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Declared:
    kind: str | None = None
    unit: str | None = None


def check_channels(opened: Opened, reading: Reading, sidecar: Table | None, report: Report) -> list[Rows]:
    """Compare the channels; the groups whose rows are known, for a comparison of their samples.

    Row by row: the rows of a group are the recording's channels of that rate, in the order of the file. Where the numbers
    differ there is nothing to compare further.
    """
    in_store = sum(group.says.n_channels for group in opened.groups)
    in_file = len(reading.channels)
    report.hold(Check.CHANNEL_COUNT, in_store == in_file, f"the store has {in_store} channels, the recording {in_file}")
    _check_sidecar_count(opened, sidecar, in_store, report)
    renamed = opened.root.recording_metadata.get(LABELS_DEDUPLICATED, {})
    declared = _declared(sidecar, [channel.label for group in opened.groups for channel in group.channels])
    repeated = {label for label, count in Counter(c.label for c in reading.channels).items() if count > 1}
    taken: set[int] = set()
    found: list[Rows] = []
    for group in opened.groups:
        rows = _rows(group, reading.channels, taken)
        if rows is None:
            detail = f"{group.name} has {group.says.n_channels} channels of {group.level0_says.source_rate_hz:g} Hz"
            report.fail(Check.CHANNELS, f"{detail}, the recording has not as many")
            continue
        taken.update(rows)
        for channel, row in zip(group.channels, rows, strict=True):
            source = reading.channels[row]
            _check_name(group, channel, source, renamed=renamed, repeated=repeated, report=report)
            _check_type_and_unit(group, channel, source, declared.get(channel.label, _Declared()), report)
        found.append(Rows(group, rows))
    return found


def _rows(group: ServedGroup, channels: Sequence[SourceChannel], taken: set[int]) -> tuple[int, ...] | None:
    """The next channels of the group's rate; those of its own labels where there are more than it has."""
    rate_hz = group.level0_says.source_rate_hz
    free = [
        row
        for row, channel in enumerate(channels)
        if row not in taken and math.isclose(channel.rate_hz, rate_hz, rel_tol=_SAME_RATE)
    ]
    if len(free) > group.says.n_channels:
        labels = {channel.label for channel in group.channels}
        free = [row for row in free if channels[row].label in labels]
    return tuple(free) if len(free) == group.says.n_channels else None


def _check_sidecar_count(opened: Opened, sidecar: Table | None, in_store: int, report: Report) -> None:
    names = None if sidecar is None else sidecar.column("name")
    if names is None or opened.root.channels_tsv_count_mismatch is not None:
        return
    report.hold(
        Check.CHANNEL_COUNT,
        in_store >= len(names),
        f"the store has {in_store} channels, channels.tsv {len(names)}, and the store does not say so",
    )


def _check_name(
    group: ServedGroup,
    channel: ChannelAttributes,
    source: SourceChannel,
    *,
    renamed: Mapping[str, str],
    repeated: set[str],
    report: Report,
) -> None:
    own = channel.label
    if own in renamed and (source.label in repeated or not source.label):
        own = str(renamed[own])
    holds = not source.named or own.strip() == source.label.strip()
    if not source.named and source.label == "":
        holds = True
    report.hold(
        Check.CHANNELS,
        holds,
        f"row {channel.row_index} of {group.name} is called {channel.label}, in the recording {source.label}",
    )


def _check_type_and_unit(
    group: ServedGroup, channel: ChannelAttributes, source: SourceChannel, declared: _Declared, report: Report
) -> None:
    if declared.kind is not None:
        report.hold(
            Check.TYPES,
            channel.channel_type == declared.kind,
            f"{channel.label} of {group.name} is of the type {channel.channel_type}, channels.tsv says {declared.kind}",
        )
    if source.unit_is_declared:
        only = declared.unit or "n/a"
        detail = f"{channel.label} of {group.name} is in {channel.unit}, its channels.tsv makes it {only}"
        report.hold(Check.UNITS, channel.unit == only, detail)
        return
    own, wanted = quantity(source.unit), quantity(declared.unit)
    served = quantity(channel.unit)
    if channel.channel_type not in DISCRETE and own is not None and wanted is not None and own[0] == wanted[0]:
        text, holds = declared.unit, served == wanted
    else:
        # by which power of ten it may differ is the samples' to say: readers choose between V and uV
        text, holds = source.unit, (served and served[0]) == (own and own[0])
    # a store that claims no unit claims no wrong one; the readers of every format know volts and teslas
    silent = served is None and own is not None and own[0] not in _KNOWN_TO_ALL
    report.hold(
        Check.UNITS,
        holds or silent,
        f"{channel.label} of {group.name} is in {channel.unit}, the recording and its channels.tsv make it {text or 'n/a'}",
    )


def _declared(sidecar: Table | None, labels: Sequence[str]) -> dict[str, _Declared]:
    """What the rows say by label: a row speaks of the channel of its name, else of the only one that differs in case."""
    names = None if sidecar is None else sidecar.column("name")
    if sidecar is None or names is None:
        return {}
    known = set(labels)
    folded = Counter(label.casefold() for label in known)
    rivals = Counter(name.casefold() for name in set(names) - known)
    by_case = {label.casefold(): label for label in known if folded[label.casefold()] == 1 and label not in names}
    blank = ("",) * len(names)
    rows = zip(names, sidecar.column("type") or blank, sidecar.column("units") or blank, strict=True)
    found: dict[str, _Declared] = {}
    for name, kind, unit in rows:
        label = name if name in known else by_case.get(name.casefold())
        if label is None or (name not in known and rivals[name.casefold()] > 1):
            continue
        before = found.get(label, _Declared())
        found[label] = _Declared(
            kind.upper() if kind.upper() in _TYPES else before.kind,
            unit if unit and unit.lower() != "n/a" else before.unit,
        )
    return found
