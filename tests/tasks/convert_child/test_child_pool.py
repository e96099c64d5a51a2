"""Real children of a real fork server: what each end of a child looks like to the one who waits for it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from fan_out_bench import wait_until

from infra.cluster import child_environment
from infra.host import process_is_gone, process_started
from tasks.convert.child import ChildLostError, ChildPool, ChildRaisedError, ChildResult
from tasks.convert.child_process import Raised

MB = 1 << 20
SUPPORT = Path(__file__).resolve().parents[2] / "support"
ROOT = Path(__file__).resolve().parents[3]


def environment() -> dict[str, str]:
    return child_environment({**os.environ, "PYTHONPATH": f"{ROOT}:{SUPPORT}"})


@pytest.fixture(scope="module")
def pool() -> Iterator[ChildPool]:
    pool = ChildPool(environment(), ["child_calls"])
    yield pool
    pool.close()


def call(pool: ChildPool, name: str, *args: object, **options: object) -> ChildResult:
    settings: dict[str, object] = {"permitted_bytes": 64 * MB, "timeout_s": 90.0} | options
    return pool.run(f"child_calls:{name}", *args, **settings)  # type: ignore[arg-type]  # tests name what differs


def lost(pool: ChildPool, name: str, *args: object, **options: object) -> ChildLostError:
    with pytest.raises(ChildLostError) as caught:
        call(pool, name, *args, **options)
    return caught.value


def test_a_result_comes_back_with_the_memory_it_took(pool: ChildPool) -> None:
    result = pool.run("child_calls:fill_heap", 40 * MB, permitted_bytes=64 * MB, timeout_s=90)
    assert result.value == 40 * MB
    assert result.measured_bytes is not None
    # The kernel counts resident pages in batches, so a few are missing or too many.
    assert 39 * MB <= result.measured_bytes < 50 * MB


def test_a_spike_between_two_polls_is_measured_in_memory() -> None:
    rarely = ChildPool(environment(), ["child_calls"], poll_s=20.0)
    try:
        polls: list[int] = []
        result = call(rarely, "fill_heap", 50 * MB, on_poll=polls.append)
        assert polls == []
        assert result.measured_bytes is not None
        assert result.measured_bytes >= 49 * MB
        streamed = call(rarely, "fill_heap", 50 * MB, in_memory=False)
        assert streamed.measured_bytes is not None
        assert streamed.measured_bytes < 49 * MB, "what polling alone would have seen"
    finally:
        rarely.close()


def test_a_mapped_file_is_not_charged_when_streamed(pool: ChildPool, tmp_path: Path) -> None:
    big = tmp_path / "signal.dat"
    with big.open("wb") as file:
        file.truncate(150 * MB)
    result = pool.run("child_calls:map_file", str(big), permitted_bytes=64 * MB, timeout_s=90, in_memory=False)
    assert result.measured_bytes is not None
    assert result.measured_bytes < 30 * MB


def test_an_allocation_above_the_data_limit_is_a_memory_error_in_the_child(pool: ChildPool) -> None:
    with pytest.raises(ChildRaisedError) as caught:
        call(pool, "fill_heap", 200 * MB, explain="child_calls:describe")
    assert caught.value.explained == ("MemoryError", None)


def test_growth_above_the_permitted_memory_is_killed_and_its_peak_reported(pool: ChildPool) -> None:
    ended = lost(pool, "grow_slowly", 4 * MB, 0.03)
    assert ended.exit.killed_for == "memory"
    assert ended.exit.signal == signal.SIGKILL
    assert ended.exit.last_rss_bytes is not None
    assert 64 * MB < ended.exit.last_rss_bytes < 100 * MB
    assert ended.measured_bytes == ended.exit.last_rss_bytes


def test_shared_memory_that_no_data_limit_sees_is_killed_too(pool: ChildPool) -> None:
    assert lost(pool, "fill_shared", 150 * MB, 10.0).exit.killed_for == "memory"


@pytest.mark.parametrize(
    ("name", "args", "exitcode"),
    [
        ("die_by", (signal.SIGSEGV,), -signal.SIGSEGV),
        ("die_by", (signal.SIGBUS,), -signal.SIGBUS),
        ("die_by", (signal.SIGKILL,), -signal.SIGKILL),
        ("segfault", (), -signal.SIGSEGV),
        ("exit_with", (7,), 7),
        ("exit_with", (0,), 0),
    ],
)
def test_the_way_a_child_ended_is_told(pool: ChildPool, name: str, args: tuple[int, ...], exitcode: int) -> None:
    ended = lost(pool, name, *args).exit
    assert (ended.exitcode, ended.killed_for) == (exitcode, None)
    assert ended.signal == (-exitcode if exitcode < 0 else None)


@pytest.mark.parametrize(("name", "argument"), [("sleep", 60.0), ("hold_gil", 60)])
def test_a_child_that_hangs_is_killed_at_its_time_limit(pool: ChildPool, name: str, argument: float) -> None:
    begun = time.monotonic()
    assert lost(pool, name, argument, timeout_s=0.3).exit.killed_for == "timeout"
    assert time.monotonic() - begun < 45


def test_a_cancelled_child_is_killed(pool: ChildPool, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    assert lost(pool, "touch_then_sleep", str(mark), 60.0, cancelled=mark.exists).exit.killed_for == "cancelled"
    assert process_started(int(mark.read_text())) is None


def test_an_exception_is_explained_in_the_child_with_its_cause(pool: ChildPool) -> None:
    with pytest.raises(ChildRaisedError) as caught:
        call(pool, "fail_with_cause", explain="child_calls:describe")
    assert caught.value.explained == ("ValueError", "OSError")


@pytest.mark.parametrize("explain", [None, "child_calls:explain_badly", "child_calls:no_such_function"])
def test_an_exception_that_nobody_explains_crosses_as_class_line_and_traceback(
    pool: ChildPool, explain: str | None
) -> None:
    with pytest.raises(ChildRaisedError) as caught:
        call(pool, "fail_with_cause", explain=explain)
    raised = caught.value.explained
    assert isinstance(raised, Raised)
    assert (raised.class_name, raised.line) == ("ValueError", "the reader's own words")
    assert "No space left on device" in raised.traceback


def test_a_result_that_cannot_cross_is_an_error_of_its_call(pool: ChildPool) -> None:
    with pytest.raises(ChildRaisedError) as caught:
        call(pool, "unpicklable")
    assert caught.value.explained.class_name == "TypeError"


def test_an_errno_survives(pool: ChildPool) -> None:
    with pytest.raises(ChildRaisedError) as caught:
        call(pool, "fail_with_errno", errno.ENOSPC)
    assert caught.value.explained.class_name == "OSError"
    assert "No space left" in caught.value.explained.line


def test_a_child_inherits_its_channel_and_lifeline_and_nothing_else(pool: ChildPool) -> None:
    threads = [threading.Thread(target=call, args=(pool, "sleep", 0.4)) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    result = pool.run("child_calls:print_and_list_descriptors", permitted_bytes=600 * MB, timeout_s=90)
    for thread in threads:
        thread.join()
    # standard streams, channel, lifeline, and the folder being listed
    assert len(result.value) == 6


def test_small_recordings_share_a_child_so_many_times() -> None:
    with_few = ChildPool(environment(), ["child_calls"], max_served=3)
    try:
        pids = [call(with_few, "own_pid").value for _ in range(7)]
        assert pids == [pids[0]] * 3 + [pids[3]] * 3 + [pids[6]]
        assert len({*pids}) == 3
        large = {call(with_few, "own_pid", permitted_bytes=600 * MB).value for _ in range(3)}
        assert len(large) == 3
    finally:
        with_few.close()


def test_a_child_is_retired_after_any_error_and_never_lends_its_memory_to_the_next() -> None:
    pool = ChildPool(environment(), ["child_calls"])
    try:
        first = call(pool, "own_pid").value
        with pytest.raises(ChildRaisedError):
            call(pool, "fail_recording")
        second = call(pool, "own_pid").value
        assert first != second
        call(pool, "keep", 48 * MB)
        assert call(pool, "own_pid").value != second
    finally:
        pool.close()


def test_an_idle_child_that_died_is_not_used() -> None:
    pool = ChildPool(environment(), ["child_calls"])
    try:
        pid = call(pool, "own_pid").value
        os.kill(pid, signal.SIGKILL)
        wait_gone(pid, 60)
        assert call(pool, "own_pid").value != pid
    finally:
        pool.close()


def test_a_file_is_never_read_by_two_calls_at_once_in_one_process(pool: ChildPool, tmp_path: Path) -> None:
    """pyedflib, told to open a file that it has open, spoils the first reader's samples without a word."""
    file = tmp_path / "signal.edf"
    file.write_bytes(b"x" * 1000)
    reads: list[tuple[int, float, float]] = []

    def read() -> None:
        reads.extend(call(pool, "read_slowly", str(file), 0.05).value for _ in range(4))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reads) == 16
    assert len({pid for pid, _began, _ended in reads}) > 1, "some were side by side"
    for pid in {pid for pid, _began, _ended in reads}:
        spans = sorted((began, ended) for each, began, ended in reads if each == pid)
        assert all(earlier[1] <= later[0] for earlier, later in pairwise(spans))


def test_a_thousand_children_of_four_threads_lose_no_exit_code_and_no_descriptor(pool: ChildPool) -> None:
    lost(pool, "exit_with", 1, permitted_bytes=600 * MB)
    before = len(list(Path("/proc/self/fd").iterdir()))
    wrong: list[object] = []

    def many(offset: int) -> None:
        for number in range(250):
            code = (offset * 250 + number) % 120 + 1
            kind, argument, expected = ("exit_with", code, code) if number % 3 else ("die_by", 9, -9)
            ended = lost(pool, kind, argument, permitted_bytes=600 * MB).exit
            if ended.exitcode != expected:
                wrong.append((expected, ended))

    threads = [threading.Thread(target=many, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_the_pool_survives_the_death_of_its_fork_server(tmp_path: Path) -> None:
    pool = ChildPool(environment(), ["child_calls"])
    try:
        pool.warm_up()
        server = pool.fork_server_pid
        assert server is not None
        ends: list[ChildLostError] = []
        mark = tmp_path / "pid"
        thread = threading.Thread(
            target=lambda: ends.append(
                lost(pool, "touch_then_sleep", str(mark), 300.0, permitted_bytes=600 * MB, timeout_s=300.0)
            )
        )
        thread.start()
        wait_until(mark.exists)
        os.kill(server, signal.SIGKILL)
        thread.join(120)
        assert [end.exit.killed_for for end in ends] == ["fork_server"]
        assert call(pool, "echo", 3, permitted_bytes=600 * MB).value == 3
        assert pool.fork_server_pid != server
    finally:
        pool.close()


@pytest.mark.parametrize("call_name", ["sleep", "hold_gil"])
def test_children_and_fork_server_die_with_a_supervisor_that_is_killed(tmp_path: Path, call_name: str) -> None:
    mark = tmp_path / "pids"
    program = f"""
import sys, threading, time
from pathlib import Path
from infra.cluster import child_environment
from tasks.convert.child import ChildPool
pool = ChildPool({environment()!r}, ["child_calls"])
pool.warm_up()
for _ in range(2):
    threading.Thread(target=pool.run, args=("child_calls:{call_name}", 300),
                     kwargs=dict(permitted_bytes={600 * MB}, timeout_s=300), daemon=True).start()
children = []
while len(children) < 3:
    time.sleep(0.05)
    children = Path(f"/proc/{{pool.fork_server_pid}}/task/{{pool.fork_server_pid}}/children").read_text().split()
Path({str(mark)!r} + ".part").write_text(" ".join([str(pool.fork_server_pid), *children]))
Path({str(mark)!r} + ".part").rename({str(mark)!r})
time.sleep(300)
"""
    with subprocess.Popen([sys.executable, "-c", program], env=environment(), cwd=ROOT) as supervisor:
        deadline = time.monotonic() + 120
        while not mark.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        pids = [int(pid) for pid in mark.read_text().split()]
        assert len(pids) == 4  # the fork server, the warm child, two at work
        started = [process_started(pid) for pid in pids]
        assert None not in started
        supervisor.kill()
    end = time.monotonic() + 60
    while not all(process_is_gone(pid, at) for pid, at in zip(pids, started, strict=True)):
        assert time.monotonic() < end, "a child outlived its supervisor"
        time.sleep(0.02)


def test_the_real_preload_leaves_one_thread() -> None:
    pool = ChildPool(environment())
    try:
        assert pool.warm_up() == 1
        seen = call(pool, "environment_and_threads").value
        assert seen == {"threads": 1, "oom_score_adj": 900, "main": "__main__", "modules": True, "openblas": "1"}
    finally:
        pool.close()


def test_without_the_arrow_setting_the_preload_would_leave_two_threads() -> None:
    bare = {name: value for name, value in environment().items() if name != "JE_ARROW_MALLOC_CONF"}
    pool = ChildPool(bare, ["pyarrow", "pandas"])
    try:
        assert pool.warm_up() > 1
    finally:
        pool.close()


def wait_gone(pid: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while process_started(pid) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
