"""Plots over everything: memory, seconds, failures, coverage; each with its numbers as a table and as CSV."""

from __future__ import annotations

import csv
import io
import statistics
from dataclasses import dataclass
from heapq import nlargest
from http import HTTPStatus
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, Depends, HTTPException, Request
from starlette.responses import Response, StreamingResponse

from api.dashboard.addresses import plots_page
from api.dashboard.sessions import Reader
from api.dashboard.site import Site, secure_headers
from contract.codes import FAILURE_SENTENCES, FailureCode
from db.plots import DayCount, counts_by_day, measured_parts, newest_measured
from db.standings import clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from db.plots import Sampled

__all__ = ["CoverageDay", "add_plots", "coverage_by_day", "csv_answer"]

_EACH: Final = 120
_MOST: Final = 1_200
_FURTHEST: Final = 10
_LISTS: Final = ("discovered", "served", "failed", "pending")
_MEASURED: Final = (
    "ended_at", "dataset_id", "path", "format", "route", "size_bytes", "projected_bytes", "measured_bytes", "seconds",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageDay:
    """How the archive stood at the end of a day, in UTC."""

    day: str
    discovered: int
    served: int
    failed: int
    pending: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    format: str
    route: str
    points: int
    median_ratio: float
    worst_ratio: float
    seconds_per_mb: float | None


def add_plots(routes: APIRouter, site: Site) -> None:
    """The routes of the plots and of their numbers."""
    _add_page(routes, site)
    _add_numbers(routes, site)


def _add_page(routes: APIRouter, site: Site) -> None:
    anybody = Depends(site.reader)
    target = site.service.target.url

    @routes.get(plots_page())
    def plots(request: Request, reader: Reader = anybody) -> Response:
        everything = reader.is_signed_in
        with site.service.reading() as c:
            now = clock(c)
            sample = newest_measured(c, target=target, each=_EACH, private_too=everything)
            failures = counts_by_day(c, target=target, prefix="code:", private_too=everything)
            changes = counts_by_day(c, target=target, names=_LISTS, private_too=everything)
        points = [_point(one) for one in _bounded(sample)]
        days = coverage_by_day(changes)
        return site.page(
            request,
            "plots.html",
            reader=reader,
            title="Plots",
            as_of=now,
            points=points,
            hungriest=nlargest(_FURTHEST, points, key=lambda one: one["measured"] / one["projected"]),
            slowest=nlargest(_FURTHEST, points, key=lambda one: one["seconds"] / max(one["size"], 1)),
            each=_EACH,
            kinds=_kinds(sample),
            failures=[_failure(one) for one in failures],
            failing=_failing(failures),
            days=days,
            coverage=[{"day": one.day, **{name: getattr(one, name) for name in _LISTS}} for one in days],
        )


def _add_numbers(routes: APIRouter, site: Site) -> None:
    anybody = Depends(site.reader)
    target = site.service.target.url

    @routes.get(f"{plots_page()}/{{name}}.csv")
    def numbers(name: str, reader: Reader = anybody) -> Response:
        everything, state = reader.is_signed_in, site.service.state
        if name == "measured":
            parts = measured_parts(state, target=target, private_too=everything)
            rows = (tuple(getattr(one, column) for column in _MEASURED) for part in parts for one in part)
            return csv_answer("measured", _MEASURED, rows)
        with site.service.reading() as c:
            if name == "failures":
                found = counts_by_day(c, target=target, prefix="code:", private_too=everything)
                return csv_answer(
                    name,
                    ("day", "code", "attempts"),
                    ((one["day"], one["code"], one["count"]) for one in map(_failure, found)),
                )
            if name == "coverage":
                days = coverage_by_day(counts_by_day(c, target=target, names=_LISTS, private_too=everything))
                return csv_answer(
                    name, ("day", *_LISTS), ((one.day, *(getattr(one, list_) for list_ in _LISTS)) for one in days)
                )
        raise HTTPException(HTTPStatus.NOT_FOUND, "There are no such numbers.")


def csv_answer(name: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> Response:
    """Rows as a CSV file that is sent while it is made. A text that a spreadsheet would take for a formula is quoted by an apostrophe."""

    def lines() -> Iterator[str]:
        held = io.StringIO()
        writer = csv.writer(held)
        writer.writerow(head)
        for nth, row in enumerate(rows):
            writer.writerow([_cell(value) for value in row])
            if nth % 500 == 0:
                yield held.getvalue()
                held.seek(0)
                held.truncate()
        yield held.getvalue()

    headers = {**secure_headers(), "Content-Disposition": f'attachment; filename="zarrmill-{name}.csv"'}
    return StreamingResponse(lines(), media_type="text/csv; charset=utf-8", headers=headers)


def _cell(value: object) -> object:
    if isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t", "\r"}:
        return f"'{value}"
    return value.isoformat() if hasattr(value, "isoformat") else value


def _bounded(sample: Sequence[Sampled]) -> list[Sampled]:
    """At most ``_MOST`` of the sample: where there are more, evenly through it, so that the same sample gives the same points."""
    if len(sample) <= _MOST:
        return list(sample)
    step = len(sample) / _MOST
    return [sample[int(nth * step)] for nth in range(_MOST)]


def _point(one: Sampled) -> dict[str, Any]:
    return {
        "format": one.format,
        "dataset": one.dataset_id,
        "path": one.path,
        "projected": one.projected_bytes,
        "measured": one.measured_bytes,
        "size": one.size_bytes,
        "seconds": round(one.seconds, 2),
    }


def _kinds(sample: Sequence[Sampled]) -> list[_Kind]:
    found = []
    for (format_, route), group in groupby(sample, key=lambda one: (one.format, one.route)):
        rows = list(group)
        ratios = [one.measured_bytes / one.projected_bytes for one in rows]
        size = sum(one.size_bytes for one in rows)
        found.append(
            _Kind(
                format=format_,
                route=route,
                points=len(rows),
                median_ratio=statistics.median(ratios),
                worst_ratio=max(ratios),
                seconds_per_mb=sum(one.seconds for one in rows) / size * 1e6 if size else None,
            )
        )
    return found


def _failure(one: DayCount) -> dict[str, Any]:
    return {"day": one.day.isoformat(), "code": one.name.removeprefix("code:"), "count": one.amount}


def _failing(failures: Sequence[DayCount]) -> list[tuple[str, str, int]]:
    """Each code with its sentence and its number of failed attempts, the most frequent first."""
    total: dict[str, int] = {}
    for one in failures:
        total[one.name.removeprefix("code:")] = total.get(one.name.removeprefix("code:"), 0) + one.amount
    known = {code.value for code in FailureCode}
    ordered = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return [(code, FAILURE_SENTENCES[FailureCode(code)] if code in known else "", count) for code, count in ordered]


def coverage_by_day(changes: Sequence[DayCount]) -> list[CoverageDay]:
    """How the archive stood at the end of each day on which anything changed: the sum of everything until then."""
    days = []
    now = dict.fromkeys(_LISTS, 0)
    for day, group in groupby(changes, key=lambda one: one.day):
        for one in group:
            now[one.name] += one.amount
        days.append(CoverageDay(day=day.isoformat(), **now))
    return days
