"""The pages of runs at 25,000 recordings: what they show to whom, by keyboard, in the dark and on a phone."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from large_archive import HOSTILE, LARGE, PRIVATE, TAG
from looked_at import OPERATOR, PHONE, Visit, check_accessible
from playwright.sync_api import Page
from sqlalchemy import Engine, event, text

RUN = f"/dashboard/datasets/{LARGE}/runs/1"
UNDER_WAY = f"/dashboard/datasets/{LARGE}/runs/2"
Window = Callable[..., AbstractContextManager[Visit]]


@pytest.fixture(scope="module")
def signed(site_url: str) -> Iterator[httpx.Client]:
    """A client with the cookie of an operator."""
    with httpx.Client(base_url=site_url, follow_redirects=False, timeout=60) as client:
        answer = client.post("/dashboard/sign-in", data={"token": OPERATOR}, headers={"sec-fetch-site": "same-origin"})
        assert answer.status_code == httpx.codes.SEE_OTHER, answer.text
        yield client


def scalar(engine: Engine, statement: str, **values: Any) -> Any:
    with engine.connect() as c:
        return c.scalar(text(statement), values)


def run_id(engine: Engine, dataset_id: str, number: int) -> Any:
    return scalar(
        engine,
        "SELECT u.id FROM runs u JOIN datasets d ON d.pk = u.dataset_pk WHERE d.dataset_id = :dataset AND u.number = :number",
        dataset=dataset_id,
        number=number,
    )


def test_runs_are_listed_newest_first_filtered_and_in_parts(visit: Visit, archive: Engine) -> None:
    page = visit.open("/dashboard/runs")
    public = scalar(
        archive, "SELECT count(*) FROM runs u JOIN datasets d ON d.pk = u.dataset_pk WHERE d.visibility = 'public'"
    )
    assert page.get_by_text(f"1–50 of {public}").count() == 1
    assert page.locator("tbody tr").count() == 50
    assert page.get_by_role("link", name=f"{PRIVATE}, run").count() == 0
    page.get_by_role("link", name="Next").click()
    page.get_by_text(f"51–100 of {public}").wait_for()
    page.goto(f"{visit.url}/dashboard/runs")
    page.get_by_label("End").select_option("failed")
    page.get_by_text("1–1 of 1").wait_for()
    assert page.get_by_role("link", name="xx000003, run 1").count() == 1
    page.get_by_role("link", name="All runs").click()
    page.get_by_label("Dataset").fill(LARGE)
    page.keyboard.press("Enter")
    page.get_by_text("1–2 of 2").wait_for()
    page.get_by_role("link", name=f"{LARGE}, run 1").click()
    page.wait_for_url(f"**{RUN}")


def test_who_asked_is_looked_for_by_who_is_signed_in(visit: Visit) -> None:
    page = visit.open("/dashboard/runs?who=ada")
    assert page.get_by_label("Asked by").count() == 0
    assert page.locator("tbody tr").count() == 50, "without a token the name is no filter"
    visit.sign_in()
    page = visit.open("/dashboard/runs?who=ADA")
    assert page.locator("tbody tr").all_inner_texts()[0].endswith("ada")
    assert page.get_by_text("1–1 of 1").count() == 1


def numbers_of(page: Page) -> list[int]:
    said = page.get_by_text("discovered =").first.inner_text().replace(",", "")
    return [int(word) for word in said.split() if word.isdigit()]


def test_a_run_shows_numbers_that_balance_and_its_recordings_by_link(visit: Visit, archive: Engine) -> None:
    page = visit.open(UNDER_WAY)
    discovered, stores, failures, pending = numbers_of(page)
    assert discovered == stores + failures + pending == 25_000
    attempts = scalar(archive, "SELECT count(*) FROM attempts WHERE run_id = :run", run=run_id(archive, LARGE, 2))
    assert page.get_by_text(f"{attempts:,} attempts").count() == 1
    assert page.get_by_text("worker-1").count() == 0, "workers are for who is signed in"
    assert page.get_by_text("Sign in to read who asked").count() == 1
    link = page.get_by_role("table").filter(has_text="Counted attempts").get_by_role("link").first
    assert (link.get_attribute("href") or "").startswith(f"/dashboard/datasets/{LARGE}/recordings/sub-")
    assert page.locator("figure[data-chart='pace'] svg rect").count() > 10
    assert page.locator("figure[data-chart='memory'] svg a").count() > 100


def test_who_is_signed_in_sees_what_ran_on_each_worker_and_its_numbers(
    visit: Visit, signed: httpx.Client, archive: Engine
) -> None:
    visit.sign_in()
    page = visit.open(RUN)
    lanes = page.locator("figure[data-chart='lanes']")
    assert lanes.locator("svg").first.is_visible()
    lanes.get_by_text("As a table").click()
    assert lanes.locator("tbody th").all_inner_texts() == ["worker-0", "worker-1", "worker-2"]
    answer = signed.get(f"{RUN}/attempts.csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    identity = run_id(archive, LARGE, 1)
    assert len(rows) == scalar(archive, "SELECT count(*) FROM attempts WHERE run_id = :run", run=identity)
    assert sum(int(row["permitted_bytes"]) for row in rows) == scalar(
        archive, "SELECT sum(permitted_bytes) FROM attempts WHERE run_id = :run", run=identity
    )


def test_the_report_is_for_who_is_signed_in_and_nobody_else(
    site_url: str, signed: httpx.Client, archive: Engine
) -> None:
    identity = run_id(archive, LARGE, 1)
    for path in (f"{RUN}/report.html", f"{RUN}/attempts.csv"):
        assert httpx.get(f"{site_url}{path}").status_code == httpx.codes.UNAUTHORIZED
    answer = signed.get(f"{RUN}/report.html")
    assert answer.status_code == httpx.codes.OK
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert f"{LARGE}, run 1" in answer.text
    assert str(identity) in answer.text
    # not by the gateway, however it is asked for
    for path in (
        f"/_runs/{identity}/report.html",
        f"/{LARGE}/zarr/../../_runs/{identity}/report.html",
        f"/_runs/zarr/{identity}/report.html",
    ):
        assert httpx.get(f"{site_url}{path}").status_code == httpx.codes.NOT_FOUND


def test_what_is_not_for_everybody_is_not_there(site_url: str, signed: httpx.Client, archive: Engine) -> None:
    private = f"/dashboard/datasets/{PRIVATE}/runs/1"
    assert httpx.get(f"{site_url}{private}").status_code == httpx.codes.NOT_FOUND
    assert signed.get(private).status_code == httpx.codes.OK
    for path in (
        f"/dashboard/datasets/{LARGE}/runs/99",
        f"/dashboard/datasets/{LARGE}/runs/99999999999999999999",
        "/dashboard/runs/no-id",
    ):
        assert httpx.get(f"{site_url}{path}").status_code in {
            httpx.codes.NOT_FOUND,
            httpx.codes.BAD_REQUEST,
        }, path
    led = httpx.get(f"{site_url}/dashboard/runs/{run_id(archive, LARGE, 2)}")
    assert (led.status_code, led.headers["location"]) == (httpx.codes.SEE_OTHER, UNDER_WAY)


def test_a_tag_in_a_name_or_an_error_is_text(visit: Visit) -> None:
    visit.sign_in()
    page = visit.open("/dashboard/datasets/xx000003/runs/1")
    assert "<script>alert(1)" in page.locator(".notice.bad").inner_text()
    page = visit.open(f"/dashboard/datasets/{HOSTILE}/runs/1")
    page.goto(f"{visit.url}/dashboard/datasets/{HOSTILE}/runs/1/report.html")
    assert page.title().startswith(HOSTILE)
    assert f"Hostile {TAG}" in page.locator("main").inner_text()


def test_while_a_run_is_under_way_its_numbers_move(visit: Visit) -> None:
    page = visit.page
    page.clock.install()
    visit.open(UNDER_WAY)
    page.evaluate("document.querySelector('#run-numbers .value').textContent = 'old'")
    with page.expect_response(lambda answer: answer.url.endswith(UNDER_WAY)):
        page.clock.run_for(16_000)
    page.wait_for_function("document.querySelector('#run-numbers .value').textContent !== 'old'")


def test_a_page_costs_the_same_statements_however_large_its_run(
    site_url: str, signed: httpx.Client, archive: Engine
) -> None:
    def cost(path: str) -> int:
        asked: list[str] = []

        def note(_c: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
            asked.append(statement)

        event.listen(archive, "before_cursor_execute", note)
        try:
            assert signed.get(path).status_code == httpx.codes.OK
        finally:
            event.remove(archive, "before_cursor_execute", note)
        return len(asked)

    small = f"/dashboard/datasets/{HOSTILE}/runs/2"
    first = cost(small)
    assert cost(UNDER_WAY) <= first <= 25
    assert cost(small) <= first - 9, "what a run that has ended did is counted once"
    assert cost("/dashboard/runs") <= 5


@pytest.mark.parametrize("path", ["/dashboard/runs", RUN])
def test_pages_of_runs_are_accessible_by_keyboard_in_the_dark_and_on_a_phone(
    window: Window, axe: Path, snap: Callable[..., None], path: str
) -> None:
    name = "runs" if path.endswith("/runs") else "run"
    looks: dict[str, dict[str, Any]] = {
        "light": {},
        "dark": {"color_scheme": "dark"},
        "phone": {"viewport": PHONE},
    }
    for look, given in looks.items():
        with window(**given) as visit:
            visit.sign_in()
            page = visit.open(path)
            check_accessible(page, axe)
            width = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
            assert width[0] <= width[1], f"{look}: the page is wider than the window"
            snap(page, f"{name}-{look}", whole=name == "run" and look != "phone")
            if look == "light":
                page.keyboard.press("Tab")
                assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
                page.keyboard.press("Enter")
                page.keyboard.press("Tab")
                assert page.evaluate("document.activeElement.closest('main') !== null")
