"""A dataset that changes between runs: each run touches exactly what changed, and says why."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pytest
from command import Zarrmill
from served_dataset import Served
from small_dataset import write_recording, write_root

from infra.postgres import PostgresServer

_READY = "SELECT body FROM callbacks WHERE status = 'ready' AND body IS NOT NULL"


@dataclass(frozen=True)
class Changing:
    zarrmill: Zarrmill
    folder: Path
    served: Served

    def convert(self, *more: str) -> dict[str, object]:
        return self.zarrmill.run("convert", self.folder, "--json", *more).summary

    def plan(self) -> dict[str, dict[str, object]]:
        told = self.zarrmill.run("plan", self.folder, "--json").lines[-1]
        return {row["path"]: row for row in told["rows"]} | {"dropped": {path: {} for path in told["dropped"]}}


@pytest.fixture
def changing(zarrmill: Zarrmill, tmp_path: Path) -> Changing:
    folder = tmp_path / "xx000042"
    write_root(folder)
    for subject in ("01", "02", "03", "04", "05", "06"):
        write_recording(folder, subject)
    write_recording(folder, "07", task="count")
    (folder / "task-count_eeg.json").write_text('{"PowerLineFrequency": 50}')
    return Changing(zarrmill, folder, Served(tmp_path / "served", "xx000042"))


def _path(subject: str, task: str = "rest") -> str:
    return f"sub-{subject}/eeg/sub-{subject}_task-{task}_eeg.edf"


def test_every_kind_of_change_rebuilds_exactly_what_it_touches(changing: Changing) -> None:
    first = changing.convert()
    assert (first["dataset_id"], first["converted"], first["stores"]) == ("xx000042", 7, 7)
    before = changing.served.files()
    rows_before = pq.read_table(changing.served.base / "events.parquet").num_rows

    eeg = changing.folder
    write_recording(eeg, "01", seed=1)  # a changed signal
    channels = eeg / "sub-02/eeg/sub-02_task-rest_channels.tsv"
    channels.write_text(channels.read_text().replace("A\tEEG", "A\tEOG"))  # a changed sidecar
    (eeg / "sub-03/eeg/sub-03_task-rest_events.tsv").unlink()  # events that are gone
    shutil.rmtree(eeg / "sub-04")  # a removed recording
    (eeg / "sub-05").rename(eeg / "sub-08")  # a renamed subject
    for file in (eeg / "sub-08/eeg").iterdir():
        file.rename(file.with_name(file.name.replace("sub-05", "sub-08")))
    (eeg / "task-count_eeg.json").write_text('{"PowerLineFrequency": 60}')  # an inherited sidecar
    write_recording(eeg, "09")  # a new recording

    plan = changing.plan()
    assert set(plan["dropped"]) == {_path("04"), _path("05")}
    why = {path: (row["action"], row["why"]) for path, row in plan.items() if path != "dropped"}
    assert why == {
        _path("01"): ("convert", "source"),
        _path("02"): ("convert", "source"),
        _path("03"): ("convert", "source"),
        _path("06"): ("carry", None),
        _path("07", "count"): ("convert", "source"),
        _path("08"): ("convert", "new"),
        _path("09"): ("convert", "new"),
    }
    assert "sub-02_task-rest_channels.tsv changed" in str(plan[_path("02")]["changed"])
    assert "sub-03_task-rest_events.tsv removed" in str(plan[_path("03")]["changed"])
    assert "task-count_eeg.json changed" in str(plan[_path("07", "count")]["changed"])
    assert changing.served.files() == before, "a plan writes nothing"

    second = changing.convert()
    assert (second["converted"], second["carried"], second["stores"]) == (6, 1, 7)
    assert changing.served.lists() == dict.fromkeys(why, "served")
    after = changing.served.files()
    untouched = "sub-06/eeg/sub-06_task-rest_eeg.zarr"
    assert {name: mark for name, mark in after.items() if untouched in name} == {
        name: mark for name, mark in before.items() if untouched in name
    }
    assert not [name for name in after if "sub-04" in name or "sub-05" in name], "removed stores are gone"
    entries = {entry["path"]: entry for entry in changing.served.index["stores"]}
    assert entries[_path("07", "count")]["power_line_frequency"] == 60.0
    assert "n_events" not in entries[_path("03")]
    rows = pq.read_table(changing.served.base / "events.parquet").to_pylist()
    assert len(rows) == rows_before - 2, "one recording lost its events, one went, one was renamed, one came"
    assert {row["store_path"] for row in rows} == {
        entry["zarr"] for path, entry in entries.items() if path != _path("03")
    }

    (changing.folder / "sub-06/eeg/sub-06_task-rest_events.tsv").write_text("onset\tduration\nn/a\t1\n")
    # nobody listens there, so that the callback stays where it can be read
    telling = {**changing.zarrmill.settings, "ZARRMILL_CALLBACK_URL": "http://127.0.0.1:9/zarr-ready"}
    replace(changing, zarrmill=replace(changing.zarrmill, settings=telling)).convert()
    with psycopg.connect(changing.zarrmill.settings["ZARRMILL_DATABASE_URL"].replace("+psycopg", "")) as c:
        told = [json.loads(row[0])["events_stores_without_rows"] for row in c.execute(_READY).fetchall()]
    assert told == [1]
    settled = changing.served.files()
    assert changing.convert()["run_number"] is None
    assert changing.served.files() == settled


def test_what_was_lost_at_the_target_is_built_again(changing: Changing) -> None:
    changing.convert()
    expected = changing.served.settled_index()
    shutil.rmtree(changing.served.store(_path("02")))
    (changing.served.base / "index.json").unlink()
    again = changing.convert()
    assert (again["converted"], again["stores"]) == (1, 7)
    assert changing.served.settled_index() == expected
    (changing.served.target / "zarr-catalog.json").unlink()
    changing.convert()
    assert [row["dataset_id"] for row in changing.served.catalog["datasets"]] == ["xx000042"]


def test_an_index_that_the_database_does_not_know_is_refused_and_left_alone(changing: Changing, tmp_path: Path) -> None:
    foreign = changing.served.base / "index.json"
    foreign.parent.mkdir(parents=True)
    foreign.write_text('{"format": "somebody else\'s", "stores": [{"path": "a"}], "failures": [], "pending": []}')
    refused = changing.zarrmill.run("convert", changing.folder, code=2)
    assert "adopt" in refused.stderr
    assert foreign.read_text().startswith('{"format": "somebody')
    assert list(changing.served.target.rglob("*.zarr")) == []


def test_a_dataset_whose_state_was_lost_is_taken_over_and_carried_while_the_source_is_the_same(
    changing: Changing, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    (changing.folder / "sub-06/eeg/sub-06_task-rest_eeg.edf").write_bytes(b"0       not much of a header")
    changing.convert()
    expected = changing.served.settled_index()
    postgres_server.create_database("empty_state")
    try:
        settings = {**changing.zarrmill.settings, "ZARRMILL_DATABASE_URL": postgres_server.url("empty_state")}
        forgetful = replace(changing.zarrmill, settings=settings)
        before = changing.served.files()
        refused = forgetful.run("convert", changing.folder, code=2)
        assert "zarrmill adopt xx000042" in refused.stderr
        forgetful.run("adopt", "xx000041", changing.folder, code=2)
        assert "6 stores" in forgetful.run("adopt", "xx000042", changing.folder).stdout
        forgetful.run("adopt", "xx000042", changing.folder, code=2)
        assert changing.served.files() == before, "taking over writes nothing at the target"
        again = forgetful.run("convert", changing.folder, "--json").summary
        assert (again["converted"], again["stores"], again["failures"]) == (0, 6, 1)
        assert changing.served.settled_index() == expected
        after = changing.served.files()
        moved = {path for path, what in before.items() if after[path] != what}
        assert not [path for path in moved if ".zarr/" in path], "trusted stores are untouched"
        assert "taken over" in forgetful.run("why", "xx000042", _path("01")).stdout
    finally:
        postgres_server.drop_database("empty_state")


def test_a_new_licence_reaches_every_store_and_damage_is_told_and_mended(changing: Changing) -> None:
    changing.convert()
    before = changing.served.files()
    description = json.loads((changing.folder / "dataset_description.json").read_text())
    (changing.folder / "dataset_description.json").write_text(json.dumps({**description, "License": "CC0"}))
    done = changing.zarrmill.run("republish", "xx000042", "--json").lines[-1]
    assert (done["roots"]["written"], done["summary"]["stores"], done["summary"]["converted"]) == (7, 7, 0)
    assert changing.served.index["license"] == "CC0"
    root = json.loads((changing.served.store(_path("01")) / "zarr.json").read_text())
    assert root["attributes"]["nemar"]["license"] == "CC0"
    after = changing.served.files()
    moved = {path.rpartition("/")[2] for path, what in before.items() if after[path] != what}
    assert moved <= {"zarr.json", "index.json", "manifest.json", "zarr-catalog.json"}
    assert changing.convert()["converted"] == 0, "a root that was brought up to date is no reason to convert"

    store = changing.served.store(_path("02"))
    chunk = next(path for path in sorted(store.rglob("c/*/*")) if path.is_file())
    chunk.write_bytes(b"\0" * chunk.stat().st_size)
    orphan = changing.served.base / "sub-77/eeg/sub-77_eeg.zarr/zarr.json"
    orphan.parent.mkdir(parents=True)
    orphan.write_text("{}")
    told = changing.zarrmill.run("reconcile-objects", "xx000042")
    assert "1 object with other bytes" in told.stdout
    assert "sub-77/eeg/sub-77_eeg.zarr: nothing names this store" in told.stdout
    assert orphan.exists()
    assert len(changing.served.index["stores"]) == 7
    mended = changing.zarrmill.run("reconcile-objects", "xx000042", "--execute", "--json").lines[-1]
    assert (mended["due"], mended["removed_stores"]) == (1, 1)
    assert not orphan.exists()
    assert changing.served.lists()[_path("02")] == "not_attempted"
    again = changing.convert()
    assert (again["converted"], again["stores"]) == (1, 7)
    assert "Everything stands as it should" in changing.zarrmill.run("reconcile-objects", "xx000042").stdout
    changing.zarrmill.run("reconcile-objects", "xx000099", code=2)


def test_a_renamed_recording_has_its_store_copied_and_is_not_converted(changing: Changing) -> None:
    changing.convert("--hash")
    former = changing.served.store(_path("05"))
    level0 = {path.relative_to(former): path.read_bytes() for path in former.rglob("c/*/*") if path.is_file()}
    rows = pq.read_table(changing.served.base / "events.parquet").num_rows
    eeg = changing.folder
    (eeg / "sub-05").rename(eeg / "sub-08")
    for file in (eeg / "sub-08/eeg").iterdir():
        file.rename(file.with_name(file.name.replace("sub-05", "sub-08")))
    told = changing.zarrmill.run("plan", changing.folder, "--hash").stdout
    assert f"renamed: copied from the store of {_path('05')}" in told
    done = changing.convert("--hash")
    assert (done["converted"], done["stores"]) == (0, 7)
    assert any("only renamed" in note for note in done["notes"])  # type: ignore[union-attr] # a list of sentences
    store = changing.served.store(_path("08"))
    assert {path.relative_to(store): path.read_bytes() for path in store.rglob("c/*/*") if path.is_file()} == level0
    assert not former.exists()
    metadata = "".join(path.read_text() for path in store.rglob("zarr.json"))
    assert "sub-05" not in metadata + json.dumps(changing.served.index)
    attributes = json.loads((store / "zarr.json").read_text())["attributes"]
    assert attributes["recording_metadata"]["source_file"] == _path("08")
    table = pq.read_table(changing.served.base / "events.parquet")
    assert table.num_rows == rows
    assert "05" not in table.column("subject").to_pylist()
    assert not [path for path in table.column("store_path").to_pylist() if "sub-05" in path]
    assert "copied within the target" in changing.zarrmill.run("why", "xx000042", _path("08")).stdout
    again = changing.convert("--hash")
    assert (again["converted"], again["changed"]) == (0, False)


def test_every_dataset_of_a_catalog_is_taken_over_and_what_changed_since_is_made_anew(
    changing: Changing, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    changing.convert()
    write_recording(changing.folder, "01", seed=1)
    postgres_server.create_database("empty_state")
    try:
        settings = {**changing.zarrmill.settings, "ZARRMILL_DATABASE_URL": postgres_server.url("empty_state")}
        forgetful = replace(changing.zarrmill, settings=settings)
        (told,) = forgetful.run("adopt", "--all", tmp_path, "--json").lines
        assert [(one["dataset_id"], one["trusted"], one["to_convert"]) for one in told["adopted"]] == [
            ("xx000042", 0, 7)
        ]
        assert "not taken over: it is known here already" in forgetful.run("adopt", "--all", tmp_path).stdout
        forgetful.run("adopt", tmp_path, code=2)
        assert forgetful.run("convert", changing.folder, "--json").summary["converted"] == 7
    finally:
        postgres_server.drop_database("empty_state")


def test_what_would_write_into_the_source_or_nowhere_is_refused_before_anything_begins(
    changing: Changing, tmp_path: Path
) -> None:
    inside = changing.zarrmill.run("convert", changing.folder, "--to", changing.folder / "out", code=2)
    assert "lies inside the dataset" in inside.stderr
    (tmp_path / "file").write_text("")
    for variable in ("ZARRMILL_SCRATCH", "PREFECT_API_URL"):
        value = str(tmp_path / "file") if variable == "ZARRMILL_SCRATCH" else "http://127.0.0.1:9/api"
        wrong = replace(changing.zarrmill, settings={**changing.zarrmill.settings, variable: value})
        refused = wrong.run("convert", changing.folder, code=2)
        assert variable in refused.stderr
        assert "Traceback" not in refused.stderr
    target = changing.zarrmill.run("convert", changing.folder, "--to", tmp_path / "file" / "below", code=2)
    assert str(tmp_path / "file" / "below") in target.stderr
    assert not (changing.folder / "out").exists()
    assert changing.zarrmill.run("status").stdout.startswith("no dataset")


def test_two_ways_to_write_one_source_are_one_dataset_and_a_small_budget_is_no_verdict(
    changing: Changing, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(changing.folder)
    small = changing.zarrmill.run("convert", tmp_path / "link", "--memory", "1MiB", "--json", code=5).summary
    assert (small["dataset_id"], small["pending"], small["failures"]) == ("xx000042", 7, 0)
    assert set(changing.served.lists().values()) == {"memory_budget"}
    enough = changing.zarrmill.run(
        "convert", tmp_path / ".." / tmp_path.name / "xx000042", "--mode", "retry-pending", "--json"
    )
    assert (enough.summary["dataset_id"], enough.summary["stores"]) == ("xx000042", 7)
