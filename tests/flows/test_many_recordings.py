"""What a run costs for each recording does not grow with their number: counted in statements and transactions, never timed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distributed import Client
from fan_out_bench import Shop
from sqlalchemy import Engine, event, text

from db import leases
from flows.fan_out import fan_out
from infra.database import engine as make_engine

FEW, MANY = 8, 32
IN_THE_FLOW = 12.0
"""Statements of the flow for one recording, at most: its claim, its share of the host and that share's return, and the looks
at the fleet every two seconds, of which a slow machine makes more."""


TRANSITIONS = 13.0
"""Steps of the Dask scheduler for one recording whose files are near, at most: two tasks of five or six each."""


def transitions_so_far(client: Client) -> int:
    """How many steps the scheduler has taken since it was started."""

    def counter(dask_scheduler: Any) -> int:
        return int(dask_scheduler.transition_counter)

    return int(client.run_on_scheduler(counter))


def statements_for(client: Client, engine: Engine, keeper: Engine, folder: Path, count: int) -> list[str]:
    """Every statement of the flow while it converts ``count`` recordings."""
    shop = Shop.open(engine, folder)
    for number in range(count):
        shop.put(f"{number:03}")
    run = shop.begin()
    ids = {path: state.id for path, state in shop.states().items()}
    orders = [shop.order(run, name, recording_id=ids[shop.path(name)]) for name in shop.steps]
    said: list[str] = []

    def keep_the_dataset() -> None:
        """Renew as a command's own thread does, by an engine whose statements are not counted."""
        with keeper.begin() as c:
            leases.renew(c, run=run)

    def listen(_c: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        said.append(statement)

    event.listen(engine, "before_cursor_execute", listen)
    try:
        reports = list(
            fan_out(
                client, engine, run, orders, on_progress=lambda _event: None, should_stop=keep_the_dataset,
                owner=shop.owner, owner_is_gone=lambda _owner: False,
            )
        )  # fmt: skip
    finally:
        event.remove(engine, "before_cursor_execute", listen)
    assert [report.outcome for report in reports] == ["done"] * count
    with engine.begin() as c:
        ended = c.scalar(
            text("SELECT count(*) FROM attempts WHERE run_id = :run AND outcome = 'done'"), {"run": run.id}
        )
    assert ended == count, "one attempt a recording"
    shop.end(run)
    return said


def test_four_times_the_recordings_cost_four_times_the_statements(
    small_client: Client, bench_engine: Engine, bench_database: str, tmp_path: Path
) -> None:
    keeper = make_engine(bench_database)
    before = transitions_so_far(small_client)
    try:
        few = len(statements_for(small_client, bench_engine, keeper, tmp_path / "few", FEW)) / FEW
        many = len(statements_for(small_client, bench_engine, keeper, tmp_path / "many", MANY)) / MANY
    finally:
        keeper.dispose()
    steps = (transitions_so_far(small_client) - before) / (FEW + MANY)
    assert steps <= TRANSITIONS, f"{steps:.1f} steps of the scheduler a recording"
    assert many <= 1.25 * few + 1, f"{few:.1f} statements a recording of {FEW}, {many:.1f} of {MANY}"
    assert many <= IN_THE_FLOW
