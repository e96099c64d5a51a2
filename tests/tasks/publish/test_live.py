from __future__ import annotations

import json
import shutil
from pathlib import Path
from uuid import UUID

import pytest
from fabricated import write_store
from press import Press, requested, zarr_of
from sqlalchemy import Engine
from state_bench import path_of

from contract.errors import LostLease, Refused
from db import recordings, stores
from tasks.publish.live import LiveState, compare_live
from tasks.publish.repair import repair_intents

INDEX = "xx000001/zarr/index.json"


def live(press: Press) -> LiveState:
    return compare_live(press.engine, press.target, press.dataset)


def published(press: Press) -> None:
    press.plan("01", "02")
    press.convert("01", "02")
    press.publish()


def test_a_target_without_an_index_is_absent_and_nothing_is_made_there(press: Press) -> None:
    assert live(press) == LiveState(kind="absent", missing=())
    assert not press.target.root.exists()


def test_our_own_index_is_ours(press: Press) -> None:
    published(press)
    assert live(press) == LiveState(kind="ours", missing=())


def test_an_index_whose_write_was_never_noted_is_ours(press: Press) -> None:
    """A run that died between index.json and its row."""
    published(press)
    index = json.loads((press.home / "index.json").read_bytes())
    press.target.put(INDEX, json.dumps(index).encode(), content_type="application/json")
    assert live(press).kind == "ours"


def test_an_index_is_foreign_to_an_empty_database(press: Press, engine: Engine) -> None:
    published(press)
    stranger = Press(engine, press.folder)
    assert live(stranger).kind == "foreign"


def test_an_unreadable_index_is_refused_not_ignored(press: Press) -> None:
    published(press)
    (press.home / "index.json").write_bytes((press.home / "index.json").read_bytes()[:-9])
    with pytest.raises(Refused, match="cannot be read"):
        live(press)


def test_a_store_that_is_gone_is_named_but_one_of_a_vanished_recording_is_not(press: Press) -> None:
    published(press)
    for name in ("01", "02"):
        shutil.rmtree(press.home / zarr_of(name))
    press.drop("02")
    state = live(press)
    assert [(store.path, store.zarr) for store in state.missing] == [(path_of("01"), zarr_of("01"))]
    assert state.missing[0].recording_id == press.state("01").id


def test_a_store_without_its_root_is_gone(press: Press) -> None:
    published(press)
    (press.home / zarr_of("02") / "zarr.json").unlink()
    assert [store.path for store in live(press).missing] == [path_of("02")]


def test_trouble_at_a_store_is_not_read_as_its_absence(press: Press) -> None:
    published(press)
    shutil.rmtree(press.home / "sub-02")
    (press.home / "sub-02").write_text("a file in the way")
    with pytest.raises(NotADirectoryError):
        live(press)


def open_attempt(press: Press, name: str = "01") -> UUID:
    assert press.run is not None
    attempt = press.claim(press.run, name)
    with press.begin() as c:
        stores.open_intent(c, attempt_id=attempt, run_number=press.run.number)
    return attempt


def take_over(press: Press) -> None:
    press.run = press.start(owner_is_gone=True)


def intents(press: Press) -> int:
    with press.begin() as c:
        return len(stores.open_intents(c, dataset=press.dataset))


def half_prepared(press: Press, attempt: UUID) -> Path:
    """What a killed ``put_store`` leaves in the hidden area: here it dies when it asks whether it may go on."""
    staging = press.target.root / ".zarrmill/staging"
    calls = iter(range(2))

    def may_write() -> None:
        if next(calls) == 1:
            (left,) = staging.iterdir()
            shutil.copytree(left, press.scratch / left.name)
            raise LostLease("dead")

    objects = write_store(press.scratch / "half", "half")
    key = f"xx000001/zarr/{zarr_of('01')}"
    with pytest.raises(LostLease):
        press.target.put_store(key, press.scratch / "half", objects, token=str(attempt), may_write=may_write)
    (kept,) = press.scratch.iterdir()
    return kept.rename(staging / kept.name)


def test_a_store_that_was_only_prepared_is_cleaned_and_the_served_one_stays(press: Press) -> None:
    published(press)
    press.begin_run(**{"01": requested("01")})
    left = half_prepared(press, open_attempt(press))
    take_over(press)
    assert repair_intents(press.engine, press.target, press.dataset) == ()
    assert not left.exists()
    assert intents(press) == 0
    assert live(press).missing == ()


def test_a_store_that_was_put_but_never_noted_is_removed_when_nothing_names_it(press: Press) -> None:
    press.plan("01")
    attempt = open_attempt(press)
    press.put("01", "v1", attempt)
    take_over(press)
    assert repair_intents(press.engine, press.target, press.dataset) == ()
    assert not (press.home / zarr_of("01")).exists()
    assert intents(press) == 0


def test_a_replaced_store_that_was_never_noted_must_be_built_again(press: Press) -> None:
    published(press)
    press.begin_run(**{"01": requested("01")})
    press.put("01", "v2", open_attempt(press))
    take_over(press)
    for _ in range(2):  # a second crash before the rebuild must not hide it
        (lost,) = repair_intents(press.engine, press.target, press.dataset)
        assert (lost.path, lost.recording_id) == (path_of("01"), press.state("01").id)
    press.begin_run(**{"01": requested("01")})
    press.convert("01", version="v3")
    assert intents(press) == 0
    assert repair_intents(press.engine, press.target, press.dataset) == ()


def test_a_half_replaced_store_of_a_vanished_recording_can_be_removed(press: Press) -> None:
    published(press)
    press.begin_run(**{"01": requested("01")})
    press.put("01", "v2", open_attempt(press))
    take_over(press)
    press.drop("01")
    assert repair_intents(press.engine, press.target, press.dataset) == ()
    assert press.publish().removed == (zarr_of("01"),)


def test_what_another_worker_is_putting_now_is_left_alone(press: Press) -> None:
    published(press)
    press.begin_run(**{"01": requested("01")})
    left = half_prepared(press, open_attempt(press))
    assert repair_intents(press.engine, press.target, press.dataset) == ()
    assert left.exists()
    assert intents(press) == 1


def test_the_states_may_be_given_instead_of_read(press: Press) -> None:
    published(press)
    with press.begin() as c:
        states = recordings.snapshot(c, dataset=press.dataset)
    shutil.rmtree(press.home / zarr_of("01"))
    assert compare_live(press.engine, press.target, press.dataset, states=states[1:]).missing == ()
