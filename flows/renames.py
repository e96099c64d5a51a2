"""Before anything is converted: stores of recordings that were only renamed are copied within the target."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from uuid import uuid4

from contract.errors import LostLease, ZarrmillError
from contract.layout import store_url
from contract.redact import error_line
from contract.times import utc_stamp
from db import recordings, store_objects, stores
from db.recordings import Measured
from flows.orders import provenance_of
from tasks.convert.leases import LEASE_S
from tasks.publish.copies import Renaming, copy_renamed

if TYPE_CHECKING:
    from uuid import UUID

    from db.store_objects import CopiedStore
    from flows.session import Session
    from tasks.plan.planned import PlannedRecording

__all__ = ["copy_renamed_stores"]

log = logging.getLogger("zarrmill.flows.renames")

_WORKER = "flow"
_ROUTE = "copy"


def copy_renamed_stores(session: Session) -> list[str]:
    """Copy what the plan says can be copied; paths of the new stores. What could not be copied stays due.

    Raises
    ------
    LostLease
        Another run has taken the dataset over.
    """
    planned = [one for one in session.plan.recordings if one.copy_of is not None]
    if not planned:
        return []
    with session.engine.connect() as c:
        origins = store_objects.copied(
            c, recording_ids=[one.copy_of.recording_id for one in planned if one.copy_of is not None]
        )
        due = {state.path: state.id for state in recordings.due(c, dataset=session.dataset)}
    done: list[str] = []
    for one in planned:
        assert one.copy_of is not None
        origin, recording_id = origins.get(one.copy_of.recording_id), due.get(one.recording.path)
        if session.stop.state != "go" or origin is None or recording_id is None:
            continue
        if _copied(session, one, origin, recording_id):
            done.append(one.recording.zarr)
    return done


def _copied(session: Session, one: PlannedRecording, origin: CopiedStore, recording_id: int) -> bool:
    attempt, number = uuid4(), session.run.number
    target, dataset_id = session.survey.target, session.dataset.dataset_id
    base = target.addresses(dataset_id).contract_base
    renaming = Renaming(
        recording=one.recording,
        fingerprint=one.fingerprint,
        provenance=provenance_of(session.survey, session.dataset, store_url(base, one.recording.zarr)),
        updated_utc=utc_stamp(session.run.started_at),
        origin=origin,
    )
    _begin(session, attempt, recording_id)
    try:
        row = copy_renamed(
            target, dataset_id, renaming, publish_id=str(attempt), may_write=lambda: _may_write(session, attempt)
        )
    except LostLease:
        raise
    except (OSError, ZarrmillError, ValueError) as error:
        log.warning("the store of %s was not copied: %s", origin.zarr, error_line(error))
        row = None
    with session.engine.begin() as c:
        if row is None:
            recordings.release(
                c, attempt_id=attempt, run_number=number, why="its store could not be copied; it is converted"
            )
            return False
        note = f"copied within the target from {origin.zarr}: the recording was renamed, its content is the same"
        recordings.done(c, attempt_id=attempt, run_number=number, store=row, report=Measured(notes=(note,)))
    return True


def _begin(session: Session, attempt: UUID, recording_id: int) -> None:
    """Claim the recording and note the intent, and clear its new address of what an interrupted copy left there."""
    with session.engine.begin() as c:
        recordings.claim(
            c,
            run=session.run,
            recording_id=recording_id,
            attempt_id=attempt,
            worker=_WORKER,
            route=_ROUTE,
            projected_bytes=1,
            permitted_bytes=1,
            lease_s=LEASE_S,
        )
        stores.open_intent(c, attempt_id=attempt, run_number=session.run.number)


def _may_write(session: Session, attempt: UUID) -> None:
    session.check_lease()
    with session.engine.begin() as c:
        if attempt not in recordings.renew_attempts(c, attempt_ids=[attempt], lease_s=LEASE_S):
            raise LostLease("the attempt was superseded", detail=str(attempt))
