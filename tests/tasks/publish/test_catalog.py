from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from press import COMMIT, Press
from sqlalchemy import Engine

from contract.catalog import Catalog
from contract.documents import parse
from contract.errors import PublishConflict
from db import datasets
from db.datasets import DatasetFacts
from infra.storage.folder import FolderTarget
from tasks.catalog import publish_catalog


def catalog(press: Press) -> Catalog:
    return parse(Catalog, (press.target.root / "zarr-catalog.json").read_bytes())


def ready(press: Press, *names: str) -> None:
    press.plan(*names)
    press.convert(names[0])
    for name in names[1:]:
        press.fail(name)
    press.publish()


def another(press: Press, dataset_id: str, engine: Engine | None = None) -> Press:
    return Press(engine or press.engine, press.folder, dataset_id)


def test_a_ready_dataset_is_listed_with_its_facts_and_its_address(press: Press) -> None:
    facts = DatasetFacts(name="Rest", doi="10.1/x", license="CC0", modalities=("eeg",), subject_count=3)
    with press.begin() as c:
        datasets.set_facts(c, dataset=press.dataset, facts=facts)
    ready(press, "01", "02")
    assert publish_catalog(press.engine, press.target).changed
    (row,) = catalog(press).datasets
    assert (row.dataset_id, row.name, row.doi, row.license, row.modalities) == (
        "xx000001",
        "Rest",
        "10.1/x",
        "CC0",
        ("eeg",),
    )
    assert (row.store_count, row.recording_count, row.recordings_unavailable, row.subject_count) == (1, 2, 1, 3)
    assert (row.total_recording_duration, row.zarr_source_commit, row.zarr_verify_status) == (4.0, COMMIT, None)
    assert row.index_url == "http://127.0.0.1:8321/xx000001/zarr/index.json"
    assert catalog(press).contract_base == "http://127.0.0.1:8321/"


def test_a_catalog_that_would_say_the_same_is_not_written(press: Press) -> None:
    ready(press, "01")
    publish_catalog(press.engine, press.target)
    before = (press.target.root / "zarr-catalog.json").stat()
    again = publish_catalog(press.engine, press.target)
    after = (press.target.root / "zarr-catalog.json").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert (again.changed, again.count) == (False, 1)


def test_nothing_is_written_where_nothing_is_served(press: Press) -> None:
    assert not publish_catalog(press.engine, press.target).changed
    assert not press.target.root.exists()


def test_a_dataset_without_a_store_is_not_listed(press: Press) -> None:
    ready(press, "01")
    publish_catalog(press.engine, press.target)
    press.drop("01")
    press.publish()
    publish_catalog(press.engine, press.target)
    assert catalog(press).count == 0


def test_a_dataset_that_reconverts_stays_listed(press: Press) -> None:
    ready(press, "01")
    run = press.begin_run()
    with press.begin() as c:
        datasets.note_converting(c, run=run)
    publish_catalog(press.engine, press.target)
    assert catalog(press).count == 1


def test_datasets_of_another_database_stay_listed_while_their_index_stands(press: Press, engine: Engine) -> None:
    ready(press, "01")
    publish_catalog(press.engine, press.target)
    other = another(press, "xx000002", engine)
    ready(other, "01")
    publish_catalog(other.engine, other.target)
    assert [row.dataset_id for row in catalog(press).datasets] == ["xx000001", "xx000002"]
    assert not publish_catalog(press.engine, press.target).changed
    (press.home / "index.json").unlink()
    publish_catalog(other.engine, other.target)
    assert [row.dataset_id for row in catalog(press).datasets] == ["xx000002"]


def test_runs_that_publish_the_catalog_at_once_lose_no_dataset(press: Press) -> None:
    presses = [press] + [another(press, f"xx00000{number}") for number in range(2, 6)]

    def work(one: Press) -> None:
        ready(one, "01")
        publish_catalog(one.engine, one.target)

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(work, presses))
    assert catalog(press).count == 5


@pytest.mark.parametrize("junk", [b"", b"{}", b"not json"])
def test_an_unreadable_catalog_is_written_anew(press: Press, junk: bytes) -> None:
    ready(press, "01")
    press.target.put("zarr-catalog.json", junk, content_type="application/json")
    assert publish_catalog(press.engine, press.target).changed
    assert catalog(press).count == 1


class Restless(FolderTarget):
    """A target whose catalog somebody else rewrites before each of our conditional writes."""

    def put(self, key: str, data: bytes | Path, **how: Any) -> str:
        former = self.read(key)
        super().put(key, (former.data if former else b"{}") + b" ", content_type="application/json")
        return super().put(key, data, **how)


def test_a_catalog_that_never_holds_still_is_given_up_loudly(press: Press) -> None:
    ready(press, "01")
    with pytest.raises(PublishConflict):
        publish_catalog(press.engine, Restless(press.target.root, port=8321))


def test_another_port_rewrites_every_address(press: Press) -> None:
    ready(press, "01")
    publish_catalog(press.engine, press.target)
    assert publish_catalog(press.engine, FolderTarget(press.target.root, port=9000)).changed
    document = json.loads((press.target.root / "zarr-catalog.json").read_bytes())
    assert document["contract_base"] == "http://127.0.0.1:9000/"
    assert document["datasets"][0]["index_url"].startswith("http://127.0.0.1:9000/")
