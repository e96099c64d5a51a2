"""Innocents that convert while somebody else goes wrong: their children run, Postgres says so, and a gate holds them there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distributed import Client
from fan_out_bench import MB, Shop, wait_until
from sqlalchemy import text

from tasks.convert.order import AttemptReport

AT_LEAST = 5


@dataclass
class Innocents:
    """Recordings of one dataset that wait in their children until ``open_gate``."""

    shop: Shop
    folder: Path
    names: list[str] = field(default_factory=list)
    reports: dict[str, AttemptReport] = field(default_factory=dict)
    trouble: list[BaseException] = field(default_factory=list)

    @property
    def gate(self) -> Path:
        return self.folder / f"gate-{self.shop.dataset.dataset_id}"

    def mark(self, name: str) -> Path:
        return self.folder / f"mark-{self.shop.dataset.dataset_id}-{name}"

    def put(self, *names: str) -> None:
        """Add recordings that wait at the gate."""
        for name in names:
            self.names.append(name)
            self.shop.put(name, {"do": "wait", "for": str(self.gate), "mark": str(self.mark(name))})

    def orders(self, **more: Any) -> dict[str, dict[str, Any]]:
        """What an order of each must say: enough time to wait."""
        return {name: {"timeout_s": 280.0, "permitted_bytes": 40 * MB} | more for name in self.names}

    def converting(self) -> int:
        """How many are converting in Postgres, with a child at the gate."""
        with self.shop.engine.connect() as c:
            paths = set(
                c.scalars(
                    text("SELECT path FROM recordings WHERE dataset_pk = :pk AND due = 'converting'"),
                    {"pk": self.shop.dataset.pk},
                )
            )
        return sum(self.shop.path(name) in paths and self.mark(name).exists() for name in self.names)

    def open_gate(self) -> None:
        self.gate.touch()

    def assert_unharmed(self) -> None:
        """Each has one published success, and nothing was counted against it."""
        states = self.shop.states()
        for name in self.names:
            state = states[self.shop.path(name)]
            assert (state.due, state.attempts) == ("none", 0), (name, state)
            assert state.served is not None, name
            assert self.shop.is_served(name), name
            attempts = self.shop.attempts(name)
            assert [attempt.outcome for attempt in attempts].count("done") == 1, (name, attempts)
            assert not any(attempt.counted for attempt in attempts), (name, attempts)


@contextmanager
def converting(innocents: Innocents, client: Client, **options: Any) -> Iterator[Callable[[], int]]:
    """While inside, at least five innocents are converting; afterwards they have all ended.

    Gives the function that counts them. The gate opens when the block ends.
    """
    shop = innocents.shop
    run = shop.begin()

    def convert() -> None:
        try:
            innocents.reports = shop.convert(client, run, **options, **innocents.orders())
        except BaseException as error:  # noqa: BLE001 - it is raised where the test waits for the thread
            innocents.trouble.append(error)

    thread = threading.Thread(target=convert)
    thread.start()
    try:
        wait_until(lambda: innocents.converting() >= AT_LEAST or not thread.is_alive(), 240)
        assert innocents.converting() >= AT_LEAST, innocents.trouble
        yield innocents.converting
    finally:
        innocents.open_gate()
        thread.join(280)
        if innocents.trouble:
            raise innocents.trouble[0]
    assert not thread.is_alive()
    shop.end(run)
