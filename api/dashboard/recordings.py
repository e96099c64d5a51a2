"""The page of a recording: how it stands and why, every attempt at it, what it is made from, and how to try it at home."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from api.dashboard import addresses
from api.dashboard.seen import acted, dataset_for
from api.dashboard.sessions import Reader
from api.dashboard.site import Site
from api.dashboard.stages import stage_bars
from api.errors import ApiError
from db.recording_facts import recording_facts
from db.recordings import why
from db.standings import clock
from db.store_verdicts import verdict_of
from infra.sizes import decimal_bytes
from tasks.reproducing import reproduction
from tasks.telling import disclosures, ending, losses, reasons, remade, standing, verified

if TYPE_CHECKING:
    from db.dataset_values import Dataset
    from db.recording_facts import RecordingFacts
    from db.recordings import AttemptRecord, RecordingHistory

__all__ = ["add_recordings"]

_ATTEMPTS: Final = 50
_INPUTS: Final = 200
_LOSSES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """One attempt as the page shows it."""

    record: AttemptRecord
    number: int
    ending: str
    bars: tuple[Any, ...]
    losses: tuple[str, ...]
    memory_bytes: int
    is_over: bool


def add_recordings(routes: APIRouter, site: Site) -> None:
    """The route of the page of a recording."""
    anybody = Depends(site.reader)

    @routes.get(addresses.HOME + "/datasets/{dataset_id}/recordings/{path:path}")
    def recording(request: Request, dataset_id: str, path: str, reader: Reader = anybody) -> Response:
        if "\x00" in path:
            raise ApiError(HTTPStatus.NOT_FOUND, "There is no such recording.")
        with site.service.reading() as c:
            dataset = dataset_for(c, site, reader, dataset_id)
            history = why(c, dataset=dataset, path=path, newest=_ATTEMPTS)
            if history is None:
                raise ApiError(HTTPStatus.NOT_FOUND, "There is no such recording.")
            facts = recording_facts(c, recording_id=history.state.id)
            verdict = verdict_of(c, recording_id=history.state.id)
            now, done = clock(c), acted(c, request, dataset)
        entry = _entry(facts)
        return site.page(
            request,
            "recording.html",
            reader=reader,
            title=history.state.path.rpartition("/")[2],
            as_of=now,
            trail=((dataset.dataset_id, addresses.dataset_page(dataset.dataset_id)),),
            dataset=dataset,
            state=history.state,
            stands=standing(history.state),
            reasons=(*reasons(history.state, size=decimal_bytes), *remade(history)),
            facts=facts,
            verdict=verdict,
            verified=None if verdict is None else verified(verdict),
            disclosed=tuple(disclosures(entry)),
            attempts=_attempts(history, facts),
            inputs=facts.inputs[:_INPUTS],
            provenance=_provenance(dataset, history, facts, entry, private=reader.is_signed_in),
            reproduce=_reproduction(dataset, history, facts) if reader.is_signed_in else None,
            done=done,
        )


def _entry(facts: RecordingFacts) -> dict[str, Any]:
    found = {} if facts.store is None else json.loads(facts.store.entry)
    return found if isinstance(found, dict) else {}


def _attempts(history: RecordingHistory, facts: RecordingFacts) -> tuple[_Attempt, ...]:
    first = facts.attempts - len(history.attempts) + 1
    shown = [
        _Attempt(
            record=one,
            number=number,
            ending=ending(one),
            bars=stage_bars(one.stage_seconds),
            losses=() if one.quantisation is None else tuple(losses(one.quantisation)[:_LOSSES]),
            memory_bytes=max(one.projected_bytes, one.permitted_bytes, one.measured_bytes or 0),
            is_over=one.measured_bytes is not None and one.measured_bytes > one.permitted_bytes,
        )
        for number, one in enumerate(history.attempts, start=first)
    ]
    return tuple(reversed(shown))


def _provenance(
    dataset: Dataset, history: RecordingHistory, facts: RecordingFacts, entry: dict[str, Any], *, private: bool
) -> str:
    """What the store was made from and with, as JSON to copy."""
    state, store = history.state, facts.store
    told: dict[str, Any] = {
        "dataset_id": dataset.dataset_id,
        "doi": dataset.facts.doi,
        "source_commit": None if dataset.published is None else dataset.published.source_commit,
        "path": state.path,
        "zarr": state.zarr,
        "format": facts.format,
        "source_fingerprint": state.source,
    }
    if private:
        told |= {"source": dataset.source, "target": dataset.target}
    if store is not None:
        told["store"] = {
            "source_fingerprint": store.source,
            "options": store.options,
            "engine": store.engine,
            "biosigio": store.biosigio,
            "digest": store.digest,
            "updated_utc": store.updated_utc.isoformat(),
            "made_by_run": store.made_by,
        }
        told["index_entry"] = entry
    told["inputs"] = dict(facts.inputs)
    return json.dumps(told, indent=2, ensure_ascii=False)


def _reproduction(dataset: Dataset, history: RecordingHistory, facts: RecordingFacts) -> str:
    return reproduction(
        source=dataset.source,
        annex=dataset.annex,
        dataset_id=dataset.dataset_id,
        path=history.state.path,
        inputs=[path for path, _content in facts.inputs] or [history.state.path],
    )
