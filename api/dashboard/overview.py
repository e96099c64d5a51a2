"""The overview: is anything stuck, how far along, what to look at, and every dataset, worst covered first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from api.dashboard.addresses import HOME, dataset_page
from api.dashboard.advice import ADVICE
from api.dashboard.asked import check_word
from api.dashboard.estimate import TimeLeft, either, time_left
from api.dashboard.paging import Paging
from api.dashboard.sessions import Reader
from api.dashboard.showing import counted
from api.dashboard.site import Site
from contract.layout import DATASET_ID_PATTERN
from db import tallies
from db.alarms import open_alarms
from db.overview import RANKS, STANDINGS, archive_standing, pace, ranked
from db.standings import clock
from flows.watch import KINDS

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from db.overview import ArchiveStanding, Pace

__all__ = ["Attention", "Health", "add_overview", "health_of"]

_WATCHED_WITHIN: Final = timedelta(minutes=20)
"""The watch looks every five minutes."""
_ROWS: Final = 50
_SEARCH = Query(max_length=200)
_OFFSET = Query(ge=0, le=1 << 31)
STANDING_WORDS: Final = {
    "complete": "fully converted",
    "partial": "partly converted",
    "failed": "failed",
    "processing": "processing",
    "never": "never converted",
    "verified": "verified",
    "unlike": "unlike their source",
}
RANK_WORDS: Final = {
    "worst": "worst covered first",
    "missing": "most missing first",
    "failed": "most failures first",
    "largest": "largest first",
    "newest": "newest first",
    "oldest": "longest unconverted first",
    "id": "by id",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Something to look at. ``about`` and ``detail`` are told to those who signed in alone."""

    kind: str
    sentence: str
    todo: str
    since: datetime | None = None
    about: str = ""
    detail: str | None = None
    href: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """One word for everything: healthy, alarm or unknown; and why."""

    word: str
    sentence: str
    attention: tuple[Attention, ...]


def add_overview(routes: APIRouter, site: Site) -> None:
    """The route of the overview."""
    anybody = Depends(site.reader)

    @routes.get(HOME)
    def overview(
        request: Request,
        *,
        search: Annotated[str, _SEARCH] = "",
        standing: str = "",
        sort: str = "worst",
        offset: Annotated[int, _OFFSET] = 0,
        reader: Reader = anybody,
    ) -> Response:
        target, everything = site.service.target.url, reader.is_signed_in
        words = search.replace("\x00", "").strip()
        order = _order(standing, sort)
        with site.service.reading() as c:
            now = clock(c)
            found = archive_standing(c, target=target, private_too=everything)
            part = ranked(
                c,
                target=target,
                private_too=everything,
                search=words,
                standing=standing or None,
                sort=order,
                limit=_ROWS,
                offset=offset,
            )
            recent = pace(c, target=target, private_too=everything)
            health = health_of(c, found, now=now, reader=reader)
        return site.page(
            request,
            "overview.html",
            reader=reader,
            title="Overview",
            as_of=now,
            found=found,
            health=health,
            rate=_per_hour(recent),
            left=_left(found, recent),
            ranked=part,
            paging=Paging(total=part.total, limit=_ROWS, offset=offset),
            search=words,
            standing=standing,
            sort=order,
            standing_words=STANDING_WORDS,
            rank_words=RANK_WORDS,
        )


def _order(standing: str, sort: str) -> str:
    """The order that is asked for; ApiError when it, or the standing, is none."""
    check_word("standing", standing, STANDINGS)
    check_word("order", sort, RANKS)
    return sort or "worst"


def _left(found: ArchiveStanding, recent: Pace) -> TimeLeft | None:
    """When what is due will be settled; None while nothing runs, or when there is no telling."""
    if found.due is None or found.due_bytes is None or (found.due > 0 and found.running == 0):
        return None
    return either(
        time_left(found.due_bytes, recent.size_bytes, part_s=recent.part_s),
        time_left(found.due, recent.recordings, part_s=recent.part_s),
    )


def _per_hour(recent: Pace) -> tuple[int, int] | None:
    """Recordings and bytes settled in the last hour; None where nothing was."""
    settled = sum(recent.recordings)
    return (settled, sum(recent.size_bytes)) if settled else None


def health_of(c: Connection, found: ArchiveStanding, *, now: datetime, reader: Reader) -> Health:
    """What is wrong, by the alarms that are open and by what stands in the counts; unknown when nobody has looked of late."""
    watched = tallies.marked_at(c, tallies.WATCHED)
    alarms = open_alarms(c)
    attention = [
        Attention(
            kind=one.kind,
            sentence=KINDS.get(one.kind, one.kind),
            todo=ADVICE.get(one.kind, "docs/runbook.md says what to do."),
            since=one.began_at,
            about=one.subject if reader.is_signed_in else "",
            detail=one.detail if reader.is_signed_in else None,
            href=_page_of(one.subject) if reader.is_signed_in else None,
        )
        for one in alarms
    ]
    attention += _seen(found)
    if alarms:
        said = counted(len(alarms), "alarm is open", "alarms are open")
        return Health(word="alarm", sentence=f"{said}.", attention=tuple(attention))
    if watched is None or now - watched > _WATCHED_WITHIN:
        when = "Nobody has looked for alarms yet" if watched is None else "Nobody has looked for alarms of late"
        sentence = f"{when}: the service (zarrmill up) does every five minutes. No alarm is open from before."
        return Health(word="unknown", sentence=sentence, attention=tuple(attention))
    return Health(word="healthy", sentence="No alarm is open.", attention=tuple(attention))


def _page_of(subject: str) -> str | None:
    dataset_id = subject[:8]
    return dataset_page(dataset_id) if re.fullmatch(DATASET_ID_PATTERN, dataset_id) else None


def _seen(found: ArchiveStanding) -> list[Attention]:
    """What the counts show and no alarm tells of."""
    seen = []
    if found.everything_paused:
        seen.append(
            Attention(kind="paused", sentence="Everything is paused.", todo="zarrmill resume --execute ends it.")
        )
    if found.unlike:
        seen.append(
            Attention(
                kind="unlike",
                sentence=f"{counted(found.unlike, 'dataset is', 'datasets are')} unlike the source, as the last verification found.",
                todo="Their pages show which stores, and what differs.",
                href=f"{HOME}?standing=unlike",
            )
        )
    if found.failed_datasets:
        seen.append(
            Attention(
                kind="failed",
                sentence=f"{counted(found.failed_datasets, 'dataset serves', 'datasets serve')} nothing because the last run failed.",
                todo="Their pages name the error.",
                href=f"{HOME}?standing=failed",
            )
        )
    return seen
