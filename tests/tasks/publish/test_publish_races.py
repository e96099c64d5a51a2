"""Publications beside others, on foreign indexes, after a lost lease, and killed around any write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fabricated import tree_of
from press import EVENTS, Press, requested, zarr_of
from sound_publication import sound

from contract.documents import parse
from contract.errors import LostLease, PreconditionFailed, PublishConflict, Refused
from contract.index import LocalIndex
from infra.storage.folder import FolderTarget
from tasks.publish.dataset import is_current


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
