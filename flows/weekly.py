"""The weekly report: how the archive stands, told whether or not anything is wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from contract.errors import ZarrmillError
from contract.redact import redact
from contract.times import utc_stamp
from db import alarms, watch
from infra.tell import tell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Engine

    from infra.settings import Settings

__all__ = ["make_report", "report", "report_text"]


def make_report(engine: Engine) -> dict[str, Any]:
    """The report as a document."""
    with engine.connect() as c:
        counts = watch.week(c)
        now = watch.moving(c)
        standing = alarms.open_alarms(c)
    return {
        "event": "weekly_report",
        "generated_utc": utc_stamp(datetime.now(UTC)),
        "verdict": "alarm" if standing else "healthy",
        **counts,
        "oldest_request_h": None if now.oldest_h is None else round(now.oldest_h, 1),
        "still_h": None if now.still_h is None else round(now.still_h, 1),
        "alarms": [
            {
                "kind": one.kind,
                "subject": redact(one.subject),
                "detail": redact(one.detail or ""),
                "began_utc": utc_stamp(one.began_at),
            }
            for one in standing
        ],
    }


def report_text(document: Mapping[str, Any]) -> str:
    """The same for people."""
    lines = [f"{document['generated_utc']}: {document['verdict']}", ""]
    for subject in ("datasets", "recordings", "last_week", "requests", "callbacks"):
        told = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in document[subject].items())
        lines.append(f"{subject.replace('_', ' ')}: {told}")
    if document["oldest_request_h"] is not None:
        lines.append(f"the oldest request waits for {document['oldest_request_h']} hours")
    lines += ["", "alarms:" if document["alarms"] else "no alarm is open"]
    lines += [
        f"- {one['kind']} {one['subject']}: {one['detail']} (since {one['began_utc']})" for one in document["alarms"]
    ]
    return "\n".join(lines)


def report(settings: Settings, engine: Engine) -> str:
    """Tell the report to whoever is told of alarms; what was done, in a sentence.

    Raises
    ------
    ZarrmillError
        Somebody is to be told and nobody was reached; an alarm says so too.
    """
    document = make_report(engine)
    text = report_text(document)
    told = tell(settings, subject=f"zarrmill: weekly report, {document['verdict']}", text=text, document=document)
    with engine.begin() as c:
        if told.reached:
            alarms.end(c, kind="report_undelivered")
        else:
            alarms.begin(c, kind="report_undelivered", detail="no address and no mail server took it; the log says why")
    if not told.reached:
        raise ZarrmillError("the weekly report reached nobody")
    return (
        f"told to {told.accepted} of {told.ways}: {document['verdict']}"
        if told.ways
        else f"nobody is to be told; {text}"
    )
