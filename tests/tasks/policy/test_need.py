"""The decision what a dataset needs, over every combination of what can be known of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.policy.need import DatasetSeen, Need, decide, gate_is_open

NOW = datetime(2026, 3, 1, tzinfo=UTC)
WAITS = {"round", "soon", "backoff"}
STATES = ["clean", "round", "soon", "exhausted", "backoff", "given_up", "terminal"]


@st.composite
def seen(draw: st.DrawFn) -> DatasetSeen:
    state = draw(st.sampled_from(STATES))
    hours = draw(st.integers(-3, 3))
    return DatasetSeen(
        takes_part=draw(st.booleans()),
        at_work=draw(st.booleans()),
        state=state,
        next_at=NOW + timedelta(hours=hours) if state in WAITS else None,
        has_run=draw(st.booleans()),
        is_published=draw(st.booleans()),
        version=draw(st.sampled_from([None, "a", "b"])),
        done_version=draw(st.sampled_from([None, "a", "b"])),
        index=draw(st.sampled_from(["ours", "absent", "foreign", "unknown"])),
        stale=draw(st.sampled_from([(), ("engine",), ("options", "biosigio")])),
        gate_open=draw(st.booleans()),
        rebuilding=draw(st.sampled_from([(), ("biosigio",)])),
    )


def expected(one: DatasetSeen) -> str | None:
    """The same decision, told as a table of conditions that are tried in order."""
    waited = one.next_at is not None and one.next_at <= NOW
    stays = not one.takes_part or one.at_work or one.version is None or one.index == "foreign"
    table = [
        (stays, None),
        (not one.has_run and one.done_version is None, "new"),
        (one.version != one.done_version, "version"),
        (one.index == "absent" and one.is_published, "index"),
        (waited and one.state == "round", "retry_round"),
        (waited and one.state == "soon", "not_attempted"),
        (waited and one.state == "backoff", "backoff"),
        (bool(one.stale) and one.gate_open, "engine"),
    ]
    return next((why for applies, why in table if applies), None)


@given(seen())
def test_the_first_reason_that_applies_is_asked_for(one: DatasetSeen) -> None:
    need = decide(one, now=NOW)
    assert (need and need.why) == expected(one)
    if need is None:
        return
    assert need.mode == ("retry-pending" if need.why == "retry_round" else "auto")
    assert need.rebuild_on >= {"options", "engine"}
    assert need.rebuild_on >= set(one.stale if need.why == "engine" else ())
    if need.why in {"retry_round", "not_attempted", "backoff"}:
        assert need.rebuild_on >= set(one.rebuilding)


QUIET = {
    "takes_part": True,
    "at_work": False,
    "next_at": None,
    "has_run": True,
    "is_published": True,
    "version": "a",
    "done_version": "a",
    "index": "ours",
}


@pytest.mark.parametrize("state", ["clean", "terminal", "exhausted", "given_up"])
def test_what_is_settled_is_left_until_source_or_engine_change(state: str) -> None:
    def why(**more: object) -> str | None:
        need: Need | None = decide(DatasetSeen(**(QUIET | {"state": state} | more)), now=NOW)  # type: ignore[arg-type]  # a table of arguments
        return need and need.why

    assert why() is None
    assert why(version="b") == "version"
    assert why(stale=("engine",)) is None
    assert why(stale=("engine",), gate_open=True) == "engine"


@pytest.mark.parametrize(
    ("stale_count", "approved", "is_open"), [(0, False, True), (25, False, True), (26, False, False), (700, True, True)]
)
def test_the_gate_opens_for_a_few_or_with_a_word(stale_count: int, approved: bool, is_open: bool) -> None:
    assert gate_is_open(stale_count=stale_count, approved=approved, limit=25) is is_open
