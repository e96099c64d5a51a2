"""The channel groups of a served store, as a stranger opens them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import zarr
from pydantic import ValidationError

from contract.store import ChannelAttributes, GroupAttributes, Level0Attributes, RootAttributes
from contract.verification import Check
from tasks.verify.report import NoVerdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tasks.verify.report import Report
    from tasks.verify.served import ServedStore

__all__ = ["Opened", "ServedGroup", "decoded", "open_groups"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedGroup:
    """One channel group: what it says of itself, and its arrays. ``views`` are by level."""

    name: str
    says: GroupAttributes
    level0_says: Level0Attributes
    level0: Any
    views: Mapping[int, Any]

    @property
    def channels(self) -> tuple[ChannelAttributes, ...]:
        """Its channels in the order of their rows."""
        return tuple(sorted(self.says.channels, key=lambda channel: channel.row_index))


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A store whose root could be read; ``raw`` are the root's attributes as they stand there."""

    root: RootAttributes
    raw: Mapping[str, Any]
    groups: tuple[ServedGroup, ...]
    node: Any


def decoded(served: ServedStore, read: Any) -> Any:
    """What ``read()`` gives, or the exception that says how it cannot be decoded.

    Raises
    ------
    NoVerdict
        The machine or the network failed, not the store.
    """
    try:
        return read()
    except MemoryError as error:
        raise NoVerdict("there was not enough memory to read the store") from error
    except Exception as error:  # noqa: BLE001 - codecs raise whatever they like; what is no fault of the store is raised
        if served.trouble is not None:
            raise NoVerdict(f"the target could not be read: {type(served.trouble).__name__}") from served.trouble
        return error


def open_groups(served: ServedStore, report: Report) -> Opened | None:
    """Open the store and every group that its root names; what is missing or broken stands in the report."""
    node = decoded(served, lambda: zarr.open_group(served, mode="r", zarr_format=3))
    if isinstance(node, Exception):
        report.fail(Check.DECODING, f"the root cannot be opened: {type(node).__name__}")
        return None
    raw = dict(node.attrs)
    try:
        root = RootAttributes.model_validate(raw)
    except ValidationError as error:
        report.fail(Check.METADATA, f"the root's attributes break the contract: {_fields(error)}")
        return None
    groups = [group for name in root.channel_groups if (group := _group(served, node, name, report)) is not None]
    return Opened(root=root, raw=raw, groups=tuple(groups), node=node)


def _group(served: ServedStore, node: Any, name: str, report: Report) -> ServedGroup | None:
    def read() -> ServedGroup:
        own = node[name]
        says = GroupAttributes.model_validate(dict(own.attrs))
        level0 = own["0"]
        views = {level: own[f"view/{level}"] for level in says.view_levels}
        level0_says = Level0Attributes.model_validate(dict(level0.attrs))
        return ServedGroup(name=name, says=says, level0_says=level0_says, level0=level0, views=views)

    group = decoded(served, read)
    if isinstance(group, ValidationError):
        report.fail(Check.METADATA, f"{name}: its attributes break the contract: {_fields(group)}")
        return None
    if isinstance(group, Exception):
        report.fail(Check.DECODING, f"{name} cannot be opened: {type(group).__name__}")
        return None
    assert isinstance(group, ServedGroup)
    return group if _consistent(group, report) else None


def _consistent(group: ServedGroup, report: Report) -> bool:
    """Whether what the group says of itself fits its arrays, so that they can be compared at all."""
    says, shape = group.says, tuple(group.level0.shape)
    rows = [channel.row_index for channel in group.channels]
    own = (says.n_channels, says.n_samples)
    held = (
        report.hold(Check.METADATA, own == shape, f"{group.name} declares {own} and holds {shape}")
        and report.hold(
            Check.METADATA, rows == list(range(shape[0])), f"{group.name}: its channels are not in its rows one by one"
        )
        and report.hold(
            Check.METADATA,
            group.level0.dtype == "int16",
            f"{group.name}: level 0 holds {group.level0.dtype}, not int16",
        )
    )
    if not held:
        return False
    scales = [[channel.scale, channel.offset] for channel in group.channels]
    arrays = [list(pair) for pair in zip(group.level0_says.scale, group.level0_says.offset, strict=False)]
    report.hold(
        Check.METADATA,
        scales == arrays and says.rate == group.level0_says.rate,
        f"{group.name}: scale, offset or rate differ between the group and its level 0",
    )
    return bool(len(arrays) == shape[0])


def _fields(error: ValidationError) -> str:
    return ", ".join(".".join(str(part) for part in one["loc"]) for one in error.errors(include_input=False)[:3])
