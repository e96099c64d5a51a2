"""What a publication writes, and what it leaves alone."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import jsonschema
import pytest
from fabricated import tree_of
from press import COMMIT, Press, requested, zarr_of
from sound_publication import DOCUMENTS, identity, sound
from sqlalchemy import event
from state_bench import path_of, planned

from contract.codes import FailureCode, PendingReason
from contract.errors import Refused
from db import datasets, documents
from db.datasets import DatasetFacts
from tasks.publish.dataset import is_current
from tasks.publish.documents import comparable


def test_a_first_publication_accounts_for_every_recording(press: Press) -> None:
    press.plan("01", "02", "03", "04", "05")
    press.convert("01", "02")
    press.fail("03")
    press.postpone("04")
    published = press.publish(errors=2)
    index = sound(press)
    assert (index.discovered_count, index.store_count, index.failure_count, index.pending_count) == (5, 2, 1, 2)
    assert [store.zarr for store in index.stores] == [zarr_of("01"), zarr_of("02")]
    (failure,) = index.failures
    assert (failure.path, failure.code, failure.detail) == (path_of("03"), "not_continuous", "ValueError: epochs")
    assert "not a continuous recording" in failure.reason
    assert [(row.path, row.reason, row.attempts) for row in index.pending] == [
        (path_of("04"), PendingReason.INFRA_FAILURE, 1),
        (path_of("05"), PendingReason.NOT_ATTEMPTED, 0),
    ]
    assert (index.engine_version, index.biosigio_version, index.errors) == ("4", "1.2.13", 2)
    assert index.source_commit == COMMIT
    assert index.events_row_count == published.events_row_count == 4
    assert (published.changed, published.not_attempted_count, published.duration_s) == (True, 1, 8.0)
    standing = press.edition().dataset.published
    assert standing is not None
    assert published.etag == standing.index_etag
    schema = json.loads((resources.files("contract") / "schemas/zarr-index-v3-local.json").read_text())
    jsonschema.validate(press.document("index.json"), schema)


def test_a_dataset_without_events_has_no_events_file_and_no_field(press: Press) -> None:
    press.plan("01", "02")
    press.convert("01", events=None)
    press.convert("02", events=b"onset\tduration\n")
    press.publish()
    index = sound(press)
    assert index.events_row_count is None
    assert "events_parquet" not in press.document("index.json")


def test_stores_of_two_releases_leave_the_biosigio_version_null(press: Press) -> None:
    press.plan("01", "02")
    press.convert("01")
    press.convert("02", biosigio="1.2.12")
    press.publish()
    assert press.document("index.json")["biosigio_version"] is None


def test_the_facts_of_the_dataset_stand_in_its_index(press: Press) -> None:
    press.plan("01")
    facts = DatasetFacts(name="Rest", doi="10.1/x", license="CC0", citation="A (2026).", hed_version="8.3.0")
    with press.begin() as c:
        datasets.set_facts(c, dataset=press.dataset, facts=facts)
    press.publish()
    index = sound(press)
    assert (index.doi, index.license, index.citation, index.hed_version) == ("10.1/x", "CC0", "A (2026).", "8.3.0")


def test_publishing_again_without_a_change_writes_no_document(press: Press) -> None:
    press.plan("01", "02")
    press.convert("01", "02")
    press.publish()
    before = identity(press)
    press.begin_run()
    published = press.publish(errors=7, updated_utc="2026-04-01T00:00:00Z")
    assert identity(press) == before
    assert not published.changed
    assert is_current(press.engine, press.target, press.edition())


def test_to_know_that_documents_are_current_takes_no_entry_out_of_the_database(press: Press) -> None:
    press.plan("01", "02", "03")
    press.convert("01", "02")
    press.publish()
    asked: list[str] = []

    def note(_c: object, _cursor: object, statement: str, *_rest: object) -> None:
        asked.append(statement)

    event.listen(press.engine, "before_cursor_execute", note)
    try:
        assert is_current(press.engine, press.target, press.edition())
        few = len(asked)
        assert not [one for one in asked if "s.entry" in one.replace("md5(s.entry)", "")]
        with press.begin() as c:
            datasets.set_facts(c, dataset=press.dataset, facts=DatasetFacts(license="CC0"))
        asked.clear()
        assert not is_current(press.engine, press.target, press.edition())
        assert [one for one in asked if "s.entry" in one.replace("md5(s.entry)", "")], "this listener sees entries"
    finally:
        event.remove(press.engine, "before_cursor_execute", note)
    assert few < 15


@pytest.mark.parametrize("change", ["licence", "commit", "store", "failure", "vanished"])
def test_any_other_change_writes_the_index_and_is_no_longer_current(press: Press, change: str) -> None:
    press.plan("01", "02", "03")
    press.convert("01", "02")
    press.publish()
    before = identity(press)
    more: dict[str, Any] = {}
    if change == "licence":
        with press.begin() as c:
            datasets.set_facts(c, dataset=press.dataset, facts=DatasetFacts(license="CC0"))
    elif change == "commit":
        more["source_commit"] = "cd" * 20
    elif change == "store":
        press.convert("03")
    elif change == "failure":
        press.fail("03")
    else:
        press.drop("02")
    assert not is_current(press.engine, press.target, press.edition(**more))
    assert press.publish(**more).changed
    assert identity(press)["index.json"] != before["index.json"]
    sound(press)
    assert is_current(press.engine, press.target, press.edition(**more))


def test_a_rebuilt_store_replaces_its_events_and_an_untouched_one_keeps_them(press: Press) -> None:
    press.plan("01", "02")
    press.convert("01", "02")
    press.publish()
    press.plan("02", source="s2")
    press.convert("02", source="s2", events=b"onset\tduration\n1\t1\n", version="v2")
    press.publish()
    assert sound(press).events_row_count == 3
    press.begin_run(**{"02": planned("02", source="s3")})
    press.convert("02", source="s3", events=None, version="v3")
    press.publish()
    assert sound(press).events_row_count == 2


def test_a_changed_source_leaves_the_index_but_a_requested_rebuild_stays_in_it(press: Press) -> None:
    press.plan("01", "02")
    press.convert("01", "02")
    press.publish()
    press.begin_run(**{"01": planned("01", source="s2"), "02": requested("02")})
    press.publish()
    index = sound(press)
    assert [store.zarr for store in index.stores] == [zarr_of("02")]
    assert [row.path for row in index.pending] == [path_of("01")]
    assert (press.home / zarr_of("01")).is_dir(), "objects of a recording that will be replaced stay"


def test_the_store_of_a_vanished_recording_is_removed_after_the_index_and_never_for_a_part(press: Press) -> None:
    press.plan("01", "02")
    press.convert("01", "02")
    press.publish()
    press.drop("02")
    partly = press.publish(remove_vanished=False)
    assert partly.removed == ()
    assert (press.home / zarr_of("02")).is_dir()
    assert press.publish().removed == (zarr_of("02"),)
    assert not (press.home / "sub-02").exists()
    assert [store.zarr for store in sound(press).stores] == [zarr_of("01")]


def test_an_events_file_that_nothing_names_any_more_is_removed(press: Press) -> None:
    press.plan("01", "02")
    press.convert("01")
    press.convert("02", events=None)
    press.publish()
    assert (press.home / "events.parquet").exists()
    press.drop("01")
    press.publish()
    assert sound(press).events_row_count is None


@pytest.mark.parametrize("gone", DOCUMENTS)
def test_a_document_that_is_gone_is_written_again(press: Press, gone: str) -> None:
    press.plan("01")
    press.convert("01")
    press.publish()
    before = tree_of(press.home)
    (press.home / gone).unlink()
    assert not is_current(press.engine, press.target, press.edition())
    press.publish()
    assert tree_of(press.home) == before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("index.json", b'"rest":1', b'"rest":9'),
        ("manifest.json", b'"source_key":null', b'"source_key":"x"'),
        ("events.parquet", b"PAR1", b"PAR2"),
    ],
)
def test_a_document_that_somebody_edited_is_written_again(press: Press, name: str, old: bytes, new: bytes) -> None:
    press.plan("01")
    press.convert("01")
    press.publish()
    before = tree_of(press.home)
    edited = before[name].replace(old, new)
    assert edited != before[name]
    (press.home / name).write_bytes(edited)
    assert not is_current(press.engine, press.target, press.edition())
    press.publish()
    assert tree_of(press.home) == before


def test_events_that_cannot_be_built_are_disclosed_and_leave_the_former_file(press: Press) -> None:
    press.plan("01", "02")
    press.convert("01")
    press.publish()
    former = (press.home / "events.parquet").read_bytes()
    press.convert("02", events_row_count=99)
    published = press.publish()
    assert published.events_upload_failed
    assert published.events_row_count is None
    index = press.document("index.json")
    assert index["store_count"] == 2
    assert "events_parquet" not in index
    assert (press.home / "events.parquet").read_bytes() == former
    press.begin_run(**{"02": requested("02")})
    press.convert("02")
    assert not press.publish().events_upload_failed
    assert sound(press).events_row_count == 4


def test_a_manifest_that_cannot_be_written_is_disclosed_and_is_not_fatal(press: Press) -> None:
    press.plan("01")
    press.convert("01")
    (press.home / "manifest.json").mkdir(parents=True)
    published = press.publish()
    assert published.manifest_upload_failed
    assert press.document("index.json")["store_count"] == 1
    (press.home / "manifest.json").rmdir()
    assert not press.publish().manifest_upload_failed
    sound(press)


def test_an_entry_that_breaks_the_contract_is_caught_before_anything_is_written(press: Press) -> None:
    press.plan("01", "02")
    press.convert("01")
    press.publish()
    before = tree_of(press.target.root)
    press.convert("02", entry=b'{"path":"sub-02/eeg/sub-02_task-rest_eeg.edf","surprise":1}')
    kept = {name: data for name, data in before.items() if "/sub-" not in name}
    with pytest.raises(Refused):
        press.publish()
    after = tree_of(press.target.root)
    assert {name: data for name, data in after.items() if "/sub-" not in name} == kept


def test_the_documents_rows_say_what_stands(press: Press) -> None:
    press.plan("01")
    press.convert("01")
    press.publish()
    for name in DOCUMENTS:
        key = f"xx000001/zarr/{name}"
        with press.begin() as c:
            row = documents.find(c, target=press.target.url, key=key)
        assert row is not None
        assert row.etag == press.target.etag(key)
        assert row.size_bytes == (press.home / name).stat().st_size


def test_a_retry_exhausted_failure_tells_its_last_error(press: Press) -> None:
    press.plan("01")
    press.fail("01", FailureCode.CORRUPT_OR_TRUNCATED, detail="OSError: /tmp/zarrmill/x/file.edf: token=abc")
    press.publish()
    (failure,) = press.document("index.json")["failures"]
    assert "/tmp" not in failure["detail"]
    assert "abc" not in failure["detail"]


def test_documents_compare_by_everything_but_the_time_and_the_errors_of_the_run() -> None:
    one = b'{"updated_utc":"a","citation":"\\"errors\\":1","errors":1,"stores":[{"updated_utc":"b"}]}'
    assert comparable(one) == comparable(one.replace(b'"a"', b'"c"').replace(b'"errors":1,', b'"errors":22,'))
    assert comparable(one) != comparable(one.replace(b'"b"', b'"c"'))
    assert comparable(one) != comparable(one.replace(b'\\"errors\\":1', b'\\"errors\\":2'))
