"""Puts groups that biosigIO wrote one by one under one root, and declares their true rates."""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING, Any

from contract.layout import CHUNK_SECONDS, SHARD_SECONDS, group_name
from contract.rates import RATE_CAPS_HZ
from contract.store import LABELS_DEDUPLICATED, NOTE
from tasks.convert.documents import ROOT, Documents
from tasks.convert.pieces import WrittenGroup

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tasks.convert.pieces import EngineInput, Piece, Rates
    from tasks.formats.protocol import Header

__all__ = ["merged"]

_UNITS = "channels_tsv_units"
_MATCHED = "matched_case_insensitive"
# Written by one route only, or, by biosigIO's EDF importer, always as 0.
_ROUTE_FACTS = ("streamed", "filetype", "datarecord_duration")


def merged(given: EngineInput, pieces: Sequence[Piece], store: Path) -> tuple[Documents, tuple[WrittenGroup, ...]]:
    """Put the chunks of ``pieces``, which are used up, below ``store``, and make its documents of theirs.

    The root is the first piece's, completed by the others'.
    """
    first, documents = pieces[0], Documents()
    store.mkdir(parents=True)
    documents.put(ROOT, first.documents.document(ROOT))
    documents.take(first.documents, "events", "events")
    _move(first.store / "events", store / "events")
    written: list[WrittenGroup] = []
    for piece in pieces:
        (own,) = piece.documents.attributes()["channel_groups"]
        name = group_name(
            piece.rates.modality,
            piece.rates.served_hz,
            native_hz=piece.rates.native_hz,
            taken=[group.name for group in written],
        )
        documents.take(piece.documents, own, name)
        _move(piece.store / own, store / name)
        _declare(documents, name, piece.rates, _prefilters(given.header, piece))
        shutil.rmtree(piece.store, ignore_errors=True)
        written.append(WrittenGroup(name=name, rows=piece.rows, losses=piece.losses))
    documents.edit(ROOT, lambda values: _root(values, given, pieces, written))
    return documents, tuple(written)


def _move(chunks: Path, place: Path) -> None:
    """Move the chunks of a node, if it has any: one of zeros only has none."""
    with contextlib.suppress(FileNotFoundError):
        chunks.rename(place)


def _declare(documents: Documents, group: str, rates: Rates, prefilters: Sequence[str]) -> None:
    """Write the true rates over the terms of the ratio that biosigIO was told."""
    served, native = rates.served_hz, rates.native_hz

    def of_group(values: dict[str, Any]) -> None:
        values.update(rate=served, original_rate=native, chunk_seconds=CHUNK_SECONDS, shard_seconds=SHARD_SECONDS)
        for row, channel in enumerate(values["channels"]):
            channel.update(target_rate=served, original_rate=native)
            if prefilters:
                channel["prefilter"] = prefilters[row]

    documents.edit(group, of_group)
    documents.edit(f"{group}/0", lambda values: values.update(rate=served, source_rate_hz=native))
    for level in documents.attributes(group)["view_levels"]:
        documents.edit(
            f"{group}/view/{level}",
            lambda values: values.update(rate_effective=served / values["downsample_factor"]),
        )


def _prefilters(header: Header, piece: Piece) -> list[str]:
    """Each channel's filter, where the header tells it; the streaming route does not."""
    told = header.prefilters
    return [told[row] for row in piece.rows] if piece.rows[-1] < len(told) else []


def _root(values: dict[str, Any], given: EngineInput, pieces: Sequence[Piece], written: Sequence[WrittenGroup]) -> None:
    values["channel_groups"] = [group.name for group in written]
    values["modality_rates"] = {name: int(cap) for name, cap in RATE_CAPS_HZ.items()}
    values["note"] = NOTE
    metadata = {key: value for key, value in values["recording_metadata"].items() if key not in _ROUTE_FACTS}
    metadata["number_of_signals"] = sum(len(group.rows) for group in written)
    if given.is_edf and given.header.n_samples is not None and given.header.rate_hz:
        metadata["file_duration"] = given.header.n_samples / given.header.rate_hz
    renamed = dict(metadata.get(LABELS_DEDUPLICATED, {}))
    for piece in pieces:
        renamed.update(piece.renamed)
    if renamed:
        metadata[LABELS_DEDUPLICATED] = dict(sorted(renamed.items()))
    units = _units(pieces)
    if units is not None:
        values[_UNITS] = metadata[_UNITS] = units
    values["recording_metadata"] = metadata


def _units(pieces: Sequence[Piece]) -> dict[str, Any] | None:
    """The account of the channels.tsv over all parts; each part has one, however many groups it became."""
    accounts = [account for account in {piece.part: piece.units for piece in pieces}.values() if account is not None]
    if not accounts:
        return None
    total: dict[str, Any] = dict(accounts[0])
    for account in accounts[1:]:
        for key, value in account.items():
            if key == _MATCHED:
                total[key] = {**total.get(key, {}), **value}
            elif not isinstance(value, bool):
                total[key] = total.get(key, 0) + value
    return total
