"""Which of Prefect's flow runs asked for a request, so that it is carried out as that flow run, or ended with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["Unclosed", "close", "note", "of_request", "unclosed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unclosed:
    """A flow run whose request has ended: how it went, and the sentence for whoever looks at the flow run."""

    flow_run_id: UUID
    went_well: bool
    told: str


def note(c: Connection, *, flow_run_id: UUID, request_pk: int) -> None:
    """Note that this flow run stands for the request. Noted before is fine."""
    c.execute(
        text("""
            INSERT INTO flow_runs (flow_run_id, request_pk) VALUES (CAST(:flow_run AS uuid), :request) ON CONFLICT DO NOTHING
        """),
        {"flow_run": flow_run_id, "request": request_pk},
    )


def of_request(c: Connection, *, request_pk: int) -> UUID | None:
    """The flow run that stands for the request; None when it was asked for otherwise."""
    found = c.scalar(
        text("SELECT flow_run_id FROM flow_runs WHERE request_pk = :request ORDER BY noted_at DESC LIMIT 1"),
        {"request": request_pk},
    )
    return None if found is None else UUID(str(found))


def unclosed(c: Connection, *, limit: int = 100) -> list[Unclosed]:
    """Flow runs that may still stand as waiting or running in Prefect although their request has ended."""
    rows = c.execute(
        text("""
            SELECT f.flow_run_id, q.state = 'done' AS went_well,
                   CASE WHEN q.state = 'done' AND q.run_id IS NULL THEN 'There was nothing to do.'
                        WHEN q.state = 'done' THEN 'It is done.' ELSE COALESCE(q.error, 'It failed.') END AS told
            FROM flow_runs f JOIN requests q ON q.pk = f.request_pk
            WHERE f.closed_at IS NULL AND q.state NOT IN ('waiting', 'running') ORDER BY f.noted_at LIMIT :limit
        """),
        {"limit": limit},
    )
    return [Unclosed(**row._mapping) for row in rows]


def close(c: Connection, *, flow_run_id: UUID) -> None:
    """Note that Prefect knows the end of the flow run. Noted before is fine."""
    c.execute(
        text("""
            UPDATE flow_runs SET closed_at = zarrmill_now() WHERE flow_run_id = CAST(:flow_run AS uuid) AND closed_at IS NULL
        """),
        {"flow_run": flow_run_id},
    )
