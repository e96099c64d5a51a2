"""Ctrl-C once, twice, three times."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from cli.convert import STOPPING, answering
from cli.progress import JsonProgress, PlainProgress, Progress
from flows.request import ProgressEvent
from flows.stop import StopSignal, listening


def test_the_first_request_finishes_and_the_second_stops_at_once() -> None:
    stop = StopSignal()
    assert (stop.state, stop.kind) == ("go", None)
    stop.request("SIGTERM")
    assert (stop.state, stop.kind) == ("finish", "SIGTERM")
    stop.request("SIGINT")
    assert (stop.state, stop.kind) == ("now", "SIGTERM")


def test_a_thread_that_waits_is_woken_by_a_request() -> None:
    stop = StopSignal()
    threading.Timer(0.05, stop.request, ["SIGINT"]).start()
    began_s = time.monotonic()
    assert stop.wait(120)
    assert time.monotonic() - began_s < 90
    assert not StopSignal().wait(0)


def test_signals_are_heard_inside_only_also_when_nested() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    stop = StopSignal()
    with listening(stop):
        outer = signal.getsignal(signal.SIGTERM)
        with listening(stop):
            os.kill(os.getpid(), signal.SIGTERM)
            assert (stop.state, stop.kind) == ("finish", "SIGTERM")
        assert signal.getsignal(signal.SIGTERM) is outer
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_the_third_signal_ends_a_process_that_does_not_listen() -> None:
    code = """
import time
from flows.stop import StopSignal, listening
stop = StopSignal()
with listening(stop):
    print(stop.state, flush=True)
    seen = "go"
    while True:
        time.sleep(0.01)
        if stop.state != seen:
            seen = stop.state
            print(seen, flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for expected in ("go", "finish", "now"):
            assert process.stdout.readline().strip() == expected
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=90) == -signal.SIGINT


@pytest.mark.parametrize("as_json", [False, True])
def test_the_first_ctrl_c_is_answered_with_what_a_second_one_does(as_json: bool) -> None:
    stop, out, said = StopSignal(), io.StringIO(), threading.Event()
    progress: Progress = JsonProgress(out) if as_json else PlainProgress(out)

    def show(event: ProgressEvent) -> None:
        progress.show(event)
        said.set()

    with listening(stop), answering(stop, show):
        os.kill(os.getpid(), signal.SIGINT)
        assert said.wait(90)
    lines = out.getvalue().splitlines()
    assert len(lines) == 1
    told = json.loads(lines[0]) if as_json else lines[0]
    assert told == ({"event": "note", "sentence": STOPPING} if as_json else STOPPING)


def test_a_run_that_nobody_stops_is_not_told_how() -> None:
    events: list[ProgressEvent] = []
    with answering(StopSignal(), events.append):
        time.sleep(0.3)
    assert events == []
