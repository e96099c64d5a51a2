"""``python -m flows.run_request NUMBER``: one request for a conversion, carried out by a process of its own.

Killed at any moment, it leaves the request to the next one. It ends with the exit codes of ``zarrmill convert``.
"""

from __future__ import annotations

import argparse
import logging
import sys
from typing import TYPE_CHECKING

from contract.errors import Busy, LostLease, ZarrmillError
from contract.redact import error_line
from db import datasets, flow_runs, requests, runs
from flows.catalogs import publish_catalogs
from flows.database_gone import ending_without_database
from flows.preview import opened_database
from flows.reconvert import Recorded, reconvert
from flows.refused import tell_refused
from flows.request import Note, Published, RecordingEnded, StageChanged, Started, StopSignal, exit_code
from flows.stop import listening
from flows.trigger import refuse_request, run_request
from infra.children import being_child
from infra.home import Home
from infra.prefect_server import answers
from infra.settings import load_settings
from infra.telemetry import set_up_logging
from tasks.callback import deliver_due

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from db.datasets import Dataset
    from db.requests import Request
    from flows.request import ProgressEvent
    from infra.settings import Settings

__all__ = ["child_name", "main"]

log = logging.getLogger("zarrmill.flows.run_request")

_PREFECT_S = 5.0


def child_name(request: Request) -> str:
    """The name under which the runner knows the process: one a dataset, whatever is asked of it."""
    return f"dataset-{request.dataset_id}-{request.dataset_pk}"


def main(arguments: list[str] | None = None) -> int:
    """Carry the request out; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m flows.run_request")
    parser.add_argument("request", type=int)
    number = parser.parse_args(arguments).request
    settings = load_settings()
    import prefect.main  # noqa: F401 - it puts handlers of its own in the place of those it finds

    set_up_logging(verbose=True, json=False, secrets=settings.secret_values(), alone=True)
    stop = StopSignal()
    with listening(stop), opened_database(settings) as (engine, _url), ending_without_database(engine):
        with engine.connect() as c:
            request = requests.find(c, pk=number)
            dataset = None if request is None else datasets.by_pk(c, pk=request.dataset_pk)
        if request is None or dataset is None or request.state != "waiting":
            log.info("request %d waits no longer", number)
            return 0
        with being_child(Home(settings.home), child_name(request)):
            return _carry_out(settings, engine, request, dataset, stop)


def _carry_out(settings: Settings, engine: Engine, request: Request, dataset: Dataset, stop: StopSignal) -> int:
    log.info("request %d: %s, %s, asked by %s", request.pk, request.dataset_id, request.mode, request.asked_by)
    with engine.connect() as c:
        before = _last_run(c, dataset)
        flow_run_id = flow_runs.of_request(c, request_pk=request.pk)
    url = settings.prefect_api_url
    away = None if url is None else answers(url, timeout_s=_PREFECT_S)
    if away is not None:
        log.warning("Prefect does not answer (%s); the run is not recorded there", away)
    recorded = Recorded(api_url=url if away is None else None, flow_run_id=flow_run_id)
    try:
        summary = reconvert(settings, run_request(dataset, request), _tell, stop, recorded=recorded)
    except (Busy, LostLease) as error:
        log.info("%s; the request waits", error.sentence)
        return error.exit_code
    except ZarrmillError as error:
        log.error("%s %s", error.sentence, error.detail or "")  # noqa: TRY400 - the sentence and detail say it all
        _ended_badly(settings, engine, request, dataset, error, since=before)
        return error.exit_code
    except Exception as error:  # the boundary of this process: whoever asked is told
        log.exception("unexpected")
        _ended_badly(settings, engine, request, dataset, error, since=before)
        return 1
    log.info(
        "%d discovered = %d stores + %d failures + %d pending",
        summary.discovered,
        summary.stores,
        summary.failures,
        summary.pending,
    )
    return exit_code(summary)


def _last_run(c: Connection, dataset: Dataset) -> int:
    last = runs.last_runs(c, dataset=dataset, limit=1)
    return last[0].run.number if last else 0


def _ended_badly(
    settings: Settings, engine: Engine, request: Request, dataset: Dataset, error: Exception, *, since: int
) -> None:
    """End a request that could not be begun, and tell that it failed.

    ``since`` is the number of the last run before this process: one that came after it has told its end itself.
    """
    sentence = error.sentence if isinstance(error, ZarrmillError) else error_line(error)
    with engine.connect() as c:
        begun = _last_run(c, dataset) > since
    if not begun:
        refuse_request(engine, request, error=sentence)
        tell_refused(engine, dataset, request.mode, error)
    # a run that published has done both itself
    deliver_due(engine, settings)
    try:
        publish_catalogs(settings, engine, target=dataset.target)
    except ZarrmillError as trouble:
        log.warning("%s", trouble.sentence)


def _tell(event: ProgressEvent) -> None:
    match event:
        case Started():
            log.info("run %d: %d of %d recordings to convert", event.run_number, event.to_convert, event.discovered)
        case StageChanged():
            log.info("%s", event.stage)
        case RecordingEnded():
            log.info("%s: %s", event.report.path, event.report.outcome)
        case Published():
            log.info("published (%s)", event.kind)
        case Note():
            log.info("%s", event.sentence)
        case _:
            pass


if __name__ == "__main__":
    sys.exit(main())
