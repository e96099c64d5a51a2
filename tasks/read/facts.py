"""What is known of the datasets of a place: from the state where there is one, else from the catalog that it serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from contract.errors import NotServed
from contract.layout import is_dataset_id
from contract.times import utc_stamp
from tasks.read.index import read_catalog, read_index

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Engine

    from infra.storage.protocol import Target
    from tasks.read.place import Place

__all__ = ["CatalogFacts", "DatasetsKnown", "SearchAsked", "StateFacts", "search"]

_READY = "ready"


class DatasetsKnown(Protocol):
    """Rows of datasets, with the fields of the catalog and ``zarr_status``; unknown values are None."""

    def rows(self) -> list[dict[str, Any]]:
        """Every dataset that anybody may see, by id."""
        ...

    def row(self, dataset_id: str) -> dict[str, Any] | None:
        """One of them; None for one that is not known or not public."""
        ...


class CatalogFacts:
    """Datasets as a catalog lists them: those that are ready. ``ask`` puts a question to the archive's API, if it has one."""

    def __init__(self, place: Place, ask: Callable[[str], dict[str, Any] | None] | None = None) -> None:
        self._place = place
        self._ask = ask

    def rows(self) -> list[dict[str, Any]]:
        """See ``DatasetsKnown``."""
        return [_from_catalog(row) for row in read_catalog(self._place)]

    def row(self, dataset_id: str) -> dict[str, Any] | None:
        """See ``DatasetsKnown``; a dataset that the catalog does not list yet is looked for by its index."""
        found = next((row for row in self.rows() if row["dataset_id"] == dataset_id), None)
        if found is not None or not is_dataset_id(dataset_id):
            return found
        told = self._ask(f"datasets/{dataset_id}") if self._ask is not None else None
        if told is not None and isinstance(told.get("dataset"), dict):
            return _from_api(told["dataset"])
        try:
            head = read_index(self._place, dataset_id).head
        except NotServed:
            return None
        known = {"dataset_id": dataset_id, "doi": head.doi, "license": head.license}
        return _from_catalog({**known, "store_count": head.store_count, "zarr_source_commit": head.source_commit})


class StateFacts:
    """Datasets of a target as the state knows them, whatever their status."""

    def __init__(self, engine: Engine, target: Target) -> None:
        self._engine = engine
        self._target = target

    def rows(self) -> list[dict[str, Any]]:
        """See ``DatasetsKnown``."""
        from db.catalog import catalog_rows
        from db.datasets import list_datasets

        with self._engine.connect() as c:
            datasets = list_datasets(c, target=self._target.url)
            ready = {row.dataset_id: row for row in catalog_rows(c, target=self._target.url)}
        found = []
        for dataset in datasets:
            if dataset.visibility != "public" or not dataset.active:
                continue
            row = ready.get(dataset.dataset_id)
            published = dataset.published
            found.append(
                {
                    "dataset_id": dataset.dataset_id,
                    "name": dataset.facts.name,
                    "doi": dataset.facts.doi,
                    "license": dataset.facts.license,
                    "modalities": list(dataset.facts.modalities),
                    "tasks": list(dataset.facts.tasks),
                    "subject_count": dataset.facts.subject_count,
                    "zarr_status": dataset.status or ("pending" if dataset.converting else None),
                    "zarr_store_count": published.counts.stores if published else 0,
                    "recording_count": published.counts.stores + published.counts.failures if published else None,
                    "total_recording_duration": published.duration_s if published else None,
                    "zarr_converted_at": utc_stamp(published.converted_at) if published else None,
                    "zarr_source_commit": published.source_commit if published else None,
                    "zarr_errors": dataset.errors,
                    "zarr_verify_status": row.zarr_verify_status if row else None,
                    "zarr_verified_at": utc_stamp(row.zarr_verified_at) if row and row.zarr_verified_at else None,
                    "index_url": f"{self._target.addresses(dataset.dataset_id).contract_base}index.json",
                }
            )
        return sorted(found, key=lambda each: str(each["dataset_id"]))

    def row(self, dataset_id: str) -> dict[str, Any] | None:
        """See ``DatasetsKnown``."""
        return next((row for row in self.rows() if row["dataset_id"] == dataset_id), None)


def _from_catalog(row: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in row.items() if name != "store_count"}
    return {**kept, "zarr_status": _READY, "zarr_store_count": row.get("store_count")}


def _from_api(row: dict[str, Any]) -> dict[str, Any]:
    """A row of ``GET /datasets/<id>``: its lists are texts with commas, its DOI has another name."""
    listed = {name: [one for one in str(row.get(name) or "").split(",") if one] for name in ("modalities", "tasks")}
    return {**row, **listed, "doi": row.get("concept_doi"), "subject_count": row.get("participants")}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAsked:
    """What datasets are looked for. ``text`` is looked for in ids, names, DOIs and tasks, in any case."""

    text: str | None = None
    modality: str | None = None
    license: str | None = None
    has_zarr: bool = False
    has_zarr_verified: bool = False
    min_recordings: int = 0
    min_subjects: int = 0
    min_duration_s: float = 0.0


def search(known: DatasetsKnown, asked: SearchAsked) -> list[dict[str, Any]]:
    """The rows that fit everything that is asked. A value that is not known fits no lower bound above zero."""
    return [row for row in known.rows() if _fits(row, asked)]


def _fits(row: dict[str, Any], asked: SearchAsked) -> bool:
    is_ready = row.get("zarr_status") == _READY and (row.get("zarr_store_count") or 0) > 0
    if (asked.has_zarr or asked.has_zarr_verified) and not is_ready:
        return False
    if asked.has_zarr_verified and row.get("zarr_verify_status") != "verified":
        return False
    if asked.modality and asked.modality.lower() not in [str(one).lower() for one in row.get("modalities") or ()]:
        return False
    if asked.license and asked.license.lower() not in str(row.get("license") or "").lower():
        return False
    bounds = (
        ("zarr_store_count", asked.min_recordings),
        ("subject_count", asked.min_subjects),
        ("total_recording_duration", asked.min_duration_s),
    )
    if any(bound > 0 and (row.get(name) or 0) < bound for name, bound in bounds):
        return False
    if not asked.text:
        return True
    said = [row.get(name) for name in ("dataset_id", "name", "doi")] + list(row.get("tasks") or ())
    return any(asked.text.lower() in str(one).lower() for one in said if one)
