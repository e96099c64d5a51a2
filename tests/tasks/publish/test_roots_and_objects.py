"""What stores say of their dataset, and the objects that stand, in a folder and in a bucket."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from press import Press, zarr_of
from s3_server import S3Place
from sqlalchemy import Engine

from contract.errors import Refused
from contract.layout import store_key
from db import datasets, store_objects, stores
from db.datasets import DatasetFacts
from infra.storage import open_target
from tasks.publish.objects import Differences, compare_objects
from tasks.publish.roots import edited_root, rewrite_roots

FACTS = DatasetFacts(name="Rest", doi="10.1/x", license="CC0", citation="A (2026).", hed_version="8.3.0")


@pytest.fixture
def served(press: Press) -> Press:
    press.plan("01", "02", "03")
    press.convert("01", "02")
    press.publish()
    return press


def compared(press: Press) -> Differences:
    return compare_objects(press.engine, press.target, press.dataset)


def root_of(press: Press, name: str) -> dict[str, Any]:
    return json.loads((press.home / zarr_of(name) / "zarr.json").read_bytes())


def with_facts(press: Press, facts: DatasetFacts = FACTS) -> Any:
    with press.begin() as c:
        datasets.set_facts(c, dataset=press.dataset, facts=facts)
    return replace(press.dataset, facts=facts)


def test_every_published_store_says_the_present_facts_and_nothing_else_is_written(served: Press) -> None:
    assert served.run is not None
    chunks = {path: path.stat().st_mtime_ns for path in served.home.rglob("c/*/*") if path.is_file()}
    dataset = with_facts(served)
    done = rewrite_roots(served.engine, served.target, served.run, dataset)
    assert (done.written, done.current, done.failed) == (2, 0, ())
    for name in ("01", "02"):
        attributes = root_of(served, name)["attributes"]
        assert attributes["version"] == "v1", "what stood there stays"
        nemar = attributes["nemar"]
        assert (nemar["doi"], nemar["license"], nemar["hed_version"]) == ("10.1/x", "CC0", "8.3.0")
        assert nemar["contract_url"].endswith(f"/{zarr_of(name)}/")
    assert {path: path.stat().st_mtime_ns for path in chunks} == chunks
    assert compared(served).none, "the digests of what was written are noted"
    before = {path: path.stat().st_ino for path in served.home.rglob("zarr.json")}
    again = rewrite_roots(served.engine, served.target, served.run, dataset)
    assert (again.written, again.current) == (0, 2)
    assert {path: path.stat().st_ino for path in before} == before


def test_a_store_that_is_gone_is_told_and_the_others_are_brought_up_to_date(served: Press) -> None:
    assert served.run is not None
    (served.home / zarr_of("01") / "zarr.json").unlink()
    done = rewrite_roots(served.engine, served.target, served.run, with_facts(served))
    assert (done.written, done.failed) == (1, (zarr_of("01"),))


def test_a_store_that_was_taken_over_keeps_unknown_digests(served: Press) -> None:
    assert served.run is not None
    with served.begin() as c:
        c.exec_driver_sql(
            "UPDATE stores SET digests = %s WHERE dataset_pk = %s", (stores.pack_digests({}), served.dataset.pk)
        )
    assert rewrite_roots(served.engine, served.target, served.run, with_facts(served)).written == 2
    with served.begin() as c:
        assert [row.digests for row in store_objects.object_rows(c, dataset=served.dataset)] == [{}, {}]
    found = compared(served)
    assert found.unknown == (zarr_of("01"), zarr_of("02"))
    assert found.none


@pytest.mark.parametrize("root", [b"[]", b"{}", b'{"attributes": 1}', b"no json"])
def test_what_is_no_root_is_not_edited(root: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - json's own or ours
        edited_root(root, lambda _attributes: None)


def test_everything_stands_as_it_should(served: Press) -> None:
    found = compared(served)
    assert found.none
    files = [path for path in served.home.rglob("*") if path.is_file()]
    assert (found.objects, found.stores) == (len(files), 2)
    assert found.size_bytes == sum(path.stat().st_size for path in files)


CHUNK = "eeg_250hz/0/c/1/0"


def _remove(store: Path) -> None:
    (store / CHUNK).unlink()


def _overwrite(store: Path) -> None:
    text = (store / CHUNK).read_text()
    (store / CHUNK).write_text(text[::-1])


def _shorten(store: Path) -> None:
    (store / CHUNK).write_text("")


def _add(store: Path) -> None:
    (store / "eeg_250hz/0/c/99/0").parent.mkdir(parents=True)
    (store / "eeg_250hz/0/c/99/0").write_text("stale")


DAMAGE: dict[str, tuple[Callable[[Path], None], tuple[list[str], list[str], list[str]]]] = {
    "an object is missing": (_remove, ([CHUNK], [], [])),
    "an object has other bytes of the same length": (_overwrite, ([], [CHUNK], [])),
    "an object is cut": (_shorten, ([], [CHUNK], [])),
    "an object too many": (_add, ([], [], ["eeg_250hz/0/c/99/0"])),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_told_by_object_and_of_that_store_alone(served: Press, damage: str) -> None:
    do, (missing, mismatched, extra) = DAMAGE[damage]
    do(served.home / zarr_of("02"))
    (one,) = compared(served).different
    assert one.zarr == zarr_of("02")
    assert (list(one.missing), list(one.mismatched), list(one.extra)) == (missing, mismatched, extra)
    assert bool(compared(served).damaged) == bool(missing or mismatched)


def test_what_nothing_names_is_an_orphan_and_what_the_index_names_is_not(served: Press) -> None:
    for name in ("sub-98/eeg/a.zarr", "sub-99/eeg/b.zarr"):
        (served.home / name).mkdir(parents=True)
        (served.home / name / "zarr.json").write_text("{}")
    (served.home / "notes.txt").write_text("mine")
    index = json.loads((served.home / "index.json").read_bytes())
    theirs = {**index["stores"][0], "path": "sub-99/eeg/b_eeg.edf", "zarr": "sub-99/eeg/b.zarr"}
    counts = {name: index[name] + 1 for name in ("store_count", "n_recordings", "discovered_count")}
    stores_now = sorted([*index["stores"], theirs], key=lambda entry: entry["zarr"])
    (served.home / "index.json").write_text(json.dumps({**index, **counts, "stores": stores_now}))
    found = compared(served)
    assert found.orphans == ("sub-98/eeg/a.zarr",)
    assert found.strays == (f"{served.dataset.dataset_id}/zarr/notes.txt",)
    assert not found.different


def test_an_index_that_cannot_be_read_names_everything(served: Press) -> None:
    (served.home / "index.json").write_text("{")
    with pytest.raises(Refused, match="nothing can be said"):
        compared(served)


def test_in_a_bucket_etags_tell_other_bytes_of_the_same_length(
    shared_engine: Engine, s3: S3Place, tmp_path: Path
) -> None:
    target = open_target(f"s3://{s3.name}", s3.settings())
    press = Press(shared_engine, tmp_path, "xx000003", target=target)
    press.plan("01")
    press.convert("01")
    press.publish()
    assert compared(press).none
    assert press.run is not None
    assert rewrite_roots(press.engine, target, press.run, with_facts(press)).written == 1
    assert compared(press).none, "the etag of the new root is noted"
    key = f"{store_key('xx000003', zarr_of('01'))}/{CHUNK}"
    live = target.read(key)
    assert live is not None
    assert live.data != live.data[::-1]
    target.put(key, live.data[::-1], content_type="application/octet-stream")
    (one,) = compared(press).different
    assert one.mismatched == (CHUNK,)
