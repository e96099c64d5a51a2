"""The page of a dataset: how far it is, what failed and why, its recordings, its history, and what can be done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Request
from starlette.responses import Response, StreamingResponse

from api.dashboard import addresses
from api.dashboard.live import Moment, Watch, look
from api.dashboard.seen import acted, dataset_for
from api.dashboard.sessions import Reader
from api.dashboard.site import Site, secure_headers
from api.dashboard.table import STATE_WORDS, neighbours, wanted_of, whole
from api.dashboard.table_csv import csv_lines
from contract.codes import FAILURE_SENTENCES, PENDING_SENTENCES, WHY_DUE_SENTENCES
from db import operators, outbox, verdicts
from db.census import failure_details, rounds
from db.recording_table import table_page
from db.runs import last_runs
from db.standings import outlook
from flows.survey import current_versions
from tasks.telling import policy_sentence

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from sqlalchemy import Connection

    from db.census import Census, FailureDetail
    from db.dataset_values import Dataset
    from db.operators import Action
    from db.outbox import Owed
    from db.runs import RunRecord
    from db.standings import Outlook
    from db.verdicts import FidelityVerdict

__all__ = ["add_datasets"]

_PAGE: Final = addresses.HOME + "/datasets/{dataset_id}"
_RUNS: Final = 10
_ACTIONS: Final = 10
_CONVERTS: Final = frozenset({"auto", "full", "retry-pending"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """What the page tells beside what moves and the table."""

    runs: Sequence[RunRecord]
    outlook: Outlook
    verdict: FidelityVerdict | None
    details: Mapping[str, Sequence[FailureDetail]]
    rounds: Sequence[object]
    actions: Sequence[Action]
    owed: Sequence[Owed]
    policy: str | None
    stale: tuple[str, ...]


def add_datasets(routes: APIRouter, site: Site) -> None:
    """The routes of the page of a dataset, of its table as CSV, and of what moves on it."""
    _add_page(routes, site)
    _add_events(routes, site, Watch(site.service))
    _add_csv(routes, site)


def _add_page(routes: APIRouter, site: Site) -> None:
    anybody = Depends(site.reader)

    @routes.get(_PAGE)
    def dataset(request: Request, dataset_id: str, reader: Reader = anybody) -> Response:
        wanted = wanted_of(request.query_params)
        with site.service.reading() as c:
            found = dataset_for(c, site, reader, dataset_id)
            page = table_page(c, dataset=found, wanted=wanted)
            shown = _shown(c, found)
            done = acted(c, request, found)
        moment = look(site.service, found)
        before, after = neighbours(page)
        return site.page(
            request,
            "dataset.html",
            reader=reader,
            title=found.dataset_id,
            as_of=moment.as_of,
            dataset=found,
            **_moving(moment),
            shown=shown,
            made=_made(shown.runs, moment),
            table=page,
            wanted=wanted,
            before=before,
            after=after,
            done=done,
            words=_WORDS,
        )


def _add_events(routes: APIRouter, site: Site, watch: Watch) -> None:
    anybody = Depends(site.reader)

    @routes.get(f"{_PAGE}/events")
    def events(
        request: Request,
        dataset_id: str,
        reader: Reader = anybody,
        last_event_id: Annotated[str | None, Header(max_length=100)] = None,
    ) -> Response:
        with site.service.reading() as c:
            found = dataset_for(c, site, reader, dataset_id)
        watch.check_room()

        def shown(moment: Moment) -> str:
            return site.markup(
                request,
                "dataset_live.html",
                as_of=moment.as_of,
                reader=reader,
                dataset=found,
                **_moving(moment),
            )

        stream: AsyncIterator[str] = watch.events(found, last_id=last_event_id, shown=shown)
        headers = {**secure_headers(), "X-Accel-Buffering": "no"}
        if request.method == "HEAD":
            return Response(headers=headers, media_type="text/event-stream")  # nobody would hear the rest
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


def _add_csv(routes: APIRouter, site: Site) -> None:
    anybody = Depends(site.reader)

    @routes.get(f"{_PAGE}/recordings.csv")
    def recordings_csv(request: Request, dataset_id: str, reader: Reader = anybody) -> Response:
        wanted = whole(wanted_of(request.query_params))
        with site.service.reading() as c:
            found = dataset_for(c, site, reader, dataset_id)
        headers = {
            **secure_headers(),
            "Content-Disposition": f'attachment; filename="{found.dataset_id}-recordings.csv"',
        }
        lines = csv_lines(site.service, found, wanted)
        return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)


_WORDS: Final = {
    "states": STATE_WORDS,
    "failures": FAILURE_SENTENCES,
    "pending": PENDING_SENTENCES,
    "due": WHY_DUE_SENTENCES,
}


def _shown(c: Connection, dataset: Dataset) -> _Shown:
    runs = last_runs(c, dataset=dataset, limit=_RUNS)
    waits = outlook(c, dataset=dataset)
    details: dict[str, list[FailureDetail]] = {}
    for one in failure_details(c, dataset=dataset):
        details.setdefault(one.code, []).append(one)
    now = current_versions()
    stale = tuple(
        name
        for name in ("options", "engine", "biosigio")
        if getattr(waits.policy, name) not in (None, getattr(now, name))
    )
    return _Shown(
        runs=runs,
        outlook=waits,
        verdict=verdicts.latest(c, dataset=dataset),
        details=details,
        rounds=rounds(c, dataset=dataset),
        actions=operators.last_actions(c, subject=dataset.dataset_id, limit=_ACTIONS),
        owed=outbox.owed(c, dataset_pk=dataset.pk, limit=5),
        policy=policy_sentence(waits.policy),
        stale=stale,
    )


def _made(runs: Sequence[RunRecord], moment: Moment) -> int | None:
    """Stores that the last conversion made, in place of those that it carried as they were; None where nobody noted it."""
    last = next((one for one in runs if one.run.mode in _CONVERTS), None)
    if last is None:
        return None
    if last.run.number == moment.progress.run_number:
        return moment.progress.made
    noted = last.counts.get("converted")
    return noted if isinstance(noted, int) else None


def _moving(moment: Moment) -> dict[str, Any]:
    """What ``dataset_live.html`` shows."""
    legend = _legend(moment.census)
    return {"moment": moment, "legend": legend, "bar": [one[:3] for one in legend]}


def _legend(census: Census) -> tuple[tuple[str, int, str, str | None], ...]:
    """The parts of the coverage bar, which add up to what was discovered: (class, count, words, state of the table)."""
    judged = census.judged
    verified, bad = judged.get("verified", 0), judged.get("failed", 0)
    return (
        ("verified", verified, "served and verified", "verified"),
        ("served", census.stores - verified - bad, "served, not verified", "served"),
        ("mismatched", bad, "served, and other than the source", "mismatched"),
        ("failed", census.failures, "failed", "failed"),
        ("converting", census.converting, "with workers", "converting"),
        ("pending", census.pending - census.converting, "pending", "pending"),
    )
