"""What is known of datasets: by the state whatever their status, by a catalog only those that are ready."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from signal_store import DATASET, PATH, ZARR, put_index, put_version
from sqlalchemy import Engine, text

from api.broker.answers import Archive
from contract.errors import NotServed
from db import datasets
from infra.storage.folder import FolderTarget
from tasks.read.facts import CatalogFacts, SearchAsked, StateFacts, search
from tasks.read.place import target_place


def test_the_state_knows_datasets_that_no_catalog_lists(engine: Engine, tmp_path: Path) -> None:
    target = FolderTarget(tmp_path, port=8321)
    with engine.begin() as c:
        for dataset_id in ("xx000002", "xx000001", "xx000003"):
            datasets.register(c, dataset_id=dataset_id, target=target.url, source=f"/data/{dataset_id}")
        c.execute(text("UPDATE datasets SET visibility = 'private' WHERE dataset_id = 'xx000003'"))
    known = StateFacts(engine, target)
    assert [(row["dataset_id"], row["zarr_status"]) for row in known.rows()] == [("xx000001", None), ("xx000002", None)]
    assert known.row("xx000003") is None, "a private dataset is not known to anybody"
    assert search(known, SearchAsked(has_zarr=True)) == []
    archive = Archive(target_place(target), known)
    assert archive.describe("xx000002")["cost_hint"]["next_cheapest_tool"] == "search_datasets"
    with pytest.raises(NotServed, match="zarr_status is null"):
        archive.ready_index("xx000002")


def test_a_dataset_that_the_catalog_does_not_list_yet_is_found_by_its_index(tmp_path: Path) -> None:
    target = FolderTarget(tmp_path, port=8321)
    put_index(target)
    known = CatalogFacts(target_place(target))
    row = known.row(DATASET)
    assert row is not None
    assert (row["zarr_status"], row["zarr_store_count"]) == ("ready", 1)
    assert known.row("xx000006") is None
    told = {
        "dataset": {"dataset_id": "xx000006", "zarr_status": "failed", "modalities": "eeg,meg", "concept_doi": "10.1/x"}
    }
    asked = CatalogFacts(target_place(target), lambda path: told if path == "datasets/xx000006" else None)
    row = asked.row("xx000006")
    assert row is not None
    assert (row["zarr_status"], row["modalities"], row["doi"]) == ("failed", ["eeg", "meg"], "10.1/x")
    with pytest.raises(NotServed, match="zarr_status is failed"):
        Archive(target_place(target), asked).ready_index("xx000006")


def test_events_of_a_store_stand_in_for_a_file_that_is_not_there(tmp_path: Path) -> None:
    import zarr

    target = FolderTarget(tmp_path / "served", port=8321)
    put_index(target)
    put_version(target, tmp_path, 2)
    at = tmp_path / "served" / DATASET / "zarr" / ZARR
    group = zarr.open_group(at, mode="a").create_group("events", attributes={"label_map": {"1": "go", "2": "stop"}})
    for name, values, kind in (
        ("onset", [0.125, 3.0, float("nan")], "f8"),
        ("duration", [0.5, 0, 0], "f8"),
        ("code", [1, 2, 9], "i4"),
    ):
        group.create_array(name, shape=(3,), dtype=kind)[:] = values
    archive = Archive(target_place(target), CatalogFacts(target_place(target)))
    answer = archive.events(DATASET, PATH, group=None, limit=5, offset=0)
    assert (answer["source"], answer["estimated"]) == ("store_events", True)
    told = [(row["onset_s"], row["sample_index"], row["trial_type"]) for row in answer["rows"]]
    assert told == [(0.125, 13, "go"), (3.0, 300, "stop"), (None, None, None)]
    assert archive.events(DATASET, PATH, group=None, limit=1, offset=1)["truncated"] is True


class Fixed:
    """Rows that stand in a test."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    def rows(self) -> list[dict[str, Any]]:
        return self._rows

    def row(self, dataset_id: str) -> dict[str, Any] | None:
        return next((row for row in self._rows if row["dataset_id"] == dataset_id), None)


ROWS = st.fixed_dictionaries(
    {
        "dataset_id": st.sampled_from(["xx000001", "nm000002"]),
        "name": st.sampled_from([None, "Rest", "ODDBALL"]),
        "license": st.sampled_from([None, "CC0", "CC-BY 4.0"]),
        "modalities": st.lists(st.sampled_from(["eeg", "meg"]), unique=True),
        "zarr_status": st.sampled_from([None, "pending", "ready", "failed"]),
        "zarr_store_count": st.sampled_from([None, 0, 1, 9]),
        "zarr_verify_status": st.sampled_from([None, "verified", "failed"]),
        "subject_count": st.sampled_from([None, 3, 30]),
        "total_recording_duration": st.sampled_from([None, 10.0, 1000.0]),
    }
)


@given(rows=st.lists(ROWS, max_size=8), has=st.booleans(), verified=st.booleans(), subjects=st.sampled_from([0, 3, 10]))
def test_a_search_only_narrows_and_never_takes_the_unknown_for_enough(
    rows: list[dict[str, Any]], has: bool, verified: bool, subjects: int
) -> None:
    found = search(
        Fixed(rows), SearchAsked(has_zarr=has, has_zarr_verified=verified, min_subjects=subjects, modality="EEG")
    )
    for row in rows:
        is_ready = row["zarr_status"] == "ready" and bool(row["zarr_store_count"])
        fits = "eeg" in row["modalities"] and (row["subject_count"] or 0) >= subjects
        fits = (
            fits and (is_ready or not (has or verified)) and (not verified or row["zarr_verify_status"] == "verified")
        )
        assert (row in found) == fits, json.dumps(row)
    assert search(Fixed(rows), SearchAsked()) == rows
