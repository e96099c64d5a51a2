"""The verify sweep over a folder: clean stores pass, each planted corruption is found, and only what changed is compared again."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from command import Zarrmill
from loopback import running
from planted import PLANTED, Planted
from small_dataset import write_recording, write_root
from small_files import brainvision, tones
from sqlalchemy import Engine, text

from api.app import create_app
from contract.errors import Refused
from contract.layout import store_key
from db import datasets, requests, verdicts
from db.catalog import catalog_rows
from db.store_verdicts import verdict_of
from db.stores import pack_digests
from flows.sweep_request import DatasetSwept, SweepRequest
from flows.verify_due import due_for_sweep
from flows.verify_requested import sweep
from flows.verify_sweep import verify_sweep
from infra.database import engine as make_engine
from infra.settings import Settings
from infra.storage.folder import FolderTarget

ID = "xx000042"
FIRST, SECOND, THIRD = (f"sub-0{number}/eeg/sub-0{number}_task-rest_eeg" for number in (1, 2, 3))


def write_brainvision(folder: Path) -> None:
    place = folder / "sub-03/eeg"
    place.mkdir(parents=True)
    brainvision(place, "sub-03_task-rest_eeg", tones(3, 60_000, 1000.0), 1000.0)
    rows = "".join(f"E{i + 1}\tEEG\tuV\n" for i in range(3))
    (place / "sub-03_task-rest_channels.tsv").write_text(f"name\ttype\tunits\n{rows}")
    (place / "sub-03_task-rest_events.tsv").write_text(
        "onset\tduration\ttrial_type\n1.5\tn/a\tgo\nn/a\t0.1\tn/a\n7\t1\tstop\n"
    )
    facts = {"SamplingFrequency": 1000, "PowerLineFrequency": 50, "RecordingDuration": 60}
    (place / "sub-03_task-rest_eeg.json").write_text(json.dumps(facts))


@dataclass
class Place:
    """A served dataset with its state: ``sweep`` compares it."""

    target: Path
    engine: Engine
    settings: Settings

    def sweep(self, **request: Any) -> DatasetSwept:
        (swept,) = verify_sweep(self.settings, self.engine, SweepRequest(dataset_id=ID, **request))
        return swept

    def store(self, path: str) -> Path:
        return self.target / store_key(ID, f"{path}.zarr")

    def renote(self, path: str) -> None:
        """Make the state believe in what stands there now."""
        digests = FolderTarget(self.target, port=1).store_digests(store_key(ID, f"{path}.zarr"))
        with self.engine.begin() as c:
            c.execute(
                text("UPDATE stores SET digests = :digests WHERE zarr = :zarr"),
                {"digests": pack_digests(digests or {}), "zarr": f"{path}.zarr"},
            )

    def catalog_status(self) -> str | None:
        with self.engine.connect() as c:
            return catalog_rows(c, target=str(self.target))[0].zarr_verify_status

    def has_zarr_verified(self) -> bool:
        with self.engine.connect() as c:
            return bool(c.scalar(text(f"SELECT count(*) FROM datasets d WHERE {verdicts.HAS_ZARR_VERIFIED}")))


@dataclass(frozen=True)
class Origin:
    """Three recordings, converted and compared; ``told`` is what each sweep said on the way."""

    database: str
    target: Path
    told: dict[str, DatasetSwept]
    facts: dict[str, object]


@pytest.fixture(scope="module")
def origin(servers: Any, prefect_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Origin]:
    """Converted and swept; then one recording changes and is converted and swept; then the licence changes and is republished and swept."""
    folder = tmp_path_factory.mktemp("verify")
    (folder / "home").mkdir(mode=0o700)
    server, name = servers.migrated(18), f"verify_{uuid.uuid4().hex[:8]}"
    server.create_database(name, template="migrated")
    zarrmill = Zarrmill(
        folder / "home", folder, {"ZARRMILL_DATABASE_URL": server.url(name), "PREFECT_API_URL": prefect_url}
    )
    dataset = folder / ID
    write_root(dataset)
    for subject in ("01", "02"):
        write_recording(dataset, subject)
    write_brainvision(dataset)
    zarrmill.run("convert", dataset)
    engine = make_engine(server.url(name))
    place = Place(folder / "served", engine, Settings(home=folder / "home"))
    told, facts = {}, {"before": (place.catalog_status(), place.has_zarr_verified())}
    told["first"] = place.sweep()
    facts["after"] = (place.catalog_status(), place.has_zarr_verified())
    told["again"] = place.sweep()
    write_recording(dataset, "02", seed=5)
    zarrmill.run("convert", dataset)
    facts["changed"] = (place.catalog_status(), place.has_zarr_verified())
    told["changed"] = place.sweep()
    description = {"Name": "changing", "BIDSVersion": "1.10.0", "License": "CC0"}
    (dataset / "dataset_description.json").write_text(json.dumps(description))
    zarrmill.run("republish", ID)
    facts["republished"] = place.catalog_status()
    told["republished"] = place.sweep()
    facts["at the end"] = (place.catalog_status(), place.has_zarr_verified())
    engine.dispose()
    try:
        yield Origin(name, folder / "served", told, facts)
    finally:
        server.drop_database(name)


@pytest.fixture
def place(origin: Origin, servers: Any, tmp_path: Path) -> Iterator[Place]:
    """A copy of the folder and of the state, to be harmed."""
    server, name = servers.get(18), f"verify_{uuid.uuid4().hex[:8]}"
    server.create_database(name, template=origin.database)
    target = tmp_path / "served"
    shutil.copytree(origin.target, target)
    engine = make_engine(server.url(name))
    with engine.begin() as c:
        for table in ("datasets", "documents"):
            c.execute(text(f"UPDATE {table} SET target = :target"), {"target": str(target)})
    (tmp_path / "home").mkdir(mode=0o700)
    try:
        yield Place(target, engine, Settings(home=tmp_path / "home"))
    finally:
        engine.dispose()
        server.drop_database(name)


def test_clean_stores_are_verified_and_only_what_changed_is_compared_again(origin: Origin) -> None:
    first = origin.told["first"]
    assert (first.status, first.trouble, first.verified, first.failed) == ("verified", None, 3, 0), first
    assert [(one.status, one.whole) for one in first.stores] == [("verified", True)] * 3
    assert (origin.told["again"].status, origin.told["again"].stores) == ("verified", ())
    assert origin.facts["before"] == (None, False)
    assert origin.facts["after"] == ("verified", True)
    assert origin.facts["changed"] == (None, False), "a replaced store has no verdict, and so the dataset has none"
    changed = origin.told["changed"]
    assert [(one.path, one.whole) for one in changed.stores] == [(f"{SECOND}.edf", True)]
    assert (changed.status, changed.verified) == ("verified", 3)
    assert origin.facts["republished"] is None
    assert [(one.status, one.whole) for one in origin.told["republished"].stores] == [("verified", False)] * 3
    assert origin.facts["at the end"] == ("verified", True)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_planted_corruption_is_found(planted: Planted, place: Place) -> None:
    path = FIRST if "recordings" in planted.name else THIRD
    planted.plant(place.store(path), place.store(SECOND))
    if planted.renoted:
        place.renote(path)
        place.renote(SECOND)
    swept = place.sweep(every=True)
    assert (swept.status, swept.trouble) == ("failed", None)
    failed = {one.path.rpartition(".")[0]: one for one in swept.stores if one.status == "failed"}
    assert all(one.whole for one in swept.stores)
    assert path in failed
    assert set(failed) <= ({FIRST, SECOND} if path == FIRST else {path}), "the others are verified"
    assert planted.check in {example["check"] for example in failed[path].examples}
    assert place.catalog_status() == "failed"
    assert not place.has_zarr_verified()


def test_a_failed_store_is_compared_again_until_it_is_sound(place: Place) -> None:
    kept = place.store(THIRD) / "zarr.json"
    sound = kept.read_bytes()
    kept.unlink()
    assert place.sweep(every=True).failed == 1
    kept.write_bytes(sound)
    mended = place.sweep()
    assert [one.path for one in mended.stores] == [f"{THIRD}.vhdr"]
    assert (mended.status, place.catalog_status()) == ("verified", "verified")


def test_what_stands_beside_the_stores_is_compared_too(place: Place) -> None:
    base = place.target / ID / "zarr"
    (base / "sub-09/eeg/x.zarr").mkdir(parents=True)
    (base / "sub-09/eeg/x.zarr/zarr.json").write_text("{}")
    rows = pq.read_table(base / "events.parquet")
    pq.write_table(rows.slice(0, rows.num_rows - 1), base / "events.parquet")
    swept = place.sweep(every=True)
    checks = {(example["path"], example["check"]) for example in swept.examples}
    assert {(ID, "object_foreign"), (ID, "events_file_mismatch"), (f"{THIRD}.vhdr", "events_file_mismatch")} <= checks
    assert swept.status == "failed"


def test_one_recording_is_compared_on_demand_and_over_http(place: Place) -> None:
    with running(create_app(FolderTarget(place.target, port=1), place.settings)) as port:
        there = Place(place.target, place.engine, place.settings.model_copy(update={"port": port}))
        swept = there.sweep(path=f"{THIRD}.vhdr", every=True, over_http=True, seed=7)
    assert [(one.path, one.status) for one in swept.stores] == [(f"{THIRD}.vhdr", "verified")]
    with place.engine.connect() as c:
        dataset = datasets.find(c, dataset_id=ID)
        assert dataset is not None
        pk = c.scalar(text("SELECT pk FROM recordings WHERE path = :path"), {"path": f"{THIRD}.vhdr"})
        found = verdict_of(c, recording_id=pk)
    assert found is not None
    assert (found.status, found.seed, found.stands) == ("verified", 7, True)


def test_trouble_gives_no_verdict(place: Place, origin: Origin) -> None:
    with place.engine.begin() as c:
        c.execute(text("UPDATE datasets SET source = :source"), {"source": str(place.target / "nothing-here")})
    swept = place.sweep(every=True)
    assert (swept.status, swept.stores) == (None, ())
    assert "does not exist" in (swept.trouble or "")
    assert place.catalog_status() == "verified", "what was known stands"


def test_a_dataset_that_somebody_asks_for_is_compared_whole(place: Place) -> None:
    with place.engine.begin() as c:
        dataset = datasets.find(c, dataset_id=ID)
        assert dataset is not None
        asked = requests.ask(c, dataset_pk=dataset.pk, mode="verify", asked_by="a test").request
        c.execute(text("UPDATE store_verdicts SET seed = 99"))
    assert sweep(place.settings, place.engine).startswith("1 datasets looked at: 1 verified")
    with place.engine.connect() as c:
        assert c.scalar(text("SELECT count(*) FROM store_verdicts WHERE seed = 0")) == 3, "each was compared anew"
    catalog = json.loads((place.target / "zarr-catalog.json").read_text())
    assert catalog["datasets"][0]["zarr_verify_status"] == "verified"
    with place.engine.connect() as c:
        ended = requests.find(c, pk=asked.pk)
    assert ended is not None
    assert (ended.state, ended.error) == ("done", None)
    assert verify_sweep(place.settings, place.engine, SweepRequest()) == ()


def overwrite(store: Path) -> None:
    """Other bytes of the same length in a shard, with the time of its last write put back."""
    shard = next(path for path in sorted(store.rglob("*")) if path.is_file() and "/0/c/" in str(path))
    data, kept = shard.read_bytes(), shard.stat()
    shard.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    os.utime(shard, ns=(kept.st_atime_ns, kept.st_mtime_ns))


def test_a_standing_verdict_is_backed_by_a_look_at_the_objects(place: Place) -> None:
    assert place.sweep(every=True).status == "verified"
    assert verify_sweep(place.settings, place.engine, SweepRequest()) == (), "everything is as it was left"
    overwrite(place.store(THIRD))
    (place.store(SECOND) / "zarr.json").unlink()
    (swept,) = verify_sweep(place.settings, place.engine, SweepRequest())
    assert (swept.status, [one.path for one in swept.stores]) == ("failed", [f"{SECOND}.edf", f"{THIRD}.vhdr"])
    assert {"object_differs", "object_missing"} <= {example["check"] for example in swept.examples}  # type: ignore[index]  # a mapping
    assert (swept.as_left, place.catalog_status()) == (1, "failed")


def test_what_no_listing_shows_is_found_when_the_dataset_is_named_or_its_turn_comes(place: Place) -> None:
    def date(days: int) -> None:
        with place.engine.begin() as c:
            c.execute(
                text("UPDATE store_verdicts SET verified_at = now() + make_interval(days => :days)"), {"days": days}
            )

    overwrite(place.store(THIRD))
    date(1)  # later than the change, as if the bytes had rotted beneath the file system
    assert verify_sweep(place.settings, place.engine, SweepRequest()) == ()
    first = place.sweep(path=f"{FIRST}.edf")
    assert (first.status, first.stores, first.as_left) == ("verified", (), 1), (
        "only this recording's bytes were asked about"
    )
    named = place.sweep()
    assert ([(one.path, one.status) for one in named.stores], named.as_left) == ([(f"{THIRD}.vhdr", "failed")], 2)
    with place.engine.begin() as c:
        c.execute(text("UPDATE store_verdicts SET status = 'verified', mismatches = 0"))
        c.execute(text("DELETE FROM verdicts WHERE status = 'failed'"))
    date(1)
    settings = place.settings.model_copy(update={"verify_again_days": 1})
    assert verify_sweep(settings, place.engine, SweepRequest()) == ()
    date(-2)
    (again,) = verify_sweep(settings, place.engine, SweepRequest())
    assert [(one.path, one.whole) for one in again.stores] == [
        (f"{FIRST}.edf", True),
        (f"{SECOND}.edf", True),
        (f"{THIRD}.vhdr", True),
    ]
    assert again.status == "failed"


def test_a_recording_that_is_not_there_is_refused_before_anything_is_compared(place: Place) -> None:
    request = SweepRequest(dataset_id=ID, path="nope")
    with pytest.raises(Refused, match="nope names no published recording"):
        due_for_sweep(place.settings, place.engine, request)
    with pytest.raises(Refused, match="nope names no published recording"):
        verify_sweep(place.settings, place.engine, request)
