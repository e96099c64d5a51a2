"""The pages of runs: all of them, and one with what ran where, what it needed, what it lost and how it ended."""

from __future__ import annotations

import csv
import io
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi import Path as PathParameter
from starlette.responses import RedirectResponse, Response, StreamingResponse

from api.dashboard import addresses
from api.dashboard.asked import check_word
from api.dashboard.paging import Paging
from api.dashboard.run_figures import FigureShelf
from api.dashboard.sessions import Reader
from api.dashboard.site import Site
from api.errors import ApiError
from contract.layout import run_report_key
from contract.redact import redact
from db import policies, run_facts, run_reports
from db.coverage import coverage
from db.datasets import by_pk
from db.run_list import RunHead, find_head, find_numbered, head_before, runs_listed
from db.run_timeline import attempt_rows
from db.standings import clock
from flows.run_report import made_report
from infra.storage.opened import opener
from tasks.run_report import words
from tasks.run_report.story import coverage_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from api.dashboard.run_figures import Figures
    from db.counts import Coverage

__all__ = ["add_runs"]

_PART: Final = 50
_REPORT_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
_ONE: Final = f"{addresses.HOME}/datasets/{{dataset_id}}/runs/{{number}}"
Number = Annotated[int, PathParameter(ge=1, le=2**31)]


def add_runs(routes: APIRouter, site: Site) -> None:
    """The routes of the list of runs, of one run, of its numbers and of its report."""
    pages, anybody = _RunPages(site), Depends(site.reader)

    @routes.get(f"{addresses.HOME}/runs")
    def runs(
        request: Request,
        *,
        dataset: Annotated[str, Query(max_length=20)] = "",
        state: str = "",
        who: Annotated[str, Query(max_length=200)] = "",
        offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
        reader: Reader = anybody,
    ) -> Response:
        check_word("end", state, words.STATE_WORDS)
        filters = {"dataset": dataset.strip(), "state": state, "who": who.strip() if reader.is_signed_in else ""}
        return pages.every(request, reader, filters=filters, offset=offset)

    @routes.get(f"{addresses.HOME}/runs/{{run_id}}")
    def by_id(run_id: str, reader: Reader = anybody) -> Response:
        try:
            wanted = UUID(run_id)
        except ValueError:
            raise ApiError(HTTPStatus.NOT_FOUND, "There is no such run.") from None
        with site.service.reading() as c:
            head = pages.visible(find_head(c, run_id=wanted), reader)
        return RedirectResponse(addresses.run_page(head.dataset_id, head.number), status_code=HTTPStatus.SEE_OTHER)

    @routes.get(_ONE)
    def run(request: Request, dataset_id: str, number: Number, reader: Reader = anybody) -> Response:
        return pages.one(request, reader, dataset_id, number)

    @routes.get(f"{_ONE}/attempts.csv")
    def attempts(dataset_id: str, number: Number, reader: Reader = anybody) -> Response:
        return pages.attempts(reader, dataset_id, number)

    @routes.get(f"{_ONE}/report.html")
    def report(dataset_id: str, number: Number, reader: Reader = anybody) -> Response:
        return pages.report(reader, dataset_id, number)


class _RunPages:
    def __init__(self, site: Site) -> None:
        self.site = site
        self.service = site.service
        self.shelf = FigureShelf()

    def visible(self, head: RunHead | None, reader: Reader) -> RunHead:
        """The run, when it is one of this target that the reader may see; 404 for every other."""
        if head is None or head.target != self.service.target.url or not (head.is_public or reader.is_signed_in):
            raise HTTPException(HTTPStatus.NOT_FOUND, "There is no such run.")
        return head

    def head(self, c: Connection, reader: Reader, dataset_id: str, number: int) -> RunHead:
        return self.visible(
            find_numbered(c, target=self.service.target.url, dataset_id=dataset_id, number=number), reader
        )

    def every(self, request: Request, reader: Reader, *, filters: dict[str, str], offset: int) -> Response:
        with self.service.reading() as c:
            found = runs_listed(
                c,
                target=self.service.target.url,
                public_only=not reader.is_signed_in,
                dataset_id=filters["dataset"] or None,
                state=filters["state"] or None,
                who=filters["who"] or None,
                limit=_PART,
                offset=offset,
            )
            now = clock(c)
        paging = Paging(total=found.total, limit=_PART, offset=offset)
        shown = [(head, coverage_of(head)) for head in found.runs]
        return self.site.page(
            request,
            "runs.html",
            reader=reader,
            title="Runs",
            as_of=now,
            runs=shown,
            paging=paging,
            filters=filters,
            words=words.STATE_WORDS,
        )

    def one(self, request: Request, reader: Reader, dataset_id: str, number: int) -> Response:
        with self.service.reading() as c:
            head = self.head(c, reader, dataset_id, number)
            figures = self.shelf.of(c, head)
            values: dict[str, Any] = {
                "before": head_before(c, head),
                "numbers": self._numbers(c, head),
                "standings": run_facts.standings(c, dataset_pk=head.dataset_pk) if head.is_newest else (),
                "waiting": run_facts.waiting(c, dataset_pk=head.dataset_pk) if head.is_newest else (),
                "told": run_facts.told(c, run_id=head.id) if reader.is_signed_in else (),
                "left": run_reports.of_run(c, run_id=head.id),
                "outlook": self._policy(c, head),
            }
            now = clock(c)
        return self.site.page(
            request,
            "run.html",
            reader=reader,
            title=f"Run {head.number}",
            as_of=now,
            trail=(("Runs", f"{addresses.HOME}/runs"), (head.dataset_id, addresses.dataset_page(head.dataset_id))),
            head=head,
            figures=figures,
            words=words,
            redact=redact,
            options=words.asked_options(head),
            prefect=self._prefect(head) if reader.is_signed_in else None,
            charts=_charts(figures, head, reader),
            **values,
        )

    def _numbers(self, c: Connection, head: RunHead) -> Coverage | None:
        dataset = None if coverage_of(head) or not head.is_newest else by_pk(c, pk=head.dataset_pk)
        return coverage_of(head) if dataset is None else coverage(c, dataset=dataset)

    def _policy(self, c: Connection, head: RunHead) -> policies.Policy | None:
        dataset = by_pk(c, pk=head.dataset_pk) if head.is_newest else None
        return None if dataset is None else policies.find(c, dataset=dataset)

    def _prefect(self, head: RunHead) -> str | None:
        """Where Prefect shows the run, when it is a server that stays."""
        api = self.service.settings.prefect_api_url
        if api is None or head.flow_run_id is None:
            return None
        return f"{api.rstrip('/').removesuffix('/api')}/runs/flow-run/{head.flow_run_id}"

    def attempts(self, reader: Reader, dataset_id: str, number: int) -> Response:
        _signed_in(reader)
        with self.service.reading() as c:
            head = self.head(c, reader, dataset_id, number)

        def lines() -> Iterator[str]:
            # in one transaction, because rows come a thousand at a time
            with self.service.state.begin() as c:
                yield from _csv_lines(c, head.id)

        name = f"{head.dataset_id}-run-{head.number}-attempts.csv"
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
        return StreamingResponse(lines(), media_type="text/csv; charset=utf-8", headers=headers)

    def report(self, reader: Reader, dataset_id: str, number: int) -> Response:
        """The report as the run left it; made from Postgres where it left none, or has not ended."""
        _signed_in(reader)
        with self.service.reading() as c:
            head = self.head(c, reader, dataset_id, number)
            left = run_reports.of_run(c, run_id=head.id)
            page = self._left(head.id) if left is not None and left.size_bytes is not None else None
            page = page or made_report(c, run_id=head.id)
        headers = {"Content-Security-Policy": _REPORT_POLICY, "Cache-Control": "no-store"}
        return Response(page, media_type="text/html; charset=utf-8", headers=headers)

    def _left(self, run_id: UUID) -> bytes | None:
        opened = opener(self.service.target)(run_report_key(run_id))
        if opened is None:
            return None
        try:
            return opened.read(0, opened.size_bytes)
        finally:
            opened.close()


def _signed_in(reader: Reader) -> None:
    if not reader.is_signed_in:
        raise ApiError(HTTPStatus.UNAUTHORIZED, "Sign in to read this: it names workers and machines.")


def _charts(figures: Figures, head: RunHead, reader: Reader) -> dict[str, Any]:
    """What charts are drawn from. Workers are for who is signed in."""
    steps = [
        {"worker": one.worker, "at": one.at_s, "permitted": one.permitted_bytes, "measured": one.measured_bytes}
        for one in figures.steps
    ]
    return {
        "lanes": {"steps": steps if reader.is_signed_in else []},
        "pace": {
            "parts": [
                {"at": one.at_s, "width": one.width_s, "done": one.done, "other": one.other} for one in figures.rates
            ]
        },
        "memory": {
            "points": [
                {
                    "format": one.format,
                    "projected": one.projected_bytes,
                    "measured": one.measured_bytes,
                    "dataset": head.dataset_id,
                    "path": one.path,
                }
                for one in figures.points
            ]
        },
    }


_COLUMNS: Final = (
    "path", "worker", "format", "route", "outcome", "code", "reason", "started_at", "held_until", "ended_at", "projected_bytes",
    "permitted_bytes", "measured_bytes",
)  # fmt: skip


def _csv_lines(c: Connection, run_id: UUID) -> Iterator[str]:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(_COLUMNS)
    for at, row in enumerate(attempt_rows(c, run_id=run_id), start=1):
        values = (getattr(row, name) for name in _COLUMNS)
        writer.writerow(["" if value is None else _cell(value) for value in values])
        if at % 500 == 0:
            yield out.getvalue()
            out.seek(0)
            out.truncate()
    yield out.getvalue()


def _cell(value: Any) -> Any:
    """The value as text that no spreadsheet takes for a formula."""
    said = value.isoformat() if hasattr(value, "isoformat") else value
    return f"'{said}" if isinstance(said, str) and said.startswith(("=", "+", "-", "@", "\t", "\r")) else said
