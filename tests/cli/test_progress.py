"""What a run shows: the counts behind it, live, in lines, and as JSON; and the summary at its end."""

from __future__ import annotations

import io
import json
from types import MappingProxyType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cli.progress import JsonProgress, LiveProgress, PlainProgress, ending, event_object
from cli.summary import coverage_line, summary_lines, summary_object
from cli.tally import Tally
from cli.wording import json_line
from contract.codes import FailureCode, PendingReason
from flows.request import (
    MemoryInUse,
    Note,
    ProgressEvent,
    Published,
    RecordingEnded,
    RecordingStarted,
    RunSummary,
    StageChanged,
    Started,
    exit_code,
)
from infra.wording import bounded, duration, in_order, plural, whole_seconds
from tasks.convert.order import AttemptReport

MIB = 2**20


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def report(path: str, outcome: str = "done", **more: object) -> AttemptReport:
    return AttemptReport(attempt_id=UUID(int=len(path)), recording_id=1, path=path, outcome=outcome, **more)  # type: ignore[arg-type]  # fields by name


def ended(path: str, outcome: str = "done", **more: object) -> RecordingEnded:
    return RecordingEnded(report=report(path, outcome, **more))


def began(path: str, mib: int = 10) -> RecordingStarted:
    return RecordingStarted(path=path, bytes=mib * MIB, permitted_bytes=400 * MIB)


A_RUN: list[ProgressEvent] = [
    StageChanged(stage="planning"),
    Started(dataset_id="xx000001", run_number=3, discovered=6, to_convert=4, bytes=100 * MIB),
    MemoryInUse(in_use_bytes=800 * MIB, allowed_bytes=4096 * MIB),
    began("a.edf", 10),
    began("b.edf", 60),
    ended("a.edf", measured_bytes=123 * MIB, stage_seconds=MappingProxyType({"read": 1.5, "convert": 2.0})),
    began("c.set", 20),
    ended("c.set", "failed", code=FailureCode.NOT_CONTINUOUS, error="20 trials"),
    began("d.fif", 10),
    ended("d.fif", "pending", reason=PendingReason.MEMORY_BUDGET, counted=True),
    Note(sentence="The catalog could not be written."),
    Published(kind="interim"),
]


def fed(events: list[ProgressEvent], clock: Clock | None = None) -> Tally:
    tally = Tally(clock or Clock())
    for event in events:
        tally.add(event)
    return tally


def test_the_tally_counts_what_came_of_each_recording() -> None:
    tally = fed(A_RUN)
    assert tally.counts == {"done": 1, "failed": 1, "pending": 1}
    assert (tally.ended, tally.to_convert, tally.discovered) == (3, 4, 6)
    assert tally.bytes_ended == 40 * MIB
    assert [each.path for each in tally.largest_running_first()] == ["b.edf"]
    assert (tally.memory_in_use_bytes, tally.memory_allowed_bytes) == (800 * MIB, 4096 * MIB)


def test_a_recording_that_is_let_go_of_and_comes_again_counts_once() -> None:
    tally = fed([*A_RUN, began("d.fif", 10)])
    assert tally.counts["pending"] == 0
    assert tally.bytes_ended == 30 * MIB
    tally.add(ended("d.fif"))
    assert tally.counts == {"done": 2, "failed": 1, "pending": 0}
    assert tally.bytes_ended == 40 * MIB


def test_the_largest_that_still_run_come_first() -> None:
    tally = fed([began("x", 1), began("y", 9), began("z", 5)])
    assert [each.path for each in tally.largest_running_first()] == ["y", "z", "x"]


def test_time_to_go_follows_the_bytes_and_is_not_guessed_early() -> None:
    clock = Clock()
    tally = Tally(clock)
    tally.add(Started(dataset_id="xx000001", run_number=1, discovered=10, to_convert=10, bytes=100 * MIB))
    for path in ("a", "b", "c"):
        tally.add(began(path))
    tally.add(ended("a"))
    clock.now_s += 6
    tally.add(ended("b"))
    assert tally.eta_s() is None, "two recordings are too few"
    tally.add(ended("c"))
    assert tally.eta_s() is None, "nothing runs"
    tally.add(began("d"))
    assert tally.eta_s() == pytest.approx(14.0), "30 MiB took 6 s, 70 MiB are left"


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["start", "done", "failed", "released"])), max_size=40)
)
def test_whatever_order_events_come_in_each_recording_is_counted_at_most_once(steps: list[tuple[str, str]]) -> None:
    tally, last = Tally(Clock()), dict[str, str]()
    for path, step in steps:
        if step == "start":
            tally.add(began(path, 1))
            last.pop(path, None)
        else:
            tally.add(ended(path, step, code=FailureCode.EMPTY_RECORDING if step == "failed" else None))
            last[path] = {"released": "pending"}.get(step, step)
    assert tally.counts == {key: list(last.values()).count(key) for key in ("done", "failed", "pending")}
    assert tally.ended == len(last)


def test_plain_lines_tell_a_small_run_recording_by_recording() -> None:
    out = io.StringIO()
    with PlainProgress(out, Clock()) as progress:
        for event in A_RUN:
            progress.show(event)
    lines = out.getvalue().splitlines()
    assert "xx000001: run 3, 6 recordings discovered, 4 to convert (100MiB)" in lines
    assert "handed   a.edf (10MiB) to a worker" in lines, "it may wait there for a slot"
    assert "done     a.edf in 3.5 s, 123MiB of memory" in lines
    failed = next(line for line in lines if line.startswith("failed"))
    assert failed.startswith("failed   c.set: not_continuous. This file holds epochs")
    assert any(line.startswith("pending  d.fif: memory_budget. There was not enough memory") for line in lines)
    assert "The catalog could not be written." in lines
    assert "\x1b" not in out.getvalue()


def test_plain_lines_of_a_large_run_are_few() -> None:
    out, clock = io.StringIO(), Clock()
    with PlainProgress(out, clock) as progress:
        progress.show(Started(dataset_id="xx000001", run_number=1, discovered=3000, to_convert=3000, bytes=3000 * MIB))
        for i in range(3000):
            progress.show(began(f"{i}.edf", 1))
            clock.now_s += 0.01
            failed = {"code": FailureCode.EMPTY_RECORDING} if i == 7 else {}
            progress.show(ended(f"{i}.edf", "failed" if failed else "done", **failed))
    lines = out.getvalue().splitlines()
    assert sum(line.startswith("failed   7.edf") for line in lines) == 1
    assert 5 <= sum(" of 3,000: " in line for line in lines) <= 6, "one every five seconds"
    assert len(lines) < 12


def test_what_a_stop_released_blames_nothing() -> None:
    event = ended("a.edf", "released", reason=PendingReason.INFRA_FAILURE, error="the conversion was stopped")
    out, console = io.StringIO(), Console(file=io.StringIO(), width=120)
    PlainProgress(out, Clock(), stopped=lambda: True).show(event)
    LiveProgress(console, Clock(), stopped=lambda: True).show(event)
    assert out.getvalue() == "released a.edf: the run was stopped; not counted as an attempt\n"
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == out.getvalue()
    changed = report("b.edf", "released", error="the source changed while it was converted")
    assert ending(changed) == "released b.edf: the source changed while it was converted; not counted as an attempt"


def test_json_lines_parse_and_hold_every_field() -> None:
    out = io.StringIO()
    with JsonProgress(out) as progress:
        for event in A_RUN:
            progress.show(event)
    objects = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [each["event"] for each in objects] == [
        "stage_changed", "started", "memory_in_use", "recording_started", "recording_started", "recording_ended",
        "recording_started", "recording_ended", "recording_started", "recording_ended", "note", "published",
    ]  # fmt: skip
    assert objects[5]["stage_seconds"] == {"read": 1.5, "convert": 2.0}
    assert objects[7] == {
        "event": "recording_ended",
        "attempt_id": str(UUID(int=5)),
        "recording_id": 1,
        "path": "c.set",
        "outcome": "failed",
        "code": "not_continuous",
        "reason": None,
        "counted": False,
        "error": "20 trials",
        "measured_bytes": None,
        "events_unusable": False,
        "again": False,
        "stage_seconds": {},
    }


def test_json_has_no_not_a_number() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_line(event_object(ended("a.edf", stage_seconds={"read": float("nan")})))


def test_the_live_display_shows_counts_bytes_memory_and_the_largest_running() -> None:
    console = Console(file=io.StringIO(), width=120, force_terminal=True, color_system=None)
    progress = LiveProgress(console, Clock())
    for event in A_RUN:
        progress.show(event)
    printed = console.file.getvalue()  # type: ignore[attr-defined]  # it is the StringIO from above
    assert "c.set: not_continuous" in printed
    assert "a.edf" not in printed, "what went well does not scroll by"
    with console.capture() as captured:
        console.print(progress.render())
    drawn = captured.get()
    assert "xx000001  planning" in drawn
    assert "3 of 4  1 done  1 failed  1 pending" in drawn
    assert "40MiB of 100MiB" in drawn
    assert "800MiB of 4GiB" in drawn
    assert "b.edf" in drawn
    assert "400MiB permitted" in drawn


def test_the_live_display_survives_markup_in_names_and_ends_without_a_trace() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    with LiveProgress(console, Clock()) as progress:
        progress.show(Started(dataset_id="xx000001", run_number=1, discovered=9, to_convert=9, bytes=9 * MIB))
        for i in range(9):
            progress.show(began(f"sub-[red]{i}[/red].edf", 1))
        progress.show(ended("sub-[red]1[/red].edf", "failed", code=FailureCode.EMPTY_RECORDING))
        with console.capture() as captured:
            console.print(progress.render())
    assert "sub-[red]0[/red].edf" in captured.get()
    assert "… and 3 more with workers" in captured.get()


def summary(**changes: object) -> RunSummary:
    values: dict[str, object] = {
        "dataset_id": "xx000001",
        "target": "/srv/served",
        "run_number": 2,
        "discovered": 12,
        "stores": 8,
        "failures": 3,
        "pending": 1,
        "converted": 5,
        "carried": 3,
        "failed_by_code": MappingProxyType(
            {FailureCode.NOT_CONTINUOUS: ("b/x y.set",), FailureCode.CORRUPT_OR_TRUNCATED: ("a.edf", "c.edf")}
        ),
        "pending_by_reason": {PendingReason.INFRA_FAILURE: ("d.edf",)},
        "changed": True,
        "published": True,
        "documents": {"index": "/srv/served/xx000001/zarr/index.json"},
        "seconds": 75.4,
    }
    return RunSummary(**(values | changes))  # type: ignore[arg-type]  # fields by name


def test_the_summary_balances_groups_failures_and_names_commands_that_can_be_copied() -> None:
    lines = list(summary_lines(summary(), target="/srv/served"))
    text = "\n".join(lines)
    assert lines[0] == "xx000001 at /srv/served, run 2, 1 min 15 s"
    assert lines[1] == "12 discovered = 8 stores + 3 failures + 1 pending"
    assert "5 converted now, 3 carried forward." in lines
    assert "  corrupt_or_truncated (2): The data file of this recording is truncated or corrupt." in lines
    assert text.index("corrupt_or_truncated") < text.index("not_continuous") < text.index("infra_failure")
    assert (
        "  zarrmill why xx000001 a.edf --to /srv/served" in lines
        or "  zarrmill why xx000001 'b/x y.set' --to /srv/served" in lines
    )
    assert "  zarrmill serve --to /srv/served" in lines
    assert any("/srv/served/xx000001/zarr/index.json" in line for line in lines)


def test_the_summary_says_what_was_not_said_before() -> None:
    noted = summary(notes=("one is odd", "two is odd"))
    lines = list(summary_lines(noted, target="./served", program=".venv/bin/zarrmill", shown={"one is odd"}))
    assert [line for line in lines if "odd" in line] == ["two is odd"]
    assert "  .venv/bin/zarrmill status xx000001" in lines
    assert not any(line.strip().startswith("zarrmill ") for line in lines)


def test_the_summary_of_many_failures_is_bounded() -> None:
    many = tuple(f"{i:05}.edf" for i in range(25_000))
    text = list(summary_lines(summary(failed_by_code={FailureCode.EMPTY_RECORDING: many}), target="./served"))
    assert len(text) < 40
    assert "    … and 24,990 more" in text
    assert "  zarrmill serve" in text, "the default target needs no option"


def test_a_run_with_nothing_to_do_says_so() -> None:
    lines = list(summary_lines(summary(run_number=None, converted=0, changed=False), target="./served"))
    assert "Nothing has changed: nothing was converted and nothing was written." in lines


def test_an_imbalance_is_shown_as_one() -> None:
    assert coverage_line(12, 8, 3, 1) == "12 discovered = 8 stores + 3 failures + 1 pending"
    assert coverage_line(13, 1, 1, 0) == "13 discovered ≠ 1 store + 1 failure + 0 pending"


@pytest.mark.parametrize(
    ("changes", "strict", "code"),
    [
        ({}, False, 0),
        ({}, True, 3),
        ({"failures": 0, "pending": 1}, True, 3),
        ({"failures": 0, "pending": 0}, True, 0),
        ({"changed": False}, False, 0),
        ({"published": False}, False, 1),
        ({"published": False}, True, 1),
        ({"unserved": "there is no worker"}, False, 5),
        ({"unserved": "there is no worker"}, True, 5),
        ({"unserved": "there is no worker", "published": False}, False, 1),
        ({"unserved": "there is no worker", "stopped": "SIGTERM"}, False, 143),
        ({"stopped": "SIGINT"}, False, 130),
        ({"stopped": "SIGTERM"}, True, 143),
        ({"stopped": "SIGINT", "published": False}, False, 130),
    ],
)
def test_exit_codes(changes: dict[str, object], strict: bool, code: int) -> None:
    assert exit_code(summary(**changes), strict=strict) == code


def test_the_summary_object_is_one_line_of_json() -> None:
    line = json_line(summary_object(summary(), 3))
    value = json.loads(line)
    assert "\n" not in line
    assert value["event"] == "summary"
    assert value["exit_code"] == 3
    assert value["failed_by_code"]["corrupt_or_truncated"] == ["a.edf", "c.edf"]
    assert value["discovered"] == value["stores"] + value["failures"] + value["pending"]


def test_what_happens_inside_the_child_is_not_counted_twice() -> None:
    stages = {"upload": 0.5, "read": 1.0, "child": 4.0, "convert": 2.5, "fetch": 1.0, "other": 9.0}
    assert whole_seconds(stages) == 5.5
    assert whole_seconds({"read": 1.0, "convert": 2.5}) == 3.5
    assert [stage for stage, _ in in_order(stages)] == ["fetch", "child", "read", "convert", "upload", "other"]


def test_small_wording() -> None:
    assert [duration(s) for s in (0.04, 9.94, 9.96, 59.4, 59.6, 3599.4, 3599.6, 7800)] == [
        "0.0 s", "9.9 s", "10 s", "59 s", "1 min 00 s", "59 min 59 s", "1 h 00 min", "2 h 10 min",
    ]  # fmt: skip
    assert (plural(1, "store"), plural(1200, "store"), plural(2, "entry", "entries")) == (
        "1 store",
        "1,200 stores",
        "2 entries",
    )
    assert list(bounded(["a", "b", "c"], 3)) == ["a", "b", "c"]
    assert list(bounded(["a", "b", "c"], 2)) == ["a", "b", "… and 1 more"]
