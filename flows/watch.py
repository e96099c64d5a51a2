"""The watch over the service: alarms begin and end in the state, and each is told once when it begins and once when it is over."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from contract.errors import ZarrmillError
from contract.layout import CATALOG_KEY
from contract.redact import error_line, redact
from contract.times import utc_stamp
from db import alarms, datasets, tallies, watch
from infra.storage import open_target
from infra.tell import tell

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from db.alarms import Untold
    from infra.settings import Settings

__all__ = ["KINDS", "look_around", "tell_of_database", "tell_untold"]

log = logging.getLogger("zarrmill.flows.watch")

KINDS: Final = {
    "nothing_moves": "Work is outstanding and nothing has moved.",
    "dataset_stuck": "A run goes on and does not move.",
    "callbacks_undelivered": "Callbacks are not accepted.",
    "no_worker": "Work is outstanding and the Dask scheduler has no worker.",
    "scheduler_unreachable": "Work is outstanding and the Dask scheduler does not answer.",
    "storage_unreachable": "A target cannot be reached.",
    "database_unreachable": "Postgres does not answer.",
    "report_undelivered": "The weekly report reached nobody.",
    "engine_gate": "Many datasets were made with another converter and wait for an operator's word.",
    "source_unreadable": "A source cannot be looked at.",
    "index_foreign": "A target serves an index that is not known here.",
    "given_up": "Five runs of a dataset in a row published nothing.",
    "exhausted": "Five retry rounds of a dataset were in vain.",
}
"""Every kind of alarm with its sentence. ``docs/runbook.md`` says what to do about each."""


def look_around(settings: Settings, engine: Engine) -> int:
    """Begin and end alarms by what is seen now; how many are open."""
    unreachable = _unreachable_targets(settings, engine)
    with engine.connect() as c:
        now = watch.moving(c)
    outstanding = now.waiting + now.running > 0
    cluster = _cluster_trouble(settings) if outstanding else None
    with engine.begin() as c:
        oldest_h = now.oldest_h or 0.0
        still_h = oldest_h if now.still_h is None else min(oldest_h, now.still_h)
        told = f"{now.waiting} requests wait and {now.running} run; nothing has moved for {still_h:.1f} hours"
        _set(c, "nothing_moves", {"": told} if outstanding and still_h > settings.alarm_stuck_h else {})
        stuck = watch.stuck_datasets(c, hours=settings.alarm_stuck_h)
        _set(
            c,
            "dataset_stuck",
            {
                f"{one.dataset_id} at {one.target}": f"run {one.run_number} has not moved for {one.still_h:.1f} hours ({one.stage})"
                for one in stuck
            },
        )
        count, since = watch.undelivered(c, hours=settings.alarm_callback_h)
        waits = f"{count} callbacks are not delivered, the oldest since {utc_stamp(since)}" if since else ""
        _set(c, "callbacks_undelivered", {"": waits} if count else {})
        for kind in ("no_worker", "scheduler_unreachable"):
            _set(c, kind, {"": cluster[1]} if cluster is not None and cluster[0] == kind else {})
        _set(c, "storage_unreachable", unreachable)
        tallies.mark(c, tallies.WATCHED)
        return len(alarms.open_alarms(c))


def _set(c: Connection, kind: str, subjects: dict[str, str]) -> None:
    short = {subject[:250]: detail for subject, detail in subjects.items()}
    alarms.end_all_but(c, kind=kind, subjects=list(short))
    for subject, detail in short.items():
        alarms.begin(c, kind=kind, subject=subject, detail=detail)


def _unreachable_targets(settings: Settings, engine: Engine) -> dict[str, str]:
    with engine.connect() as c:
        targets = sorted({one.target for one in datasets.list_datasets(c) if one.active})
    found = {}
    for url in targets:
        try:
            open_target(url, settings).etag(CATALOG_KEY)
        except (OSError, ZarrmillError) as error:
            found[url] = error.sentence if isinstance(error, ZarrmillError) else error_line(error)
    return found


def _cluster_trouble(settings: Settings) -> tuple[str, str] | None:
    """What is wrong with the Dask cluster of the settings: a kind of alarm and a sentence."""
    from infra.standing_health import dask_workers

    if settings.dask_address is None:
        return None
    workers = dask_workers(settings, settings.dask_address)
    if isinstance(workers, str):
        return "scheduler_unreachable", f"{settings.dask_address}: {workers}"
    return None if workers else ("no_worker", f"the scheduler {settings.dask_address} has no worker")


def tell_untold(settings: Settings, engine: Engine) -> int:
    """Tell what began and what is over since the last time; how much was told. What reaches nobody is tried again."""
    with engine.connect() as c:
        waiting = alarms.untold(c)
    told = 0
    for one in waiting:
        subject, text, document = _words(one)
        log.warning("%s: %s", subject, text)
        if not tell(settings, subject=subject, text=text, document=document).reached:
            continue
        with engine.begin() as c:
            told += alarms.told(c, pk=one.alarm.pk, which=one.which)
    return told


def tell_of_database(settings: Settings, *, over: bool) -> None:
    """Tell that Postgres is away, or back: the one alarm that cannot be kept there."""
    kind = "database_unreachable"
    subject = f"zarrmill: {'over: ' if over else ''}{KINDS[kind]}"
    state = "ended" if over else "began"
    text = (
        f"Nothing is begun until it is back. docs/runbook.md says what to do about {kind}."
        if not over
        else "It answers again."
    )
    log.warning("%s", subject)
    tell(settings, subject=subject, text=text, document={"event": "alarm", "state": state, "kind": kind, "subject": ""})


def _public(text: str) -> str:
    return redact(text, 1000) or ""


def _words(one: Untold) -> tuple[str, str, dict[str, object]]:
    alarm = one.alarm
    sentence = KINDS.get(alarm.kind, alarm.kind)
    about = f" ({alarm.subject})" if alarm.subject else ""
    over = one.which == "ended"
    subject = _public(f"zarrmill: {'over: ' if over else ''}{sentence}{about}")
    since = f"Since {utc_stamp(alarm.began_at)}" + (
        f", over since {utc_stamp(alarm.ended_at)}" if alarm.ended_at else ""
    )
    text = f"{_public(alarm.detail or sentence)}\n{since}. docs/runbook.md says what to do about {alarm.kind}."
    return (
        subject,
        text,
        {
            "event": "alarm",
            "state": one.which,
            "kind": alarm.kind,
            "subject": _public(alarm.subject),
            "detail": _public(alarm.detail or ""),
            "began_utc": utc_stamp(alarm.began_at),
            "ended_utc": None if alarm.ended_at is None else utc_stamp(alarm.ended_at),
        },
    )
