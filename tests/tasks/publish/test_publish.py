from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest
from fabricated import tree_of
from press import COMMIT, EVENTS, Press, requested, zarr_of
from sqlalchemy import event
from state_bench import path_of, planned

from contract.codes import FailureCode, PendingReason
from contract.documents import parse
from contract.errors import LostLease, PreconditionFailed, PublishConflict, Refused
from contract.index import LocalIndex
from contract.manifest import Manifest
from db import datasets, documents
from db.datasets import DatasetFacts
from infra.storage.folder import FolderTarget
from tasks.publish.dataset import is_current
from tasks.publish.documents import comparable

DOCUMENTS = ("index.json", "manifest.json", "events.parquet")


def identity(press: Press) -> dict[str, tuple[int, int]]:
    """Inode and time of change of every document: both change with every write."""
    files = [press.home / name for name in DOCUMENTS]
    return {file.name: (file.stat().st_ino, file.stat().st_mtime_ns) for file in files if file.exists()}


def sound(press: Press) -> LocalIndex:
    """The index, after everything that must hold between the documents and the stores was checked."""
    index = parse(LocalIndex, (press.home / "index.json").read_bytes())
    manifest = parse(Manifest, (press.home / "manifest.json").read_bytes())
    assert [store.zarr for store in manifest.stores] == [store.zarr for store in index.stores]
    for store in index.stores:
        assert (press.home / store.zarr / "zarr.json").is_file()
    if index.events_row_count is None:
        assert not (press.home / "events.parquet").exists()
        assert manifest.files is None
    else:
        table = pq.read_table(press.home / "events.parquet")
        assert table.num_rows == index.events_row_count
        assert set(table["store_path"].to_pylist()) <= {store.zarr for store in index.stores}
        assert manifest.files is not None
        assert manifest.files[0].row_count == index.events_row_count
        assert manifest.files[0].size_bytes == (press.home / "events.parquet").stat().st_size
    return index


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


def foreign_index(press: Press, path: str = "sub-99/eeg/sub-99_eeg.edf") -> bytes:
    return json.dumps({"stores": [{"path": path}], "failures": [], "pending": []}).encode()


def test_an_index_that_the_database_never_saw_is_refused_and_adopt_is_named(press: Press) -> None:
    press.plan("01")
    press.convert("01")
    press.target.put("xx000001/zarr/index.json", foreign_index(press), content_type="application/json")
    before = tree_of(press.target.root)
    with pytest.raises(Refused, match="zarrmill adopt xx000001"):
        press.publish()
    assert tree_of(press.target.root) == before


@pytest.mark.parametrize("junk", [b"", b"{", b"[]", b'{"stores":[{}]}', b"\xff\xfe", b'{"stores":1}'])
def test_an_unreadable_index_is_never_taken_for_an_absent_one(press: Press, junk: bytes) -> None:
    press.plan("01")
    press.target.put("xx000001/zarr/index.json", junk, content_type="application/json")
    with pytest.raises(Refused, match="move it away"):
        press.publish()
    assert (press.home / "index.json").read_bytes() == junk


class Rival(FolderTarget):
    """A target at which somebody else writes the index just before our conditional write, ``times`` times."""

    def __init__(self, root: Path, rival: bytes, *, times: int, lose_answer: bool = False) -> None:
        super().__init__(root, port=8321)
        self.rival = rival
        self.times = times
        self.lose_answer = lose_answer

    def put(self, key: str, data: bytes | Path, **how: Any) -> str:
        if not key.endswith("index.json"):
            return super().put(key, data, **how)
        if self.times:
            super().put(key, self.rival + b" " * self.times, content_type="application/json")
            self.times -= 1
        etag = super().put(key, data, **how)
        if self.lose_answer:
            raise PreconditionFailed("the answer was lost and the retry met our own write")
        return etag


def test_a_concurrent_change_by_known_recordings_is_written_over_once(press: Press) -> None:
    press.plan("01", "02")
    press.convert("01")
    press.publish()
    former = (press.home / "index.json").read_bytes()
    press.convert("02")
    assert press.publish(Rival(press.target.root, former, times=1)).changed
    assert sound(press).store_count == 2


@pytest.mark.parametrize("events_before", [True, False])
def test_a_second_concurrent_change_gives_up_and_puts_the_events_back(press: Press, events_before: bool) -> None:
    press.plan("01", "02")
    press.convert("01", events=EVENTS if events_before else None)
    press.publish()
    before = tree_of(press.home)
    press.convert("02")
    with pytest.raises(PublishConflict):
        press.publish(Rival(press.target.root, before["index.json"], times=2))
    after = tree_of(press.home)
    assert after["index.json"] == before["index.json"] + b" "
    assert after.get("events.parquet") == before.get("events.parquet")
    press.publish()
    assert sound(press).events_row_count == (4 if events_before else 2)


def test_entries_of_another_publisher_that_came_between_are_kept_and_ours_win(press: Press) -> None:
    press.plan("01", "02")
    press.convert("01")
    press.publish()
    ours = press.document("index.json")
    theirs = json.loads((press.home / "index.json").read_bytes())
    (entry,) = theirs["stores"]
    unknown = json.loads(json.dumps(entry).replace("sub-01", "sub-77"))
    waiting = json.loads(json.dumps(ours["pending"][0]).replace("sub-02", "sub-88"))
    theirs |= {"stores": [{**entry, "n_events": 99}, unknown], "pending": [*theirs["pending"], waiting]}
    theirs |= {"store_count": 2, "n_recordings": 2, "pending_count": 2, "discovered_count": 4}
    press.convert("02")
    (press.home / zarr_of("77")).mkdir(parents=True)
    (press.home / zarr_of("77") / "zarr.json").write_text("{}")
    published = press.publish(Rival(press.target.root, json.dumps(theirs).encode(), times=1))
    assert (published.coverage.discovered, published.coverage.stores, published.coverage.pending) == (4, 3, 1)
    assert [store.zarr for store in sound(press).stores] == [zarr_of("01"), zarr_of("02"), zarr_of("77")]
    assert press.document("index.json")["stores"][0]["n_events"] == entry["n_events"]
    assert press.document("index.json")["pending"] == [waiting]
    assert is_current(press.engine, press.target, press.edition()), "what was adopted is remembered"
    press.begin_run(**{"01": requested("01")})
    press.convert("01", version="v2")
    press.publish()
    assert [store.zarr for store in sound(press).stores] == [zarr_of("01"), zarr_of("02"), zarr_of("77")]
    press.plan("77")
    press.convert("77")
    assert press.publish().coverage.discovered == 4, "a recording that becomes ours is adopted no longer"
    sound(press)


def test_an_unreadable_index_that_came_between_is_not_overwritten(press: Press) -> None:
    press.plan("01")
    press.convert("01")
    with pytest.raises(Refused):
        press.publish(Rival(press.target.root, foreign_index(press), times=1))
    assert (press.home / "index.json").read_bytes().startswith(foreign_index(press))
    assert not (press.home / "events.parquet").exists()


def test_a_lost_answer_of_our_own_write_is_success(press: Press) -> None:
    press.plan("01")
    press.convert("01")
    published = press.publish(Rival(press.target.root, b"", times=0, lose_answer=True))
    assert published.changed
    assert press.target.etag("xx000001/zarr/index.json") == published.etag
    sound(press)


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


def test_a_run_that_lost_the_dataset_writes_nothing(press: Press) -> None:
    press.plan("01", "02")
    press.convert("01")
    press.publish()
    press.convert("02")
    before = tree_of(press.target.root)
    former = press.run
    press.run = press.start(owner_is_gone=True)
    successor, press.run = press.run, former
    with pytest.raises(LostLease):
        press.publish()
    assert tree_of(press.target.root) == before
    press.run = successor
    press.publish()
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


class Killed(BaseException):
    """The process is gone."""


class Dying(FolderTarget):
    """A target whose process dies before or after its n-th write; a dead process does nothing more."""

    def __init__(self, root: Path, *, after: int, done: bool) -> None:
        super().__init__(root, port=8321)
        self.left = after
        self.done = done
        self.dead = False

    def _step(self, write: Any) -> Any:
        if self.dead:
            raise Killed
        if self.left:
            self.left -= 1
            return write()
        self.dead = True
        if self.done:
            write()
        raise Killed

    def put(self, key: str, data: bytes | Path, **how: Any) -> str:
        return str(self._step(lambda: FolderTarget.put(self, key, data, **how)))

    def delete(self, key: str) -> None:
        self._step(lambda: FolderTarget.delete(self, key))

    def delete_stores(self, keys: Any) -> None:
        self._step(lambda: FolderTarget.delete_stores(self, keys))


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("after", range(4))
def test_a_publication_killed_around_any_write_is_made_whole_by_the_next(press: Press, after: int, done: bool) -> None:
    press.plan("01", "02", "03")
    press.convert("01", "02")
    press.publish()
    del press.rows["02"]
    press.plan("03")
    press.convert("03")
    dying = Dying(press.target.root, after=after, done=done)
    with pytest.raises(Killed):
        press.publish(dying)
    stands = parse(LocalIndex, (press.home / "index.json").read_bytes())
    for store in stands.stores:
        assert (press.home / store.zarr / "zarr.json").is_file(), "an index never names a store that is gone"
    press.begin_run()
    press.publish()
    assert [store.zarr for store in sound(press).stores] == [zarr_of("01"), zarr_of("03")]
    assert not (press.home / zarr_of("02")).exists()
    assert is_current(press.engine, press.target, press.edition())
    assert list(press.scratch.iterdir()) == []


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
