"""What a run shows while it goes on: a live display, plain lines, or JSON lines."""

from __future__ import annotations

import re
import sys
import threading
import time
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from cli.boundary import say
from cli.tally import Tally, outcome_of
from cli.wording import json_line, jsonable
from contract.codes import FAILURE_SENTENCES, PENDING_SENTENCES
from flows.request import Note, Published, RecordingEnded, RecordingStarted, StageChanged, Started
from infra.sizes import format_bytes
from infra.wording import duration, plural, whole_seconds

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

    from cli.tally import Running
    from flows.request import ProgressEvent
    from tasks.convert.order import AttemptReport

__all__ = ["JsonProgress", "LiveProgress", "PlainProgress", "Progress", "event_object", "open_progress"]

_RUNNING_SHOWN = 5
_BAR_WIDTH = 30
_LINE_PER_RECORDING_UP_TO = 100
_LINE_EVERY_S = 5.0


class Progress(Protocol):
    """Something that shows events. Events may come from any thread."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, event: ProgressEvent) -> None:
        """Take one event into account."""
        ...


def _goes_on() -> bool:
    return False


def open_progress(*, as_json: bool, quiet: bool = False, stopped: Callable[[], bool] = _goes_on) -> Progress:
    """The display that fits: JSON lines on stdout when asked for; else stderr, live where that is a terminal.

    ``stopped`` says whether somebody asked the run to stop, which explains what is released.
    """
    if as_json:
        return JsonProgress(sys.stdout)
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal and not console.is_dumb_terminal and not quiet:
        return LiveProgress(console, stopped=stopped)
    return PlainProgress(sys.stderr, stopped=stopped)


def event_object(event: ProgressEvent) -> dict[str, object]:
    """An event as JSON has it: its name in ``event``, then its fields; those of a report stand beside them."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()
    fields = jsonable(event.report) if isinstance(event, RecordingEnded) else jsonable(event)
    return {"event": name, **fields}


def ending(report: AttemptReport, *, stopped: bool = False) -> str:
    """How one attempt ended, in a line; what was released because the run was ``stopped`` blames nothing."""
    seconds = f" in {duration(whole_seconds(report.stage_seconds))}" if report.stage_seconds else ""
    measured = f", {format_bytes(report.measured_bytes)} of memory" if report.measured_bytes is not None else ""
    outcome = outcome_of(report)
    if outcome == "done":
        return f"done     {report.path}{seconds}{measured}"
    if report.outcome == "released":
        why = "the run was stopped" if stopped else report.error or "it was given back"
        return f"released {report.path}: {why}; not counted as an attempt"
    if report.code is not None:
        return f"failed   {report.path}: {report.code}. {FAILURE_SENTENCES[report.code]}"
    if report.reason is not None:
        return f"pending  {report.path}: {report.reason}. {PENDING_SENTENCES[report.reason]}"
    return f"pending  {report.path}: let go of ({report.outcome}), not counted as an attempt"


class JsonProgress:
    """One JSON object a line, one line an event."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        say(self._out, "")

    def show(self, event: ProgressEvent) -> None:
        """Write the event."""
        with self._lock:
            say(self._out, json_line(event_object(event)) + "\n")


class PlainProgress:
    """Lines for a log: each recording in a small run, else what went wrong and a count every few seconds."""

    def __init__(
        self, out: TextIO, clock: Callable[[], float] = time.monotonic, *, stopped: Callable[[], bool] = _goes_on
    ) -> None:
        self._out, self._clock, self._stopped = out, clock, stopped
        self._lock = threading.Lock()
        self._tally = Tally(clock)
        self._last_s = clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        say(self._out, "")

    def show(self, event: ProgressEvent) -> None:
        """Write the lines that this event is worth."""
        with self._lock:
            self._tally.add(event)
            say(self._out, "".join(f"{line}\n" for line in self._lines(event)))

    def _lines(self, event: ProgressEvent) -> list[str]:
        small = self._tally.to_convert <= _LINE_PER_RECORDING_UP_TO
        match event:
            case Started():
                found = plural(event.discovered, "recording")
                size = format_bytes(event.bytes)
                head = f"{event.dataset_id}: run {event.run_number}"
                return [f"{head}, {found} discovered, {event.to_convert:,} to convert ({size})"]
            case StageChanged():
                return [event.stage]
            case RecordingStarted() if small:
                return [f"handed   {event.path} ({format_bytes(event.bytes)}) to a worker"]
            case RecordingEnded():
                shown = small or outcome_of(event.report) != "done"
                return ([ending(event.report, stopped=self._stopped())] if shown else []) + self._count(small=small)
            case Published():
                return [f"published ({event.kind})"]
            case Note():
                return [event.sentence]
            case _:
                return []

    def _count(self, *, small: bool) -> list[str]:
        now_s = self._clock()
        if small or now_s - self._last_s < _LINE_EVERY_S:
            return []
        self._last_s = now_s
        return [position(self._tally)]


def position(tally: Tally) -> str:
    """Where the run stands, in a line."""
    counts = tally.counts
    eta_s = tally.eta_s()
    return (
        f"{tally.ended:,} of {tally.to_convert:,}: {counts['done']:,} done, {counts['failed']:,} failed, "
        f"{counts['pending']:,} pending, {format_bytes(tally.bytes_ended)} of {format_bytes(tally.bytes_total)}"
        + (f", {duration(eta_s)} to go" if eta_s is not None else "")
    )


class LiveProgress:
    """A display that renews itself in place; what went wrong scrolls by above it."""

    def __init__(
        self, console: Console, clock: Callable[[], float] = time.monotonic, *, stopped: Callable[[], bool] = _goes_on
    ) -> None:
        from rich.live import Live

        self._console, self._stopped = console, stopped
        self._lock = threading.Lock()
        self._tally = Tally(clock)
        self._live = Live(console=console, get_renderable=self.render, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, event: ProgressEvent) -> None:
        """Take one event into account; failures, pending recordings and notes are printed to stay."""
        with self._lock:
            self._tally.add(event)
        if isinstance(event, Note):
            self._console.print(event.sentence, markup=False, highlight=False)
        elif isinstance(event, RecordingEnded) and outcome_of(event.report) != "done":
            self._console.print(ending(event.report, stopped=self._stopped()), markup=False, highlight=False)

    def render(self) -> RenderableType:
        """Draw the display as it is now."""
        from rich.console import Group
        from rich.text import Text

        with self._lock:
            tally, running = self._tally, self._tally.largest_running_first()
            head = Text.assemble((tally.dataset_id or "zarrmill", "bold"), f"  {tally.stage}")
            more = len(running) - _RUNNING_SHOWN
            rest = [Text(f"… and {more:,} more with workers", "dim")] if more > 0 else []
            return Group(head, _bars(tally), _largest(tally, running[:_RUNNING_SHOWN]), *rest)


def _bars(tally: Tally) -> Table:
    """Recordings, bytes and memory, each with its bar."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    counts, eta_s = tally.counts, tally.eta_s()
    bars = Table.grid(padding=(0, 1))

    def row(name: str, part: int, whole: int, words: str | Text) -> None:
        bars.add_row(name, ProgressBar(total=max(1, whole), completed=part, width=_BAR_WIDTH), words)

    said = Text.assemble(
        f"{tally.ended:,} of {tally.to_convert:,}  ",
        (f"{counts['done']:,} done", "green"),
        "  ",
        (f"{counts['failed']:,} failed", "red" if counts["failed"] else "dim"),
        "  ",
        (f"{counts['pending']:,} pending", "yellow" if counts["pending"] else "dim"),
    )
    row("recordings", tally.ended, tally.to_convert, said)
    left = f", {duration(eta_s)} to go" if eta_s is not None else ""
    read = f"{format_bytes(tally.bytes_ended)} of {format_bytes(tally.bytes_total)}"
    row("bytes", tally.bytes_ended, tally.bytes_total, read + left)
    memory = f"{format_bytes(tally.memory_in_use_bytes)} of {format_bytes(tally.memory_allowed_bytes)}"
    row("memory", tally.memory_in_use_bytes, tally.memory_allowed_bytes, memory)
    return bars


def _largest(tally: Tally, running: list[Running]) -> Table:
    """The largest recordings that workers have, with for how long: a while in line for a slot is part of it."""
    from rich.table import Table
    from rich.text import Text

    rows = Table.grid(padding=(0, 2))
    for each in running:
        rows.add_row(
            Text(each.path, overflow="ellipsis", no_wrap=True),
            format_bytes(each.size_bytes),
            f"{format_bytes(each.permitted_bytes)} permitted",
            duration(tally.seconds_running(each)),
        )
    return rows
