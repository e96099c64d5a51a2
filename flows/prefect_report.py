"""What Prefect shows of a run beside its state: a page with its numbers, and where its report is."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from uuid import UUID

from prefect.artifacts import create_markdown_artifact

from contract.codes import FAILURE_SENTENCES, PENDING_SENTENCES
from contract.errors import ZarrmillError
from contract.layout import run_report_key
from contract.redact import error_line, redact
from db import runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flows.request import RunSummary
    from flows.session import Session

__all__ = ["leave_artifact", "note_flow_run"]

log = logging.getLogger("zarrmill.flows.prefect")


def note_flow_run(session: Session, flow_run_id: str | None) -> None:
    """Note which flow run records this run, so that other pages can lead to it."""
    if flow_run_id is None:
        return
    with session.engine.begin() as c:
        runs.note_flow_run(c, run=session.run, flow_run_id=UUID(flow_run_id))


def leave_artifact(session: Session, summary: RunSummary | None, error: BaseException | None) -> None:
    """Leave a markdown artifact with the flow run; inside its body. Trouble is only logged."""
    try:
        create_markdown_artifact(
            key=f"zarrmill-{session.dataset.dataset_id}",
            markdown="\n".join(_lines(session, summary, error)),
            description=f"Run {session.run.number} of {session.dataset.dataset_id}",
        )
    except Exception as trouble:  # noqa: BLE001 - Prefect's record is advice: no trouble with it may stop a run
        log.warning("Prefect took no page about the run: %s", type(trouble).__name__)


def _lines(session: Session, summary: RunSummary | None, error: BaseException | None) -> Iterator[str]:
    """No name of a recording is among them: whatever a dataset calls its files, it is not read as markdown."""
    dataset_id, number = session.dataset.dataset_id, session.run.number
    yield f"# {dataset_id}, run {number}"
    if summary is not None:
        yield f"\n**{summary.discovered:,} discovered = {summary.stores:,} stores + {summary.failures:,} failures + {summary.pending:,} pending**\n"
        yield f"{summary.converted:,} converted in {summary.seconds:,.0f} s" + (
            ", then stopped." if summary.stopped else "."
        )
        yield from _table(summary)
    else:
        sentence = error.sentence if isinstance(error, ZarrmillError) else error and error_line(error)
        said = (redact(str(sentence or "it ended without a word")) or "").replace("`", "'")
        yield f"\nIt published nothing: `{said}`"
    yield f"\nIts report is `{run_report_key(session.run.id)}` at the target; `zarrmill report {dataset_id} --run {number}` makes it again."


def _table(summary: RunSummary) -> Iterator[str]:
    rows = [(code.value, len(paths), FAILURE_SENTENCES[code]) for code, paths in summary.failed_by_code.items()]
    rows += [
        (reason.value, len(paths), PENDING_SENTENCES[reason]) for reason, paths in summary.pending_by_reason.items()
    ]
    if rows:
        yield "\n| code or reason | recordings | what it means |\n| --- | ---: | --- |"
        yield from (f"| `{word}` | {count:,} | {sentence} |" for word, count, sentence in rows)
