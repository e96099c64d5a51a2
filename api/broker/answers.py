"""What the tools answer: everything about datasets and recordings that is asked for, within bounds, with where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract.errors import NotServed, Refused
from contract.layout import is_dataset_id
from contract.reading import ReadEntry, ReadGroup
from contract.recipe_making import envelope, group_of
from tasks.read.events import read_events
from tasks.read.facts import SearchAsked, search
from tasks.read.index import ReadIndex, find_entry, read_entry, read_index
from tasks.read.store_events import read_store_events

if TYPE_CHECKING:
    from tasks.read.facts import DatasetsKnown
    from tasks.read.place import Place

__all__ = ["Archive"]

_NOT_SERVED_SHOWN = 20
_BREVITY = "zarr_verify_status null means that nobody has compared the copy with its source yet."


@dataclass(frozen=True, slots=True)
class Archive:
    """A place, and what is known of its datasets."""

    place: Place
    known: DatasetsKnown

    def search(self, asked: SearchAsked, limit: int) -> dict[str, Any]:
        """Datasets that fit, by id."""
        found = search(self.known, asked)
        return {
            "results": found[:limit],
            "count": len(found[:limit]),
            "total_count": len(found),
            "limit": limit,
            "truncated": len(found) > limit,
            "note": _BREVITY,
        }

    def describe(self, dataset_id: str) -> dict[str, Any]:
        """What is known of one dataset, and what to ask next."""
        row = self._row(dataset_id)
        if _is_ready(row):
            hint = (
                "list_recordings",
                "One request for the index; recipes and overviews need a recording's path from it.",
            )
        else:
            hint = ("search_datasets", "This dataset has no copy that can be read; has_zarr finds those that have.")
        return {**row, "cost_hint": {"next_cheapest_tool": hint[0], "reason": hint[1]}}

    def recordings(
        self, dataset_id: str, *, limit: int, offset: int, modality: str | None, min_duration_s: float, derived: bool
    ) -> dict[str, Any]:
        """The served recordings of a dataset, a part at a time, and how many are not."""
        index, status = self.ready_index(dataset_id)
        entries = [read_entry(entry) for entry in index.stores]
        kept = [entry for entry in entries if derived or not entry.derived]
        fitting = [
            entry
            for entry in kept
            if (modality is None or modality.lower() in entry.modalities) and _duration_s(entry) >= min_duration_s
        ]
        page = fitting[offset : offset + limit]
        head = index.head
        return {
            "recordings": [_recording(entry) for entry in page],
            "count": len(page),
            "total_count": len(fitting),
            "limit": limit,
            "offset": offset,
            "discovered_count": head.discovered_count,
            "store_count": head.store_count,
            "failure_count": head.failure_count,
            "pending_count": head.pending_count,
            "excluded_derived_count": len(entries) - len(kept),
            "not_served": _not_served(index),
            "index_format_version": head.format_version,
            "provenance": envelope(head, index_etag=index.etag, verify_status=status).model_dump(mode="json"),
        }

    def events(self, dataset_id: str, recording: str, *, group: str | None, limit: int, offset: int) -> dict[str, Any]:
        """Events of a recording, for one of its channel groups."""
        index, entry, status = self.ready_entry(dataset_id, recording)
        chosen = group_of(entry, group)
        source, estimated = "events_parquet", False
        found = None
        if index.head.events_parquet is not None:
            found = read_events(self.place, dataset_id, entry.zarr, group=chosen.name, limit=limit, offset=offset)
        if found is not None:
            rows, truncated = found.rows, found.truncated
        else:
            source, estimated = "store_events", True
            rows, truncated = read_store_events(self.place, dataset_id, entry, chosen, limit=limit, offset=offset)
        return {
            "recording": entry.path,
            "group": chosen.name,
            "rows": rows,
            "count": len(rows),
            "limit": limit,
            "offset": offset,
            "truncated": truncated,
            "n_events": entry.n_events,
            "n_samples": chosen.n_samples,
            "source": source,
            "estimated": estimated,
            "provenance": self.provenance(index, status, entry, chosen),
        }

    def provenance(
        self, index: ReadIndex, status: str | None, entry: ReadEntry, group: ReadGroup, level: int = 0
    ) -> dict[str, Any]:
        """The envelope of an answer about a channel group."""
        made = envelope(index.head, index_etag=index.etag, verify_status=status, entry=entry, group=group, level=level)
        told: dict[str, Any] = made.model_dump(mode="json")
        return told

    def ready_entry(self, dataset_id: str, recording: str) -> tuple[ReadIndex, ReadEntry, str | None]:
        """The index, the entry of a served recording, and the verdict on the dataset.

        Raises
        ------
        NotServed
            The dataset is not ready, or the recording is not served; the sentence says in which state it is.
        """
        index, status = self.ready_index(dataset_id)
        return index, find_entry(index, recording), status

    def ready_index(self, dataset_id: str) -> tuple[ReadIndex, str | None]:
        """The index of a dataset that is ready, and the verdict on it."""
        row = self._row(dataset_id)
        if not _is_ready(row):
            told = row.get("zarr_status")
            raise NotServed(
                f"{dataset_id} has no copy that can be read: its zarr_status is {told or 'null'}, with "
                f"{row.get('zarr_store_count') or 0} stores. search_datasets with has_zarr finds those that have one.",
                state=str(told or "unknown"),
            )
        status = row.get("zarr_verify_status")
        return read_index(self.place, dataset_id), status if isinstance(status, str) else None

    def _row(self, dataset_id: str) -> dict[str, Any]:
        if not is_dataset_id(dataset_id):
            raise Refused("dataset_id: it is two lower-case letters and six digits, such as xx000001.")
        row = self.known.row(dataset_id)
        if row is None:
            raise NotServed(f"No dataset {dataset_id} is known here: its zarr_status is null.", state="unknown")
        return row


def _is_ready(row: dict[str, Any]) -> bool:
    return row.get("zarr_status") == "ready" and (row.get("zarr_store_count") or 0) > 0


def _duration_s(entry: ReadEntry) -> float:
    return max((group.duration_s or 0.0 for group in entry.groups), default=0.0)


def _recording(entry: ReadEntry) -> dict[str, Any]:
    groups = [
        {
            "name": group.name,
            "modality": group.modality,
            "rate_hz": group.rate,
            "source_rate_hz": group.source_rate_hz,
            "n_channels": group.n_channels,
            "n_samples": group.n_samples,
            "n_view_levels": group.n_view_levels,
        }
        for group in entry.groups
    ]
    return {
        "recording": entry.path,
        "zarr": entry.zarr,
        "modalities": list(entry.modalities),
        "derived": entry.derived,
        "duration_s": _duration_s(entry),
        "n_events": entry.n_events,
        "groups": groups,
    }


def _not_served(index: ReadIndex) -> list[dict[str, Any]]:
    """Up to 20 recordings without a store, verdicts first, each with its state and code."""
    failed = [{"recording": one.get("path"), "state": "failed", "code": one.get("code")} for one in index.failures]
    pending = [{"recording": one.get("path"), "state": "pending", "code": one.get("reason")} for one in index.pending]
    return (failed + pending)[:_NOT_SERVED_SHOWN]
