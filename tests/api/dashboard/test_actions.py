"""Actions of operators: who may, what is shown first, what is then done, and what is kept of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from desk import Desk, words
from filled_state import Kept, put
from large_archive import LARGE
from looked_at import OPERATOR, READER
from sqlalchemy import Engine, text

from api.dashboard import addresses
from db import pauses
from db.cost import toll
from db.ledger import MANY_SLOTS, Part, declare_host

ACTIONS = ("trigger", "requeue", "pause", "resume", "verify", "standing", "withdraw", "engine")


def test_an_action_needs_a_token_that_may_a_form_of_ours_and_a_known_verb(desk: Callable[..., Desk]) -> None:
    operator, reader, anybody = desk(OPERATOR), desk(READER), desk()

    def noted() -> int | None:
        with operator.engine.connect() as c:
            return c.scalar(text("SELECT count(*) FROM operator_actions"))

    before, csrf = noted(), operator.csrf()
    for verb in ACTIONS:
        where = addresses.dataset_action(LARGE, verb)
        assert anybody.client.post(where, data={"csrf": csrf}).status_code == 401
        assert reader.client.post(where, data={"csrf": csrf}).status_code == 403
        assert operator.client.post(where, data={"csrf": "x"}).status_code == 403
        assert (
            operator.client.post(where, data={"csrf": csrf}, headers={"sec-fetch-site": "cross-site"}).status_code
            == 403
        )
        assert operator.client.get(where).status_code in {404, 405}
    assert operator.act(LARGE, "drop", csrf=csrf).status_code == 404
    assert operator.act("xx999999", "pause", csrf=csrf).status_code == 404
    for wrong in ({"mode": "x"}, {"code": "'"}, {"visibility": "x"}, {"active": "maybe"}):
        assert operator.act(LARGE, "requeue", csrf=csrf, **wrong).status_code == 400
    assert operator.act(LARGE, "requeue", csrf=csrf, path="no/such").status_code == 404
    assert noted() == before


@pytest.fixture
def own(engine: Engine, tmp_path: Path) -> Desk:
    """A small archive of this test's own, with an operator at it."""
    made = Desk(engine, tmp_path / "served", OPERATOR, home=tmp_path / "home")
    with engine.begin() as c:
        states = ("served", "not_continuous", "not_continuous", "file_read_error", "pending", "served+not_continuous")
        put(c, Kept(1, status="ready", counts=(2, 3, 1), recordings=states), target=made.target.url)
        c.execute(text("INSERT INTO policies (dataset_pk) SELECT pk FROM datasets ON CONFLICT DO NOTHING"))
    return made


def due(engine: Engine) -> dict[str, int]:
    with engine.connect() as c:
        return {row.due: row.n for row in c.execute(text("SELECT due, count(*) AS n FROM recordings GROUP BY due"))}


def history(engine: Engine) -> list[tuple[str, bool, str, str | None]]:
    with engine.connect() as c:
        rows = c.execute(text("SELECT verb, executed, acted_by, why FROM operator_actions ORDER BY pk"))
        return [tuple(row) for row in rows]


def test_what_was_seen_is_done_and_kept_with_who_and_why(own: Desk) -> None:
    seen = own.proposed("xx000001", "requeue", code="not_continuous")
    assert due(own.engine) == {"none": 1, "failed": 4, "pending": 1}, "nothing yet"
    done = own.act("xx000001", "requeue", code="not_continuous", seen=seen, why="the converter was mended")
    assert done.status_code == 303
    assert due(own.engine) == {"none": 1, "failed": 1, "pending": 4}
    assert history(own.engine) == [
        ("requeue", False, "ada", None),
        ("requeue", True, "ada", "the converter was mended"),
    ]
    page = words(own.get(done.headers["location"]))
    assert "Done: requeue by ada" in page
    assert "recordings 3" in page
    with own.engine.connect() as c:
        assert c.scalar(text("SELECT state FROM requests")) == "waiting"


def test_what_has_changed_since_it_was_seen_is_shown_anew_and_not_done(own: Desk) -> None:
    seen = own.proposed("xx000001", "requeue", code="not_continuous")
    with own.engine.begin() as c:
        c.execute(text("UPDATE recordings SET code = 'not_continuous' WHERE code = 'file_read_error'"))
    again = own.act("xx000001", "requeue", code="not_continuous", seen=seen)
    assert again.status_code == 409
    assert "Nothing was done." in again.text
    assert "Make 4 recordings of xx000001 due again" in again.text
    assert due(own.engine) == {"none": 1, "failed": 4, "pending": 1}
    assert [executed for _verb, executed, _who, _why in history(own.engine)] == [False]
    other = own.act("xx000001", "requeue", code="file_read_error", seen=seen)
    assert other.status_code == 409, "a digest is for the form that it was shown for"
    newer = re.findall(r'name="seen" value="([0-9a-f]{64})"', again.text)[0]
    assert own.act("xx000001", "requeue", code="not_continuous", seen=newer).status_code == 303
    assert own.act("xx000001", "requeue", code="not_continuous", seen=newer).status_code == 409, "once"


def test_one_recording_is_made_due_again_from_its_page(own: Desk) -> None:
    path = "sub-03/eeg/sub-03_eeg.edf"
    page = own.get(addresses.recording_page("xx000001", path))
    assert "Make it due again" in page
    seen = own.proposed("xx000001", "requeue", path=path)
    done = own.act("xx000001", "requeue", path=path, seen=seen)
    assert done.headers["location"].startswith(addresses.recording_page("xx000001", path))
    assert due(own.engine) == {"none": 1, "failed": 3, "pending": 2}
    assert "Somebody asked for it." in own.get(done.headers["location"])


def test_each_other_action_is_shown_and_then_done(own: Desk) -> None:
    for verb, fields in (
        ("trigger", {"mode": "full"}),
        ("verify", {}),
        ("pause", {}),
        ("resume", {}),
        ("standing", {"active": "no"}),
        ("standing", {"active": "yes"}),
    ):
        seen = own.proposed("xx000001", verb, **fields)
        assert own.act("xx000001", verb, seen=seen, **fields).status_code == 303, verb
    done = [verb for verb, executed, _who, _why in history(own.engine) if executed]
    assert done == ["trigger", "verify", "pause", "resume", "dataset set", "dataset set"]
    with own.engine.connect() as c:
        assert pauses.current(c) == []
        asked = c.execute(text("SELECT work, mode, asked_by FROM requests ORDER BY pk")).all()
    assert [tuple(row) for row in asked] == [("convert", "full", "ada"), ("verify", "verify", "ada")]
    again = own.act("xx000001", "resume")
    assert "There is nothing to do." in again.text
    refused = own.act("xx000001", "trigger", commit="-x")
    assert refused.status_code == 400
    assert "is no name of a commit" in refused.text
    assert '<a href="/dashboard/datasets/xx000001#actions">Back to xx000001</a>' in refused.text


def test_how_many_go_side_by_side_is_no_number_where_no_worker_said_it(own: Desk) -> None:
    whole = Part(memory_bytes=1 << 30, scratch_bytes=1 << 30, slots=MANY_SLOTS)
    with own.engine.begin() as c:
        declare_host(c, key="boot:0", name="a machine", whole=whole)
        failed = list(c.scalars(text("SELECT pk FROM recordings WHERE due = 'failed'")))
        found = toll(c, recordings=failed)
        assert found.slots is None
        one = replace(found, seconds=30.0, unknown=0)
        assert one.range_s == (30.0, 30.0)
        declare_host(c, key="boot:1", name="another", whole=replace(whole, slots=3))
        assert toll(c, recordings=failed).slots == 3
    assert str(MANY_SLOTS) not in own.act("xx000001", "requeue").text


def test_a_withdrawal_says_what_goes_and_takes_it_away(own: Desk) -> None:
    base = own.target.root / "xx000001" / "zarr"  # type: ignore[attr-defined]  # a folder's
    (base / "sub-00" / "a.zarr").mkdir(parents=True)
    (base / "sub-00" / "a.zarr" / "zarr.json").write_text("{}")
    (base / "index.json").write_text("{}")
    seen = own.proposed("xx000001", "withdraw")
    (base / "sub-00" / "a.zarr" / "more").write_text("x")
    assert own.act("xx000001", "withdraw", seen=seen).status_code == 409
    seen = own.proposed("xx000001", "withdraw")
    assert own.act("xx000001", "withdraw", seen=seen).status_code == 303
    assert not (base / "index.json").exists()
    assert not (base / "sub-00" / "a.zarr").exists()
    assert "withdrawn" in own.get("/dashboard/datasets/xx000001")
    with own.engine.connect() as c:
        path, zarr = c.execute(text("SELECT path, zarr FROM recordings ORDER BY path LIMIT 1")).one()
    viewer = addresses.viewer_page("xx000001", zarr)
    page = own.get(viewer, 404)
    assert "xx000001 was withdrawn on" in page
    assert f'href="{addresses.recording_page("xx000001", path)}">What became of the recording' in page
    own.client.cookies.clear()
    page = own.get(viewer, 404)
    assert "xx000001 was withdrawn on" in page
    assert "What became of the recording" not in page, "its pages are not for everybody any more"


def test_the_engine_is_approved_for_all_that_is_stale(own: Desk) -> None:
    with own.engine.begin() as c:
        c.execute(text("UPDATE policies SET options = 'o', engine = '0', biosigio = 'b'"))
    assert "another options, another engine, another biosigio by now" in words(own.get("/dashboard/datasets/xx000001"))
    seen = own.proposed("xx000001", "engine")
    assert own.act("xx000001", "engine", seen=seen).status_code == 303
    with own.engine.connect() as c:
        assert set(c.scalars(text("SELECT rebuild_column FROM approvals"))) == {"options", "engine"}
