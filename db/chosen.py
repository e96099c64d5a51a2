"""The recordings that a run of a dataset would begin with, and a digest over how they stand."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from db.coverage import SERVED
from db.store_verdicts import STANDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

    from db.dataset_values import Dataset
    from db.requests import RequestMode

__all__ = ["chosen_recordings"]

_WAITS = "r.due IN ('pending', 'converting')"
_CHOSEN: Final[Mapping[RequestMode, str]] = {
    "auto": f"{_WAITS} AND COALESCE(r.next_attempt_at <= zarrmill_now(), true)",
    "retry-pending": _WAITS,
    "full": "r.discovered",
    # what a sweep would compare, but for those whose objects alone show that they changed
    "verify": f"""{SERVED} AND NOT EXISTS (
        SELECT FROM store_verdicts o JOIN stores s ON s.recording_pk = o.recording_pk
        WHERE o.recording_pk = r.pk AND o.dataset_pk = :dataset AND s.dataset_pk = :dataset AND {STANDS} AND o.status <> 'failed')""",
}


def chosen_recordings(c: Connection, *, dataset: Dataset, mode: RequestMode) -> tuple[list[int], str]:
    """What a request of this mode would concern as far as the state knows, and a digest over how it stands."""
    rows = c.execute(
        text(f"""
            SELECT r.pk, concat_ws('|', r.pk, r.due, r.reason, r.attempts, r.last_attempt_at, r.source, r.served_source) AS state
            FROM recordings r WHERE r.dataset_pk = :dataset AND r.discovered AND {_CHOSEN[mode]} ORDER BY r.pk
        """),
        {"dataset": dataset.pk},
    ).all()
    return [row.pk for row in rows], sha256("\n".join(row.state for row in rows).encode()).hexdigest()
