from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import tree_of

from contract.codes import FailureCode, PendingReason, WhyDue
from db.apply import PlannedAction
from db.recordings import RecordingState, ServedVersions, Verdict
from tasks.bids.discovery import discover
from tasks.plan.fingerprint import source_fingerprint
from tasks.plan.planned import InputChange, Plan, Total
from tasks.plan.worklist import plan
from tasks.sources.protocol import Absence, TreeEntry, absent_id

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
NOW_HAS = {"options": "o1", "engine": "3", "biosigio": "1.2.13"}
EDF, TSV = "sub-01/eeg/sub-01_task-x_eeg.edf", "sub-01/eeg/sub-01_task-x_channels.tsv"
TREE = tree_of(EDF, TSV)
SOURCE = source_fingerprint({path: entry.content_id for path, entry in TREE.items()})
CONVERT, CARRY, WAIT, KEEP, FAIL = (
    PlannedAction.CONVERT,
    PlannedAction.CARRY,
    PlannedAction.WAIT,
    PlannedAction.KEEP_FAILED,
    PlannedAction.FAIL,
)


def served(**other: str) -> ServedVersions:
    return ServedVersions(**{"source": SOURCE, **NOW_HAS, **other})


def verdict(code: FailureCode = FailureCode.NOT_CONTINUOUS, needed_bytes: int | None = None, **other: str) -> Verdict:
    return Verdict(code=code, needed_bytes=needed_bytes, **{"detail": None, **NOW_HAS, **other})


def state(**changes: Any) -> RecordingState:
    as_served = RecordingState(
        id=1,
        path=EDF,
        zarr=EDF.replace(".edf", ".zarr"),
        discovered=True,
        source=SOURCE,
        served=served(),
        due="none",
        why=None,
        reason=None,
        verdict=None,
        attempts=0,
        last_error=None,
        last_attempt_at=None,
        next_attempt_at=None,
    )
    return replace(as_served, **changes)


def failed(
    code: FailureCode = FailureCode.NOT_CONTINUOUS, served: ServedVersions | None = None, **other: Any
) -> RecordingState:
    return state(served=served, due="failed", verdict=verdict(code, **other))


def pending(*, served: ServedVersions | None = None, hours: float | None = None, **changes: Any) -> RecordingState:
    next_attempt_at = None if hours is None else NOW + timedelta(hours=hours)
    waiting = {
        "due": "pending",
        "why": WhyDue.NEW,
        "reason": PendingReason.INFRA_FAILURE,
        "next_attempt_at": next_attempt_at,
    }
    return state(served=served, **{**waiting, **changes})


def planned(*states: RecordingState, tree: dict[str, TreeEntry] = TREE, **asked: Any) -> Plan:
    return plan(discover(tree).recordings, tree, states, **{"now": NOW, **NOW_HAS, **asked})


RULES: list[tuple[str, RecordingState | None, dict[str, Any], PlannedAction, WhyDue | None]] = [
    ("new", None, {}, CONVERT, WhyDue.NEW),
    ("current", state(), {}, CARRY, None),
    ("current, retry-pending", state(), {"mode": "retry-pending"}, CARRY, None),
    ("current, full", state(), {"mode": "full"}, CONVERT, WhyDue.REQUESTED),
    ("source changed", state(source="old", served=served(source="old")), {}, CONVERT, WhyDue.SOURCE),
    ("source back as served", state(source="other", due="pending", why=WhyDue.SOURCE), {}, CARRY, None),
    ("options changed", state(served=served(options="o0")), {}, CONVERT, WhyDue.OPTIONS),
    ("options not watched", state(served=served(options="o0")), {"rebuild_on": ["engine"]}, CARRY, None),
    ("engine changed", state(served=served(engine="2")), {}, CONVERT, WhyDue.ENGINE),
    ("biosigio not watched", state(served=served(biosigio="1")), {}, CARRY, None),
    ("biosigio watched", state(served=served(biosigio="1")), {"rebuild_on": {"biosigio"}}, CONVERT, WhyDue.BIOSIGIO),
    ("lost", state(), {"lost": [EDF.replace(".edf", ".zarr")]}, CONVERT, WhyDue.LOST),
    ("store row gone", state(served=None), {}, CONVERT, WhyDue.LOST),
    ("vanished and back", state(discovered=False, served=None), {}, CONVERT, WhyDue.NEW),
    ("vanished and back, still served", state(discovered=False), {}, CARRY, None),
    ("not attempted", pending(reason=PendingReason.NOT_ATTEMPTED), {}, CONVERT, WhyDue.NEW),
    ("waiting", pending(hours=1, attempts=1), {}, WAIT, None),
    ("waited", pending(hours=-1, attempts=1), {}, CONVERT, WhyDue.RETRY),
    ("waited to the second", pending(hours=0, attempts=1), {}, CONVERT, WhyDue.RETRY),
    ("waiting, asked", pending(hours=1, attempts=4), {"mode": "retry-pending"}, CONVERT, WhyDue.RETRY),
    ("waiting, full", pending(hours=1, attempts=4), {"mode": "full"}, CONVERT, WhyDue.RETRY),
    ("waiting, source changed", pending(hours=1, attempts=4, source="old"), {}, CONVERT, WhyDue.SOURCE),
    ("converting", pending(due="converting"), {"mode": "full"}, WAIT, None),
    ("rebuild waits", pending(served=served(engine="2"), hours=1, why=WhyDue.ENGINE, attempts=1), {}, WAIT, None),
    (
        "rebuild waited",
        pending(served=served(engine="2"), hours=-1, why=WhyDue.ENGINE, attempts=1),
        {},
        CONVERT,
        WhyDue.RETRY,
    ),
    ("rebuild no longer wanted", pending(served=served(), hours=1, why=WhyDue.ENGINE, attempts=1), {}, CARRY, None),
    ("requested rebuild", pending(served=served(), why=WhyDue.REQUESTED), {}, CONVERT, WhyDue.REQUESTED),
    ("requested rebuild waits", pending(served=served(), hours=1, why=WhyDue.REQUESTED, attempts=1), {}, WAIT, None),
    ("rebuild failed", failed(served=served(engine="2")), {}, KEEP, None),
    ("rebuild failed with another engine", failed(served=served(engine="2"), engine="2.5"), {}, CONVERT, WhyDue.ENGINE),
    ("failed", failed(), {}, KEEP, None),
    ("failed, retry-pending", failed(), {"mode": "retry-pending"}, KEEP, None),
    ("failed, full", failed(), {"mode": "full"}, CONVERT, WhyDue.REQUESTED),
    ("exhausted", failed(FailureCode.RETRY_EXHAUSTED), {}, KEEP, None),
    ("failed by another engine", failed(engine="2"), {}, CONVERT, WhyDue.ENGINE),
    ("failed with other options", failed(options="o0"), {}, CONVERT, WhyDue.OPTIONS),
    ("failed by another biosigio", failed(biosigio="1"), {}, KEEP, None),
    (
        "failed by another biosigio, watched",
        failed(biosigio="1"),
        {"rebuild_on": ["biosigio"]},
        CONVERT,
        WhyDue.BIOSIGIO,
    ),
    ("failed, source changed", replace(failed(), source="old"), {}, CONVERT, WhyDue.SOURCE),
    ("content has come", failed(FailureCode.ANNEX_OBJECT_MISSING), {}, CONVERT, WhyDue.RETRY),
    ("twin has gone", failed(FailureCode.STORE_PATH_COLLISION), {}, CONVERT, WhyDue.NEW),
    (
        "a reader has come",
        failed(FailureCode.UNSUPPORTED_FORMAT, detail="there is no reader for HDF5 (.h5)"),
        {},
        CONVERT,
        WhyDue.NEW,
    ),
    ("another version", failed(FailureCode.UNSUPPORTED_FORMAT, detail="its version is 2"), {}, KEEP, None),
    ("too large", failed(FailureCode.RECORDING_TOO_LARGE, needed_bytes=9), {"largest_worker_bytes": 8}, KEEP, None),
    ("too large, unknown", failed(FailureCode.RECORDING_TOO_LARGE, needed_bytes=9), {}, KEEP, None),
    (
        "larger worker",
        failed(FailureCode.RECORDING_TOO_LARGE, needed_bytes=9),
        {"largest_worker_bytes": 9},
        CONVERT,
        WhyDue.RETRY,
    ),
]


@pytest.mark.parametrize(
    ("known", "asked", "action", "why"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES]
)
def test_what_is_done_with_a_recording(
    known: RecordingState | None, asked: dict[str, Any], action: PlannedAction, why: WhyDue | None
) -> None:
    (one,) = planned(*([known] if known else []), **asked).recordings
    assert (one.action, one.why) == (action, why)
    assert one.row().action is action


def test_a_collision_fails_without_an_attempt_and_is_settled_once_known() -> None:
    tree = tree_of(EDF, EDF.replace(".edf", ".set"))
    twin = planned(tree=tree).recordings[1]
    assert (twin.action, twin.failure) == (FAIL, (FailureCode.STORE_PATH_COLLISION, f"{EDF} claims the same store"))
    assert not twin.settled
    known = state(path=twin.recording.path, source=twin.fingerprint, served=None, due="failed")
    told = replace(verdict(FailureCode.STORE_PATH_COLLISION), detail=f"{EDF} claims the same store")
    again = planned(replace(known, verdict=told), tree=tree, mode="full").recordings[1]
    assert (again.action, again.settled) == (FAIL, True)


@pytest.mark.parametrize(
    ("absence", "code"),
    [
        (Absence.NOT_FETCHED, FailureCode.ANNEX_OBJECT_MISSING),
        (Absence.DANGLING, FailureCode.FILE_READ_ERROR),
        (Absence.OUTSIDE, FailureCode.FILE_READ_ERROR),
    ],
)
def test_missing_content_fails_by_name_unless_a_true_store_is_served(absence: Absence, code: FailureCode) -> None:
    tree = tree_of(EDF, TSV, absent={EDF: absence})
    for known in ([], [pending()], [failed()], [state(source="old", served=served(source="old"))]):
        (one,) = planned(*known, tree=tree, mode="full").recordings
        assert one.action is FAIL
        assert one.failure is not None
        assert one.failure[0] is code
        assert one.failure[1].startswith(EDF)
    assert planned(state(), tree=tree, mode="full").recordings[0].action is CARRY
    assert planned(state(served=served(engine="2")), tree=tree).recordings[0].action is CARRY


@pytest.mark.parametrize("absence", Absence)
def test_a_sidecar_without_content_fails_nothing_and_its_coming_is_a_change(absence: Absence) -> None:
    tree = tree_of(EDF, TSV, absent={TSV: absence})
    (without,) = planned(tree=tree).recordings
    assert (without.action, without.why) == (CONVERT, WhyDue.NEW)
    assert dict(without.inputs) == {EDF: TREE[EDF].content_id, TSV: absent_id(tree[TSV].content_id)}
    made_without = state(source=without.fingerprint, served=served(source=without.fingerprint))
    (again,) = planned(made_without, tree=tree).recordings
    assert (again.action, again.settled) == (CARRY, True)
    (come,) = planned(made_without).recordings
    assert (come.action, come.why, come.fingerprint) == (CONVERT, WhyDue.SOURCE, SOURCE)


@pytest.mark.parametrize("absence", Absence)
def test_a_store_made_with_a_sidecar_that_went_away_stays(absence: Absence) -> None:
    tree = tree_of(EDF, TSV, absent={TSV: absence})
    for mode in ("auto", "full"):
        assert planned(state(), tree=tree, mode=mode).recordings[0].action is CARRY
    assert planned(state(served=served(engine="2")), tree=tree).recordings[0].action is CARRY
    (lost,) = planned(state(), tree=tree, lost={state().zarr}).recordings
    assert (lost.action, dict(lost.inputs)[TSV]) == (CONVERT, absent_id(tree[TSV].content_id))


def test_changed_files_are_named() -> None:
    former = {EDF: "sha256:old", "channels.tsv": "sha256:x", TSV: TREE[TSV].content_id}
    known = state(id=7, source=source_fingerprint(former), served=served(source=source_fingerprint(former)))
    new = "sub-01/sub-01_events.tsv"
    before = planned(known, tree=tree_of(EDF, TSV, new))
    assert before.source_changed_ids() == (7,)
    (one,) = before.with_changes({7: former.items()}).recordings
    assert one.changed == (
        InputChange("channels.tsv", "removed"),
        InputChange(EDF, "changed"),
        InputChange(new, "added"),
    )
    assert [str(change) for change in one.changed] == [
        "channels.tsv removed",
        "sub-01_task-x_eeg.edf changed",
        "sub-01_events.tsv added",
    ]
    assert one.row().inputs == one.inputs


@pytest.mark.parametrize(
    ("former", "how"),
    [
        ("git:abc", "identified otherwise"),
        (absent_id("annex:MD5E-s1--x"), "identified otherwise"),
        ("stat:1-2-3", "changed"),
        (absent_id("stat:1-2-3"), "changed"),
    ],
)
def test_an_id_of_another_kind_is_not_called_a_change(former: str, how: str) -> None:
    entry = TreeEntry(1, "stat:4-5-6")
    known = state(id=7, source=source_fingerprint({EDF: former}))
    [one] = planned(known, tree={EDF: entry, TSV: TREE[TSV]}).with_changes({7: [(EDF, former)]}).recordings
    assert [str(change) for change in one.changed if change.path == EDF] == [f"{EDF.rpartition('/')[2]} {how}"]


def test_what_is_gone_is_dropped_once() -> None:
    gone = state(id=2, path="sub-02/eeg/sub-02_eeg.edf")
    long_gone = replace(gone, id=3, path="sub-03_eeg.edf", discovered=False)
    plan_ = planned(state(), gone, long_gone)
    assert plan_.dropped == ("sub-02/eeg/sub-02_eeg.edf",)
    assert not plan_.nothing_to_do


@pytest.mark.parametrize(
    ("known", "nothing"),
    [
        (state(), True),
        (failed(), True),
        (pending(hours=1, attempts=1), True),
        (pending(served=served(), hours=1, why=WhyDue.ENGINE), False),
        (state(discovered=False), False),
        (state(source="old"), False),
        (state(zarr="other.zarr"), False),
        (state(served=served(engine="2")), False),
    ],
)
def test_nothing_to_do_means_that_the_database_says_all_of_it_already(known: RecordingState, nothing: bool) -> None:
    assert planned(known).nothing_to_do is nothing


def test_totals_name_every_action() -> None:
    tree = tree_of(EDF, TSV, "sub-02_eeg.edf", "sub-03_eeg.edf", size_bytes=5)
    totals = planned(state(), tree=tree).totals()
    assert totals == {CONVERT: Total(2, 10), CARRY: Total(1, 5), WAIT: Total(), KEEP: Total(), FAIL: Total()}


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(ValueError, match="colour"):
        planned(rebuild_on=["colour"])


_sources = st.sampled_from([SOURCE, "old"])
_columns = st.sampled_from(["o1", "3", "1.2.13", "other"])
_served = st.none() | st.builds(ServedVersions, source=_sources, options=_columns, engine=_columns, biosigio=_columns)
_verdicts = st.builds(
    Verdict,
    code=st.sampled_from(FailureCode),
    detail=st.none(),
    options=_columns,
    engine=_columns,
    biosigio=_columns,
    needed_bytes=st.none() | st.integers(0, 10),
)


@st.composite
def _states(draw: st.DrawFn) -> RecordingState:
    due = draw(st.sampled_from(["none", "pending", "converting", "failed"]))
    return state(
        path=draw(st.sampled_from([EDF, "gone_eeg.edf", "sub-02/x_eeg.set"])),
        discovered=draw(st.booleans()),
        source=draw(_sources),
        served=draw(_served),
        due=due,
        why=draw(st.sampled_from(WhyDue)) if due in {"pending", "converting"} else None,
        verdict=draw(_verdicts) if due == "failed" else None,
        attempts=draw(st.integers(0, 5)),
        next_attempt_at=draw(st.none() | st.sampled_from([NOW - timedelta(1), NOW, NOW + timedelta(1)])),
    )


_many = st.lists(_states(), max_size=3, unique_by=lambda known: known.path)
_modes = st.sampled_from(["auto", "full", "retry-pending"])
_watched = st.sets(st.sampled_from(["options", "engine", "biosigio"]))


@given(_many, _modes, _watched, st.sampled_from([None, *Absence]))
def test_every_recording_has_one_action_and_every_known_one_is_planned_or_dropped(
    states: list[RecordingState], mode: str, watched: set[str], absence: Absence | None
) -> None:
    tree = tree_of(EDF, TSV, "sub-02/x_eeg.set", absent={TSV: absence} if absence else None)
    made = planned(*states, tree=tree, mode=mode, rebuild_on=watched)
    assert [one.recording.path for one in made.recordings] == sorted([EDF, "sub-02/x_eeg.set"])
    assert sum(total.recordings for total in made.totals().values()) == 2
    assert set(made.dropped) == {known.path for known in states if known.discovered} - {EDF, "sub-02/x_eeg.set"}
    for one in made.recordings:
        assert (one.why is not None) is (one.action is CONVERT)
        assert (one.failure is not None) is (one.action is FAIL)
        one.row()


@given(_many, _watched)
def test_equal_source_and_columns_are_carried_and_never_failed(states: list[RecordingState], watched: set[str]) -> None:
    for known in states:
        current = replace(known, path=EDF, source=SOURCE, served=served())
        (one,) = planned(current, rebuild_on=watched).recordings
        if current.due in {"none", "converting"} or (current.due == "pending" and current.why is not WhyDue.REQUESTED):
            assert one.action is CARRY or (current.due == "converting" and current.why is WhyDue.REQUESTED)
        assert one.action is not FAIL


@given(_many, _watched)
def test_auto_never_converts_what_retry_pending_would_not(states: list[RecordingState], watched: set[str]) -> None:
    auto, retry = (planned(*states, mode=mode, rebuild_on=watched) for mode in ("auto", "retry-pending"))
    assert {one.recording.path for one in auto.of(CONVERT)} <= {one.recording.path for one in retry.of(CONVERT)}
