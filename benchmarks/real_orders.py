"""Three orders in which real workers are given the same recordings: the product's, first fit in order of arrival, and Dask's own.

All three convert by the product's stages, with claims in Postgres and the limits of each child. First fit has the product's ledger and another
policy on it; Dask's own order has neither: every recording is handed to the cluster at once with what it holds as resources, and the scheduler
and the workers' queues do the rest. Called by ``on_workers.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import CancelledError
from uuid import UUID

from distributed import Client, as_completed
from fan_out_bench import Shop

from db import recordings
from db.runs import Run
from flows.admission import Admission, Placement
from flows.fan_out import fan_out
from infra.worker_questions import identify
from tasks.convert import attempt
from tasks.convert.attempt import Assignment
from tasks.convert.order import AttemptReport, ConversionOrder
from tasks.convert.worker_room import stage_key

__all__ = ["ORDERS", "FirstFit", "convert_in_order"]

ORDERS = ("ours", "fifo", "dask")
_LEASE_S = 3600.0  # Dask's own order claims everything at once, and begins the last of it minutes later


class FirstFit(Admission):
    """In order of arrival, each on the first worker with room; later ones pass those that do not fit."""

    def place(self, now: float) -> list[Placement]:  # noqa: ARG002 - it has no clock
        """Charge and return what starts now."""
        placements = []
        for request in sorted(self.waiting(), key=lambda one: self._waiting[one.key]):
            worker = next((name for name in self.workers() if self.ledger(name).fits(request)), None)
            if worker is not None:
                placements.append(self._take(request, worker))
        return placements


def convert_in_order(
    order: str, client: Client, shop: Shop, run: Run, made: Sequence[ConversionOrder]
) -> tuple[list[AttemptReport], dict[UUID, str]]:
    """Convert in one of ``ORDERS``; every report, and where an attempt ran that Postgres does not name its worker of."""
    if order == "dask":
        return _all_at_once(client, shop, run, made)
    reports = fan_out(
        client,
        shop.engine,
        run,
        made,
        on_progress=lambda _event: None,
        should_stop=lambda: None,
        owner=shop.owner,
        owner_is_gone=lambda _owner: False,
        admission=FirstFit() if order == "fifo" else None,
    )
    return list(reports), {}


def _all_at_once(
    client: Client, shop: Shop, run: Run, made: Sequence[ConversionOrder]
) -> tuple[list[AttemptReport], dict[UUID, str]]:
    with shop.engine.begin() as c:
        for one in made:
            recordings.claim(
                c,
                run=run,
                recording_id=one.recording_id,
                attempt_id=one.attempt_id,
                worker="wherever Dask puts it",
                route=one.route.value,
                projected_bytes=one.projected_bytes,
                permitted_bytes=one.permitted_bytes,
                lease_s=_LEASE_S,
            )
    converted = {
        one.attempt_id: client.submit(
            attempt.convert,
            Assignment(order=one),
            key=stage_key("convert", one.attempt_id),
            resources={"MEMORY": one.permitted_bytes, "SLOT": 1},
            pure=False,
        )
        for one in made
    }
    ends = [
        client.submit(attempt.upload, future, key=stage_key("upload", attempt_id), pure=False)
        for attempt_id, future in converted.items()
    ]
    reports = []
    for future in as_completed(ends, loop=client.loop):
        try:
            reports.append(future.result())
        except CancelledError as error:
            raise SystemExit(f"a conversion was lost: {error}") from error
    names = {address: identity.name for address, identity in identify(client, _addresses(client), within_s=60).items()}
    held_by = client.who_has(list(converted.values()))
    where = {
        attempt_id: names[held_by[future.key][0]] for attempt_id, future in converted.items() if held_by[future.key]
    }
    return reports, where


def _addresses(client: Client) -> list[str]:
    return list(client.scheduler_info(n_workers=-1)["workers"])
