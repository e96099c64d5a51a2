"""``zarrmill convert``: run, show, sum up."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cli.boundary import say
from cli.called import program
from cli.progress import open_progress
from cli.runtime import prepare
from cli.summary import summary_lines, summary_object
from cli.wording import json_line
from flows.request import Note, StageChanged, StopSignal, exit_code
from flows.stop import listening

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flows.request import ProgressEvent, ReconvertRequest

__all__ = ["STOPPING", "answering", "convert_dataset"]

STOPPING = "finishing what runs; again to stop at once"
_LOOK_EVERY_S = 0.2


def convert_dataset(request: ReconvertRequest, *, strict: bool, as_json: bool, verbose: bool) -> int:
    """Convert and publish, show how it goes on stderr and the summary on stdout; the exit code.

    The first SIGINT or SIGTERM finishes or releases what runs and publishes what is done, the second stops at once.
    """
    settings = prepare(verbose=verbose, as_json=as_json)
    stop = StopSignal()
    shown: set[str] = set()

    def show(event: ProgressEvent) -> None:
        if isinstance(event, Note):
            shown.add(event.sentence)
        progress.show(event)

    opened = open_progress(as_json=as_json, stopped=lambda: stop.state != "go")
    with listening(stop), opened as progress, answering(stop, show):
        show(StageChanged(stage="planning"))
        from flows.reconvert import reconvert

        summary = reconvert(settings, request, show, stop)
    code = exit_code(summary, strict=strict)
    if as_json:
        lines = [json_line(summary_object(summary, code))]
    else:
        lines = list(summary_lines(summary, target=request.target, program=program(), shown=shown))
    say(sys.stdout, "".join(f"{line}\n" for line in lines))
    return code


@contextmanager
def answering(stop: StopSignal, show: Callable[[ProgressEvent], None]) -> Iterator[None]:
    """While inside, the first request to stop is answered with what it does, and what a second one would.

    A thread says it: the signal may have interrupted whoever holds the lock of the display.
    """
    left = threading.Event()

    def answer() -> None:
        while not left.is_set():
            if stop.wait(_LOOK_EVERY_S):
                if stop.state == "finish":
                    show(Note(sentence=STOPPING))
                return

    thread = threading.Thread(target=answer, name="zarrmill-stopping", daemon=True)
    thread.start()
    try:
        yield
    finally:
        left.set()
        if stop.state != "go":
            thread.join()
