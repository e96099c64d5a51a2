"""Recipes made from documents alone: an index, its entry of a recording, and the metadata of a group and an array."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from contract.array_layout import ArrayLayout, Touched
from contract.documents import read_attributes
from contract.errors import Refused
from contract.layout import level0_path, store_url, view_path
from contract.reading import ReadGroupAttributes, ReadView
from contract.recipe import ChannelRow, Envelope, HowTo, Recipe, ScaleOffset, Slice
from contract.recipe_text import ProgramFacts, python_s3, python_zarr, zarrita
from contract.window import WindowAsked, columns_of, rows_of, samples_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contract.reading import ReadChannel, ReadEntry, ReadGroup, ReadHead

__all__ = [
    "MOST_OBJECTS_NAMED",
    "Selection",
    "array_path",
    "envelope",
    "group_of",
    "make_recipe",
    "select",
    "version_token",
]

MOST_OBJECTS_NAMED = 100
_NOTE = (
    "A serving copy: resampled to at most the rate cap of its modality, with an anti-alias filter, and quantised to int16 with a "
    "scale for each channel. The BIDS source stays authoritative."
)
_VIEW_NOTE = " This is a view level: least and greatest values for display, not for analysis."
_ADDRESSES = ("contract_base", "data_base", "s3_uri", "s3_region", "s3_anonymous")
_NOT_IN_TOKEN = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A window resolved against the metadata of its group and array.

    Parameters
    ----------
    chosen
        The asked channels, in the order asked.
    enclosing
        The slice of rows that holds them.
    columns
        The slice of the last axis: samples, or columns of a view level.
    factor
        Samples of level 0 behind one column; 1 for the signal.
    """

    level: int
    attributes: ReadGroupAttributes
    layout: ArrayLayout
    chosen: tuple[ReadChannel, ...]
    enclosing: tuple[int, int]
    columns: tuple[int, int]
    factor: int

    @property
    def rows(self) -> tuple[int, ...]:
        """The rows of the asked channels, in the order asked."""
        return tuple(channel.row_index for channel in self.chosen)

    @property
    def scale_offset(self) -> ScaleOffset:
        """Their factors and offsets."""
        return ScaleOffset(
            scale=tuple(one.scale for one in self.chosen), offset=tuple(one.offset for one in self.chosen)
        )

    @property
    def touched(self) -> Touched:
        """What reading it touches."""
        return self.layout.touched([*([(0, 2)] if self.level else []), self.enclosing, self.columns])

    @property
    def rate_hz(self) -> float:
        """Samples, or columns, in a second."""
        return self.attributes.rate / self.factor

    @property
    def seconds(self) -> tuple[float, float]:
        """When its first sample is, and when the first one after it would be."""
        start, end = self.columns
        end_sample = min(end * self.factor, self.attributes.n_samples)
        return start * self.factor / self.attributes.rate, end_sample / self.attributes.rate


def version_token(updated_utc: str) -> str:
    """What a client behind a cache adds as ``?v=`` to the URLs of a store."""
    return _NOT_IN_TOKEN.sub("", updated_utc)[:64]


def envelope(
    head: ReadHead,
    *,
    index_etag: str,
    verify_status: str | None,
    entry: ReadEntry | None = None,
    group: ReadGroup | None = None,
    level: int = 0,
) -> Envelope:
    """The provenance of a dataset, of a recording of it, or of a channel group of that."""
    return Envelope(
        dataset_id=head.dataset_id,
        doi=head.doi,
        license=head.license,
        citation=head.citation,
        source_commit=head.source_commit,
        index_etag=index_etag,
        engine_version=head.engine_version,
        source_tree=entry.source_tree if entry else "raw",
        derived=entry.derived if entry else False,
        sss=entry.sss if entry else None,
        dtype="int16",
        effective_rate_hz=group.rate if group else None,
        source_rate_hz=group.source_rate_hz if group else None,
        units_report=entry.units_report if entry else None,
        zarr_verify_status=verify_status,  # type: ignore[arg-type]  # pydantic checks the word
        note=_NOTE + (_VIEW_NOTE if level else ""),
    )


def group_of(entry: ReadEntry, name: str | None) -> ReadGroup:
    """The channel group of this name, or the one with the most channels.

    Raises
    ------
    Refused
        There is no such group, or the index names none at all.
    """
    if not entry.groups:
        raise Refused(
            f"group: the index names no channel groups of {entry.path}, as indexes before format version 3 did not; it can be "
            "read by its store's own metadata, or here once it is converted anew."
        )
    if name is None:
        return max(entry.groups, key=lambda group: group.n_channels or 0)
    found = next((group for group in entry.groups if group.name == name), None)
    if found is None:
        raise Refused(f"group: {name[:80]!r} is none of {', '.join(group.name for group in entry.groups)}.")
    return found


def select(asked: WindowAsked, group_metadata: Mapping[str, Any], array_metadata: Mapping[str, Any]) -> Selection:
    """What ``asked`` means, by the ``zarr.json`` of its channel group and of the array of its level.

    Raises
    ------
    Refused
        The window does not lie in the recording, or metadata is not what the store contract says.
    """
    attributes = read_attributes(ReadGroupAttributes, group_metadata.get("attributes", {}))
    layout = ArrayLayout.read(array_metadata)
    n_axes = 3 if asked.level else 2
    if len(layout.shape) != n_axes or layout.shape[-2] != attributes.n_channels or not all(layout.shape):
        raise Refused("The array does not have the shape that its channel group declares; its store must be made anew.")
    by_row = {channel.row_index: channel for channel in attributes.channels}
    if sorted(by_row) != list(range(attributes.n_channels)):
        raise Refused("The channel group does not name a channel for each row; its store must be made anew.")
    rows = rows_of(asked.channels, attributes.channels)
    columns, factor = samples_of(asked, rate_hz=attributes.rate, n_samples=attributes.n_samples), 1
    if asked.level:
        factor = read_attributes(ReadView, array_metadata.get("attributes", {})).downsample_factor
        columns = columns_of(columns, downsample_factor=factor, n_columns=layout.shape[-1])
    return Selection(
        level=asked.level,
        attributes=attributes,
        layout=layout,
        chosen=tuple(by_row[row] for row in rows),
        enclosing=(min(rows), max(rows) + 1),
        columns=columns,
        factor=factor,
    )


def array_path(zarr: str, group: str, level: int) -> str:
    """Path of the array of a level, relative to a base."""
    return view_path(zarr, group, level) if level else level0_path(zarr, group)


def make_recipe(
    selection: Selection,
    *,
    head: ReadHead,
    entry: ReadEntry,
    group: ReadGroup,
    index_etag: str,
    verify_status: str | None = None,
) -> Recipe:
    """The recipe for a window; pure."""
    path = array_path(entry.zarr, group.name, selection.level)
    at, inside = store_url(head.data_base, entry.zarr), path.removeprefix(f"{entry.zarr}/")
    touched, scale_offset = selection.touched, selection.scale_offset
    start_s, stop_s = selection.seconds
    return Recipe(
        dataset_id=head.dataset_id,
        recording=entry.path,
        **{name: getattr(head, name) for name in _ADDRESSES},
        zarr=entry.zarr,
        group=group.name,
        level=selection.level or "0",
        array_path=path,
        store_url=at,
        root_url=f"{at}zarr.json",
        version_token=version_token(head.updated_utc),
        dtype=selection.layout.dtype,
        codecs=selection.layout.codecs,
        shape=selection.layout.shape,
        chunk_samples=selection.layout.chunk_shape[-1],
        shard_samples=selection.layout.object_shape[-1],
        n_channels=selection.attributes.n_channels,
        rate_hz=selection.rate_hz,
        sample_slice=Slice(start=selection.columns[0], end=selection.columns[1]),
        channel_slice=Slice(start=selection.enclosing[0], end=selection.enclosing[1]),
        channels=tuple(_channel(one) for one in selection.chosen),
        start_s=start_s,
        stop_s=stop_s,
        scale_offset=scale_offset,
        objects=tuple(f"{at}{quote(f'{inside}/{key}')}" for key in touched.keys[:MOST_OBJECTS_NAMED]),
        n_objects=len(touched.keys),
        n_chunks=touched.n_chunks,
        bytes_estimate=touched.bytes_at_most,
        how_to=_how_to(selection, head, entry, inside),
        provenance=envelope(
            head, index_etag=index_etag, verify_status=verify_status, entry=entry, group=group, level=selection.level
        ),
    )


def _channel(channel: ReadChannel) -> ChannelRow:
    return ChannelRow(
        row=channel.row_index,
        label=channel.label,
        unit=channel.unit,
        usable_for_inference=channel.usable_for_inference,
    )


def _how_to(selection: Selection, head: ReadHead, entry: ReadEntry, inside: str) -> HowTo:
    facts = ProgramFacts(
        store_url=store_url(head.data_base, entry.zarr).rstrip("/"),
        s3_store=f"{head.s3_uri.removeprefix('s3://')}{entry.zarr}",
        s3_region=head.s3_region,
        s3_anonymous=head.s3_anonymous,
        version_token=version_token(head.updated_utc),
        inside=inside,
        rows=selection.rows,
        enclosing=selection.enclosing,
        columns=selection.columns,
        is_view=selection.level > 0,
        scale=selection.scale_offset.scale,
        offset=selection.scale_offset.offset,
    )
    has_bucket = head.data_base_kind != "local-http"
    return HowTo(
        python_zarr=python_zarr(facts), python_s3=python_s3(facts) if has_bucket else None, zarrita=zarrita(facts)
    )
