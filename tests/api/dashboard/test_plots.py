"""Plots: what is drawn is what is stored, bounded and always the same; and their numbers as tables and CSV."""

from __future__ import annotations

import asyncio
import csv
import io
from collections import Counter
from collections.abc import Callable
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st
from looked_at import OPERATOR, PHONE, Visit, check_accessible
from sqlalchemy import Engine, text

from api.dashboard.plots import coverage_by_day, csv_answer
from db.plots import DayCount, measured_parts, newest_measured

LISTS = ("discovered", "served", "failed", "pending")


def read_csv(url: str) -> list[dict[str, str]]:
    with urlopen(url, timeout=60) as answer:
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        return list(csv.DictReader(io.TextIOWrapper(answer, encoding="utf-8", newline="")))


def target_of(engine: Engine) -> str:
    with engine.connect() as c:
        found: str = c.execute(text("SELECT target FROM datasets LIMIT 1")).scalar_one()
    return found


def test_the_sample_is_the_newest_of_each_kind_and_always_the_same(archive: Engine) -> None:
    target = target_of(archive)
    with archive.connect() as c:
        found = newest_measured(c, target=target, each=20, private_too=True)
        again = newest_measured(c, target=target, each=20, private_too=True)
        kinds = Counter((one.format, one.route) for one in found)
        expected = c.execute(
            text("""
                SELECT id FROM attempts WHERE format = 'edf' AND route = 'streamed' AND outcome = 'done' ORDER BY ended_at DESC LIMIT 20
            """)
        ).all()
    assert found == again
    assert len(kinds) == 8
    assert set(kinds.values()) == {20}
    newest = {one.ended_at for one in found if (one.format, one.route) == ("edf", "streamed")}
    assert len(expected) == 20
    with archive.connect() as c:
        ended = {
            row.ended_at
            for row in c.execute(
                text("SELECT ended_at FROM attempts WHERE id = ANY(:ids)"), {"ids": [row.id for row in expected]}
            )
        }
    assert newest == ended


def test_everything_measured_is_streamed_once_in_order(archive: Engine) -> None:
    parts = list(measured_parts(archive, target=target_of(archive), private_too=True, part=3_000))
    rows = [one for part in parts for one in part]
    with archive.connect() as c:
        count = c.scalar(text("SELECT count(*) FROM attempts WHERE outcome = 'done' AND measured_bytes IS NOT NULL"))
    assert len(rows) == len({one.id for one in rows}) == count > 25_000
    assert all(a.ended_at >= b.ended_at for a, b in pairwise(rows))


def test_the_numbers_come_as_csv(archive: Engine, site_url: str) -> None:
    measured = read_csv(f"{site_url}/dashboard/plots/measured.csv")
    assert len(measured) > 25_000
    assert {row["dataset_id"] for row in measured}.isdisjoint({"xx000005"}), "private ones are for those who signed in"
    with archive.connect() as c:
        failed = c.scalar(
            text(
                "SELECT count(*) FROM attempts a JOIN recordings r ON r.pk = a.recording_pk JOIN datasets d ON d.pk = r.dataset_pk "
                "WHERE outcome = 'failed' AND visibility = 'public'"
            )
        )
    failures = read_csv(f"{site_url}/dashboard/plots/failures.csv")
    assert sum(int(row["attempts"]) for row in failures) == failed
    coverage = read_csv(f"{site_url}/dashboard/plots/coverage.csv")
    assert len(coverage) == 13
    for row in coverage:
        assert int(row["discovered"]) == int(row["served"]) + int(row["failed"]) + int(row["pending"])


def test_a_text_is_no_formula_of_a_spreadsheet() -> None:
    answer: Any = csv_answer("x", ("a", "b"), [("=cmd|' /C calc'!A0", -3), ("@x", None), ('a,"b"\n', 1.5)])
    sent = "".join(asyncio.run(_collected(answer)))
    rows = list(csv.reader(io.StringIO(sent)))
    assert rows == [["a", "b"], ["'=cmd|' /C calc'!A0", "-3"], ["'@x", ""], ['a,"b"\n', "1.5"]]


async def _collected(answer: Any) -> list[str]:
    return [part async for part in answer.body_iterator]


changes = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(LISTS), st.integers(-50, 50)),
    max_size=60,
    unique_by=lambda one: one[:2],
)


@given(changes)
def test_coverage_of_a_day_is_the_sum_of_everything_until_then(changed: list[tuple[int, str, int]]) -> None:
    rows = [DayCount(day=date(2026, 1, 1 + day), name=name, amount=amount) for day, name, amount in sorted(changed)]
    days = coverage_by_day(rows)
    assert [one.day for one in days] == sorted({row.day.isoformat() for row in rows})
    for one in days:
        for name in LISTS:
            until = sum(row.amount for row in rows if row.name == name and row.day.isoformat() <= one.day)
            assert getattr(one, name) == until


def test_what_is_drawn_is_linked_to_its_recording_and_stands_in_a_table(visit: Visit) -> None:
    visit.sign_in()
    page = visit.open("/dashboard/plots")
    assert page.locator("figure[data-chart]").count() == 4
    marks = page.locator('figure[data-chart="memory"] .drawing a')
    assert marks.count() == 960
    address = marks.first.get_attribute("href") or ""
    assert address.startswith("/dashboard/datasets/xx0000")
    assert "/recordings/sub-" in address
    page.get_by_text("As a table").first.click()
    assert page.get_by_role("cell", name="streamed").first.is_visible()
    furthest = page.locator('figure[data-chart="memory"] table').last.get_by_role("link")
    assert furthest.count() == 10
    assert (furthest.first.get_attribute("href") or "").startswith("/dashboard/datasets/xx0000")
    drawn = page.locator('figure[data-chart="failures"] .drawing rect')
    assert drawn.count() >= 8
    width = page.locator('figure[data-chart="memory"] .drawing svg').first.bounding_box()
    page.set_viewport_size({"width": 700, "height": 800})
    page.wait_for_function(
        "width => document.querySelector('.drawing svg').getBoundingClientRect().width !== width",
        arg=width and width["width"],
    )


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_they_are_accessible_and_fit(look: str, window: Any, axe: Path, snap: Callable[..., None]) -> None:
    given: dict[str, Any] = {"dark": {"color_scheme": "dark"}, "phone": {"viewport": PHONE}}.get(look, {})
    with window(**given) as visit:
        visit.sign_in(OPERATOR)
        page = visit.open("/dashboard/plots")
        check_accessible(page, axe)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        snap(page, f"plots-{look}", whole=True)
