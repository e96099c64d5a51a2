"""A dataset published into a bucket: races, lost answers and faults end in the same documents."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from fault_proxy import Fault
from press import Press, requested, zarr_of
from s3_server import S3Place
from sqlalchemy import Engine

from contract.documents import parse
from contract.errors import PublishConflict, Refused, StorageDenied
from contract.index import LocalIndex
from contract.layout import CATALOG_KEY
from contract.manifest import Manifest
from infra.storage import open_target
from infra.storage.s3_target import S3Target
from tasks.catalog import publish_catalog
from tasks.publish.dataset import is_current
from tasks.publish.live import compare_live
from tasks.publish.repair import repair_intents

BASE = "xx000001/zarr/"


def in_bucket(engine: Engine, s3: S3Place, folder: Path) -> Press:
    folder.mkdir(exist_ok=True)
    return Press(engine, folder, target=open_target(f"s3://{s3.name}", s3.settings()))


@pytest.fixture
def press(engine: Engine, s3: S3Place, tmp_path: Path) -> Press:
    return in_bucket(engine, s3, tmp_path)


def index_of(s3: S3Place) -> LocalIndex:
    """The index, after what must hold between the documents was checked."""
    index = parse(LocalIndex, s3.get(f"{BASE}index.json"))
    manifest = parse(Manifest, s3.get(f"{BASE}manifest.json"))
    assert [store.zarr for store in manifest.stores] == [store.zarr for store in index.stores]
    keys = set(s3.keys())
    assert {f"{BASE}{store.zarr}/zarr.json" for store in index.stores} <= keys
    assert (f"{BASE}events.parquet" in keys) == (index.events_row_count is not None)
    return index


def test_a_publication_costs_a_constant_number_of_requests(press: Press, s3: S3Place) -> None:
    costs = []
    for names in (("01",), ("01", "02", "03", "04")):
        press.plan(*names)
        press.convert(*[name for name in names if press.state(name).due == "pending"])
        press.target.prepare()
        s3.proxy.forget()
        press.publish()
        costs.append(dict(s3.proxy.counts()))
        s3.proxy.forget()
        assert is_current(press.engine, press.target, press.edition())
        assert s3.proxy.counts() == {"HEAD": 4}
    assert costs[0] == {"GET": 2, "HEAD": 1, "PUT": 3}
    assert costs[1] == {"GET": 3, "HEAD": 1, "PUT": 3}, (
        "the events file that is replaced is read, to be put back if need be"
    )
    assert index_of(s3).store_count == 4


def test_the_index_of_an_open_bucket_says_so(press: Press, s3: S3Place, engine: Engine) -> None:
    from db import datasets

    press.plan("01")
    press.convert("01")
    press.publish()
    index = index_of(s3)
    assert index.contract_base == f"{s3.proxy.url}/{s3.name}/{BASE}"
    assert (index.data_base_kind, index.s3_anonymous) == ("s3-public", False)
    told = s3.plain.head_object(Bucket=s3.name, Key=f"{BASE}index.json")
    assert (told["ContentType"], told["CacheControl"]) == ("application/json", "public, max-age=60")
    with engine.begin() as c:
        datasets.set_anonymous(c, dataset=press.dataset, anonymous=True)
    assert press.publish().changed
    assert index_of(s3).s3_anonymous


@pytest.mark.parametrize("kind", ["unavailable", "lost", "reset"])
def test_three_calls_in_ten_that_fail_end_in_the_same_documents(press: Press, s3: S3Place, kind: Any) -> None:
    press.plan("01", "02")
    press.convert("01")
    press.publish()
    press.convert("02")
    s3.proxy.faults = [Fault(kind=kind, share=0.3, seed=3)]
    published = press.publish()
    struck = s3.proxy.faults[0].struck
    s3.proxy.forget()
    assert struck > 0
    assert (published.changed, published.events_upload_failed, published.manifest_upload_failed) == (True, False, False)
    assert index_of(s3).store_count == 2
    assert index_of(s3).events_row_count == 4
    assert is_current(press.engine, press.target, press.edition())


def test_a_lost_answer_is_no_conflict(press: Press, s3: S3Place) -> None:
    press.plan("01")
    press.convert("01")
    press.target.prepare()
    s3.proxy.forget()
    s3.proxy.faults = [Fault(kind="lost", method="PUT", pattern="index.json", times=1)]
    published = press.publish()
    assert published.changed
    assert press.target.etag(f"{BASE}index.json") == published.etag
    # the HTTP library sends a request once more by itself when a kept connection ends; its 412 is our own doing too
    assert s3.proxy.counts()["PUT"] in (3, 4), "what has arrived is not sent again by us"


@pytest.mark.parametrize("fault", ["short", "wrong"])
def test_a_spoilt_answer_is_asked_for_again_and_never_believed(press: Press, s3: S3Place, fault: Any) -> None:
    press.plan("01")
    press.convert("01")
    press.publish()
    s3.proxy.faults = [Fault(kind=fault, method="GET", times=1)]
    assert not press.publish().changed
    assert index_of(s3).store_count == 1


def test_a_stale_etag_costs_a_second_look_and_overwrites_nothing(press: Press, s3: S3Place) -> None:
    press.plan("01", "02", "03")
    for name in ("01", "02"):
        press.convert(name)
        press.publish()
    press.convert("03")
    s3.proxy.faults = [Fault(kind="stale", method="GET", pattern="index.json", times=1)]
    press.publish()
    assert index_of(s3).store_count == 3


def test_an_index_that_was_cut_is_refused_and_stays(press: Press, s3: S3Place) -> None:
    press.plan("01")
    press.convert("01")
    press.publish()
    cut = s3.get(f"{BASE}index.json")[:200]
    s3.put(f"{BASE}index.json", cut)
    before = s3.objects(BASE)
    with pytest.raises(Refused, match="cannot be read as an index"):
        press.publish()
    with pytest.raises(Refused, match="cannot be read as an index"):
        compare_live(press.engine, press.target, press.dataset)
    assert s3.objects(BASE) == before


@pytest.mark.parametrize("word", ["GET", "HEAD"])
def test_a_denial_is_no_absence_and_nothing_is_written(press: Press, s3: S3Place, word: str) -> None:
    press.plan("01", "02")
    press.convert("01")
    press.publish()
    press.convert("02")
    before = s3.objects(BASE)
    s3.proxy.faults = [Fault(kind="denied", method=word, pattern="index.json|zarr.json")]
    with pytest.raises(StorageDenied):
        press.publish() if word == "GET" else compare_live(press.engine, press.target, press.dataset)
    s3.proxy.forget()
    assert s3.objects(BASE) == before


def test_somebody_who_always_comes_between_is_an_error_and_the_events_are_put_back(press: Press, s3: S3Place) -> None:
    press.plan("01", "02")
    press.convert("01")
    press.publish()
    former, events = s3.get(f"{BASE}index.json"), s3.get(f"{BASE}events.parquet")
    press.convert("02")
    written = iter(range(1, 9))

    def rival() -> None:
        s3.put(f"{BASE}index.json", former + b" " * next(written))

    s3.proxy.faults = [Fault(method="PUT", pattern="index.json", before=rival)]
    with pytest.raises(PublishConflict):
        press.publish()
    s3.proxy.forget()
    assert s3.get(f"{BASE}events.parquet") == events
    press.publish()
    assert index_of(s3).store_count == 2


@pytest.fixture
def two(engine: Engine, s3: S3Place, tmp_path: Path, servers: Any) -> Any:
    """Two installations, each with a database of its own, that publish one dataset into one bucket."""
    import uuid

    from infra.database import engine as make_engine

    server = servers.migrated(18)
    name = f"test_{uuid.uuid4().hex[:16]}"
    server.create_database(name, template="migrated")
    other = make_engine(server.url(name))
    try:
        yield in_bucket(engine, s3, tmp_path / "a"), in_bucket(other, s3, tmp_path / "b")
    finally:
        other.dispose()
        server.drop_database(name)


def test_two_publishers_who_race_lose_no_entry(two: tuple[Press, Press], s3: S3Place) -> None:
    ours, theirs = two
    ours.plan("01", "02")
    ours.convert("01")
    theirs.plan("02", "03", "04")
    theirs.convert("02", "03")
    theirs.fail("04")
    theirs.target.prepare()

    def come_between() -> None:
        s3.proxy.faults = []
        theirs.publish()

    s3.proxy.faults = [Fault(method="PUT", pattern="index.json", before=come_between)]
    published = ours.publish()
    assert published.coverage.discovered == 4
    index = index_of(s3)
    assert [store.zarr for store in index.stores] == [zarr_of("01"), zarr_of("03")]
    assert [entry.path for entry in index.pending] == [ours.state("02").path], "ours win"
    assert [entry.code for entry in index.failures] == ["not_continuous"]
    ours.begin_run(**{"01": requested("01")})
    ours.convert("01", version="v2")
    ours.publish()
    assert [store.zarr for store in index_of(s3).stores] == [zarr_of("01"), zarr_of("03")]


@pytest.mark.parametrize("decided", [True, False], ids=["by conditions", "under the lock"])
def test_catalogs_of_two_datasets_published_at_once_hold_both(
    engine: Engine, s3: S3Place, tmp_path: Path, decided: bool
) -> None:
    presses = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        target = open_target(f"s3://{s3.name}", s3.settings())
        press = Press(engine, folder, f"xx00000{number}", target)
        press.plan("01")
        press.convert("01")
        press.publish()
        presses.append(press)
    if not decided:
        s3.proxy.faults = [Fault(kind="ignore-conditions")]
    targets = [open_target(f"s3://{s3.name}", s3.settings()) for _ in range(4)]
    failures: list[BaseException] = []

    def publish(target: Any) -> None:
        try:
            assert isinstance(target, S3Target)
            assert target.decides_conditions == decided
            publish_catalog(engine, target)
        except BaseException as error:  # noqa: BLE001 - told by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=publish, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    assert [row["dataset_id"] for row in json.loads(s3.get(CATALOG_KEY))["datasets"]] == ["xx000001", "xx000002"]


def test_what_a_killed_upload_left_is_found_by_the_next_run(press: Press, s3: S3Place) -> None:
    from db import stores

    press.plan("01", "02")
    press.convert("01", "02")
    press.publish()
    assert press.run is not None
    press.begin_run(**{"01": requested("01"), "02": requested("02")})
    for name in ("01", "02"):
        attempt = press.claim(press.run, name)
        with press.begin() as c:
            stores.open_intent(c, attempt_id=attempt, run_number=press.run.number)
    s3.plain.delete_object(Bucket=s3.name, Key=f"{BASE}{zarr_of('02')}/zarr.json")
    press.begin_run()
    s3.proxy.forget()
    assert [store.zarr for store in repair_intents(press.engine, press.target, press.dataset)] == [zarr_of("02")]
    assert s3.proxy.counts() == {"LIST": 4}, "for each store its unfinished uploads and its objects"
    live = compare_live(press.engine, press.target, press.dataset)
    assert [store.zarr for store in live.missing] == [zarr_of("02")]
