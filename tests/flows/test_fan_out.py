"""The fan-out on a real cluster: real workers, real children, real Postgres, and recordings that misbehave."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distributed import Client
from fan_out_bench import MB, Shop, wait_until
from sqlalchemy import Engine, text

from contract.codes import FailureCode, PendingReason
from infra.settings import Settings

SLOTS = 3


def scratch_is_empty(settings: Settings) -> bool:
    """Whether no attempt has a folder; each worker keeps an empty one of its own."""
    workers = [path for path in settings.scratch.iterdir() if path.name != "dask"]
    return [path for worker in workers for path in worker.iterdir() if path.is_dir()] == []


def test_recordings_are_converted_and_served_and_nothing_is_left_behind(
    small_client: Client, shop: Shop, small_settings: Settings
) -> None:
    names = [f"{number:02}" for number in range(12)]
    for name in names:
        shop.put(name)
    run = shop.begin()
    reports = shop.convert(small_client, run)
    assert {name: report.outcome for name, report in reports.items()} == dict.fromkeys(names, "done")
    for name in names:
        assert shop.state(name).served is not None
        assert shop.is_served(name)
        (attempt,) = shop.attempts(name)
        assert attempt.measured_bytes is not None
        assert {"fetch", "child", "upload"} <= set(attempt.stage_seconds)
    assert shop.reserved() == 0
    wait_until(lambda: scratch_is_empty(small_settings), 90)
    shop.end(run)


INNOCENTS = ("i1", "i2", "i3", "i4", "i5", "i6")


def test_a_recording_that_needs_more_than_it_was_given_is_converted_alone_with_more(
    small_client: Client, shop: Shop
) -> None:
    shop.put("big", {"do": "allocate", "bytes": 300 * MB})
    for name in INNOCENTS[:3]:
        shop.put(name)
    run = shop.begin()
    reports = shop.convert(small_client, run)
    assert {report.outcome for report in reports.values()} == {"done"}
    assert shop.state("big").attempts == 0
    permitted = sorted(attempt.permitted_bytes for attempt in shop.attempts("big"))
    assert permitted == [96 * MB, 1024 * MB]
    shop.end(run)


def test_what_fits_no_worker_waits_uncounted_and_what_fits_no_machine_has_failed(
    small_client: Client, shop: Shop
) -> None:
    for name in ("later", "never", "fine"):
        shop.put(name)
    run = shop.begin()
    reports = shop.convert(
        small_client,
        run,
        later={"permitted_bytes": 4096 * MB, "floor_bytes": 200 * MB},
        never={"permitted_bytes": 4096 * MB, "floor_bytes": 1 << 50},
    )
    assert reports["fine"].outcome == "done"
    assert (reports["later"].outcome, reports["later"].reason) == ("pending", PendingReason.MEMORY_BUDGET)
    later = shop.state("later")
    assert (later.due, later.reason, later.attempts) == ("pending", PendingReason.MEMORY_BUDGET, 0)
    assert "4GiB" in str(later.last_error)
    assert reports["never"].code is FailureCode.RECORDING_TOO_LARGE
    assert shop.state("never").code is FailureCode.RECORDING_TOO_LARGE
    shop.end(run)


def stopping(shop: Shop, word: str, ready: Callable[[], bool]) -> Callable[[], str | None]:
    state: dict[str, str] = {}

    def should_stop() -> str | None:
        if not state and ready():
            state["word"] = word
        return state.get("word")

    return should_stop


def test_a_soft_stop_finishes_what_runs_and_leaves_the_rest_due(
    small_client: Client, shop: Shop, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    shop.put("first", {"do": "sleep", "seconds": 0.5, "mark": str(mark)})
    for number in range(12):
        shop.put(f"r{number}", {"do": "sleep", "seconds": 0.3})
    run = shop.begin()
    reports = shop.convert(
        small_client, run, should_stop=stopping(shop, "finish", mark.exists), first={"permitted_bytes": 200 * MB}
    )
    assert reports["first"].outcome == "done"
    assert {report.outcome for report in reports.values()} == {"done"}
    assert len(reports) < 13
    left = [state for state in shop.states().values() if state.served is None]
    assert {(state.due, state.attempts) for state in left} == {("pending", 0)}
    shop.end(run)


def test_a_hard_stop_releases_what_runs_uncounted(
    small_client: Client, shop: Shop, small_settings: Settings, tmp_path: Path
) -> None:
    marks = [tmp_path / f"mark{number}" for number in range(10)]
    for number, mark in enumerate(marks):
        shop.put(f"r{number}", {"do": "sleep", "seconds": 60, "mark": str(mark)})
    run = shop.begin()
    # whichever was fetched first has a slot
    full = stopping(shop, "now", lambda: sum(mark.exists() for mark in marks) == SLOTS)
    reports = shop.convert(small_client, run, should_stop=full)
    assert SLOTS <= len(reports) < 10, "what had begun is let go, the rest never began"
    assert {report.outcome for report in reports.values()} == {"released"}
    assert {(state.due, state.attempts) for state in shop.states().values()} == {("pending", 0)}
    wait_until(lambda: scratch_is_empty(small_settings), 90)
    assert shop.reserved() == 0
    shop.end(run)


def test_two_runs_share_a_host_without_taking_more_than_it_has(
    small_client: Client, bench_engine: Engine, tmp_path: Path
) -> None:
    shops = [Shop.open(bench_engine, tmp_path / name) for name in ("one", "two")]
    outcomes: list[set[str]] = []
    for shop in shops:
        for number in range(4):
            shop.put(f"r{number}", {"do": "allocate", "bytes": 100 * MB, "seconds": 0.3})

    def convert(shop: Shop) -> None:
        run = shop.begin()
        reports = shop.convert(
            small_client, run, **{f"r{number}": {"permitted_bytes": 400 * MB} for number in range(4)}
        )
        outcomes.append({report.outcome for report in reports.values()})
        shop.end(run)

    threads = [threading.Thread(target=convert, args=(shop,)) for shop in shops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(400)
    assert outcomes == [{"done"}, {"done"}]
    assert (
        max(attempt.permitted_bytes for shop in shops for name in shop.steps for attempt in shop.attempts(name))
        == 400 * MB
    )


def test_a_short_run_starts_before_the_long_one_beside_it_has_ended(
    small_client: Client, bench_engine: Engine, tmp_path: Path
) -> None:
    """The last recordings of the long run end only once those of the short one have begun: without a share for it, both hang."""
    long, short = (Shop.open(bench_engine, tmp_path / name) for name in ("long", "short"))
    marks = {name: tmp_path / f"mark-{name}" for name in ("s1", "s2", "s3")}
    wanted, begun = tmp_path / "wanted", tmp_path / "begun"
    for number in range(SLOTS):
        long.put(f"l{number:02}", {"do": "wait", "for": str(wanted), "mark": str(begun)})
    for number in range(SLOTS, 10 * SLOTS):
        long.put(f"l{number:02}", {"do": "sleep", "seconds": 0.3})
    for number in range(10 * SLOTS, 11 * SLOTS):
        long.put(f"l{number:02}", *({"do": "wait", "for": str(mark)} for mark in marks.values()))
    for name, mark in marks.items():
        short.put(name, {"do": "mark", "mark": str(mark)})
    # in this order
    seconds = {name: {"expected_s": float(100 - at), "timeout_s": 150.0} for at, name in enumerate(long.steps)}
    outcomes: dict[str, set[str]] = {}

    def convert(name: str, shop: Shop, **orders: dict[str, Any]) -> None:
        run = shop.begin()
        outcomes[name] = {report.outcome for report in shop.convert(small_client, run, **orders).values()}
        shop.end(run)

    def short_wants() -> bool:
        with bench_engine.connect() as c:
            return int(c.scalar(text("SELECT count(DISTINCT run_id) FROM contenders")) or 0) > 1

    threads = [threading.Thread(target=convert, args=("long", long), kwargs=seconds)]
    threads[0].start()
    wait_until(begun.exists, 120)
    threads.append(threading.Thread(target=convert, args=("short", short)))
    threads[1].start()
    wait_until(short_wants, 120)
    wanted.touch()
    for thread in threads:
        thread.join(300)
    assert outcomes == {"long": {"done"}, "short": {"done"}}
