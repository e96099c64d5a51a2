"""The demonstration, from nothing: own Postgres, own Prefect, own workers; then everything it publishes is looked at."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest
import zarr
from command import ROOT, Finished, Zarrmill
from comparison import SPOILED, Comparison, comparisons
from privacy_scan import found, places
from reference_signal import disagreements
from served_dataset import Served, object_digests

from cli.demo.dataset import COLLIDING, PLANTED_FAILURES, UNTIMED_EVENT
from db.stores import unpack_digests
from infra import services
from infra.database import engine as open_engine
from infra.settings import load_settings


@dataclass(frozen=True)
class Demo:
    command: Zarrmill
    first: Finished
    dataset: Path
    served: Served


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("demo")
    command = Zarrmill(home=folder / "home", cwd=folder)
    first = command.run("demo", "--json")
    assert first.summary["dataset_id"] == "xx000001"
    return Demo(command, first, folder / "demo-dataset", Served(folder / "served", "xx000001"))


FAILED = {path: code.value for path, code in PLANTED_FAILURES.items()} | {COLLIDING[1]: "store_path_collision"}


def test_coverage_balances_and_every_planted_problem_is_reported_as_what_it_is(demo: Demo) -> None:
    index = demo.served.index
    assert index["discovered_count"] == 12
    assert index["discovered_count"] == index["store_count"] + index["failure_count"] + index["pending_count"]
    assert {entry["path"]: entry["code"] for entry in index["failures"]} == FAILED
    assert index["pending"] == []
    assert len(index["stores"]) == 9
    assert (index["engine_version"], index["errors"]) == ("4", len(PLANTED_FAILURES))
    twin = next(entry for entry in index["failures"] if entry["path"] == COLLIDING[1])
    assert COLLIDING[0] in twin["detail"]


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("xx000001/zarr/index.json", "zarr-index-v3-local.json"),
        ("xx000001/zarr/manifest.json", "zarr-manifest-v1.json"),
        ("zarr-catalog.json", "zarr-catalog-v1.json"),
    ],
)
def test_each_document_fits_its_published_schema(demo: Demo, name: str, schema: str) -> None:
    document = json.loads((demo.served.target / name).read_text())
    rules = json.loads((ROOT / "contract" / "schemas" / schema).read_text())
    jsonschema.validate(document, rules)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document, "unknown": 1}, rules)


def test_nothing_that_is_served_names_a_place_of_this_machine(demo: Demo) -> None:
    words = places(demo.dataset, demo.served.target, demo.command.home)
    assert found(demo.served.target, words) == []
    assert found(demo.served.target, [demo.served.dataset_id])  # the scan sees what is there


@pytest.fixture(scope="module")
def compared(demo: Demo) -> list[Comparison]:
    return comparisons(demo.served, demo.dataset)


def test_every_served_signal_is_its_source_within_one_quantisation_step(compared: list[Comparison]) -> None:
    assert {Path(one.path.rpartition(" ")[0]).suffix for one in compared} == {".edf", ".bdf", ".vhdr", ".set", ".fif"}
    assert [(one.path, off) for one in compared if (off := disagreements(one.served, one.wanted))] == []


@pytest.mark.parametrize("twin", SPOILED)
def test_the_comparison_notices_a_signal_that_is_wrong(compared: list[Comparison], twin: str) -> None:
    for one in compared:
        wrong = replace(one.served, physical=SPOILED[twin](one.served.physical))
        assert disagreements(wrong, one.wanted), one.path


def test_every_store_carries_its_provenance_and_no_trace_of_this_machine(demo: Demo) -> None:
    secret = (str(demo.dataset), str(demo.command.home), str(ROOT), "/tmp", "scratch")
    for entry in demo.served.index["stores"]:
        store = demo.served.base / entry["zarr"]
        root = zarr.open_group(store, mode="r")
        assert root.attrs["nemar"]["dataset_id"] == "xx000001"
        assert root.attrs["nemar"]["source_commit"] == demo.served.index["source_commit"]
        assert root.attrs["nemar"]["contract_url"] == f"{demo.served.index['contract_base']}{entry['zarr']}/"
        assert root.attrs["recording_metadata"]["source_file"] == entry["path"]
        for metadata in store.rglob("zarr.json"):
            text = metadata.read_text()
            assert not [word for word in secret if word in text], metadata
    for document in ("index.json", "manifest.json"):
        text = (demo.served.base / document).read_text()
        assert not [word for word in secret if word in text], document


def test_every_object_is_the_one_whose_digest_the_database_holds(demo: Demo) -> None:
    from sqlalchemy import text

    settings = load_settings(home=demo.command.home)
    with services.database(settings) as url:
        engine = open_engine(url)
        with engine.connect() as c:
            rows = c.execute(text("SELECT zarr, digests FROM stores")).all()
        engine.dispose()
    assert {row.zarr for row in rows} == {entry["zarr"] for entry in demo.served.index["stores"]}
    for row in rows:
        assert object_digests(demo.served.base / row.zarr) == dict(unpack_digests(row.digests))


def test_events_hold_every_row_with_its_sample_and_the_one_without_an_onset(demo: Demo) -> None:
    index = demo.served.index
    table = pq.read_table(demo.served.base / "events.parquet").to_pylist()
    assert index["events_row_count"] == len(table)
    rates = {(e["zarr"], g["name"]): g["rate"] for e in index["stores"] for g in e["groups"]}
    for row in table:
        rate = rates[row["store_path"], row["group_name"]]
        wanted = None if row["onset_s"] is None else math.floor(row["onset_s"] * rate + 0.5)
        assert row["sample_index"] == wanted
    untimed = [row for row in table if row["onset_s"] is None]
    assert [row["store_path"] for row in untimed] == [UNTIMED_EVENT.replace("_events.tsv", "_eeg.zarr")]
    per_store = {entry["zarr"]: entry.get("n_events") for entry in index["stores"]}
    for zarr_path, n_events in per_store.items():
        rows = [row for row in table if row["store_path"] == zarr_path]
        assert len(rows) == (n_events or 0)


def test_manifest_and_catalog_agree_with_the_index(demo: Demo) -> None:
    index, manifest, catalog = demo.served.index, demo.served.manifest, demo.served.catalog
    assert [store["zarr"] for store in manifest["stores"]] == [store["zarr"] for store in index["stores"]]
    (events,) = manifest["files"]
    assert events["row_count"] == index["events_row_count"]
    assert events["size_bytes"] == (demo.served.base / "events.parquet").stat().st_size
    (row,) = catalog["datasets"]
    assert (row["store_count"], row["recording_count"], row["recordings_unavailable"]) == (9, 12, 3)
    assert row["subject_count"] == 7
    longest = sum(max(group["duration_s"] for group in store["groups"]) for store in index["stores"])
    assert row["total_recording_duration"] == pytest.approx(longest)
    assert row["index_url"] == f"{index['contract_base']}index.json"


def test_a_second_run_does_nothing_says_so_and_starts_neither_prefect_nor_dask(demo: Demo) -> None:
    before = demo.served.files()
    again = demo.command.run("convert", demo.dataset, "--json")
    assert again.summary["run_number"] is None
    assert (again.summary["changed"], again.summary["published"]) == (False, True)
    assert "starting the servers" not in again.stdout
    assert demo.served.files() == before


def test_why_tells_state_reason_and_every_attempt(demo: Demo) -> None:
    (path,) = [path for path, code in FAILED.items() if code == "corrupt_or_truncated"]
    told = demo.command.run("why", "xx000001", path).stdout
    assert "corrupt_or_truncated" in told
    assert re.search(r"projected.*permitted.*measured", told)
    served = demo.command.run("why", "xx000001", COLLIDING[0], "--json").lines[-1]
    assert [attempt["outcome"] for attempt in served["attempts"]] == ["done"]
    (attempt,) = served["attempts"]
    assert 0 < attempt["measured_bytes"] <= attempt["permitted_bytes"]
    assert {"fetch", "child", "upload"} <= set(attempt["stage_seconds"])
    refused: dict[str, Any] = demo.command.run("why", "xx000001", "sub-99/none.edf", code=None).__dict__
    assert refused["code"] == 2


def test_status_balances(demo: Demo) -> None:
    told = demo.command.run("status", "xx000001").stdout
    assert "12 discovered = 9 stores + 3 failures + 0 pending" in told


def test_strict_exits_3_while_something_has_failed(demo: Demo) -> None:
    assert demo.command.run("convert", demo.dataset, "--strict", "--json", code=3).summary["failures"] == 3
