"""The overview: what it says of an archive, to whom, by keyboard, in the dark, on a phone, and of an archive that is empty."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filled_state import Kept, Reported, put
from large_archive import HOSTILE, LARGE, PRIVATE, TAG, UNTOUCHED
from looked_at import OPERATOR, PHONE, Visit, check_accessible
from loopback import ask
from playwright.sync_api import Page
from product import ROOT
from sqlalchemy import Engine, text

from api.dashboard.advice import ADVICE
from api.dashboard.overview import RANK_WORDS, STANDING_WORDS
from db.overview import RANKS, STANDINGS, archive_standing, pace, ranked
from db.tallies import WATCHED, mark
from flows.watch import KINDS


def tile(page: Page, name: str) -> str:
    """The value of a tile."""
    found = page.locator(".tile", has=page.locator("dt", has_text=re.compile(f"^{name}$"))).locator(".value")
    return found.inner_text()


def ids(page: Page) -> list[str]:
    return page.locator("table.datasets tbody th a").all_inner_texts()


def test_every_number_is_what_counting_gives(archive: Engine, visit: Visit) -> None:
    visit.sign_in()
    page = visit.open("/dashboard")
    with archive.connect() as c:
        row = c.execute(
            text("""
                SELECT count(*) FILTER (WHERE discovered) AS discovered, count(*) FILTER (WHERE discovered AND served_source = source) AS served,
                       count(*) FILTER (WHERE due = 'converting') AS converting, (SELECT count(*) FROM datasets) AS datasets,
                       count(*) FILTER (WHERE due IN ('pending', 'converting')) AS due
                FROM recordings
            """)
        ).one()
    assert tile(page, "Recordings converted") == f"{row.served:,} of {row.discovered:,}"
    assert tile(page, "With workers") == f"{row.converting:,}"
    assert f"for {row.due:,} recordings" in page.locator(".tile", has_text="Time left").inner_text()
    assert f"of {row.datasets}" in page.locator(".tile", has_text="Datasets fully converted").inner_text()
    assert tile(page, "Callbacks undelivered") == "2"
    assert page.locator(".tile").count() == page.locator(".tile .when").count(), "every tile says as of when"


def test_datasets_are_ranked_worst_first_and_what_is_not_known_comes_last(archive: Engine) -> None:
    with archive.connect() as c:
        target = c.execute(text("SELECT target FROM datasets LIMIT 1")).scalar_one()
        every = ranked(c, target=target, private_too=True, limit=1000).datasets
        public = ranked(c, target=target, limit=1000).datasets
        sums = archive_standing(c, target=target, private_too=True)
        parts = {word: ranked(c, target=target, private_too=True, standing=word).total for word in STANDINGS}
    shares = [one.served / one.discovered for one in every if one.discovered and one.served is not None]
    assert shares == sorted(shares)
    assert [one.dataset_id for one in every if one.discovered is None] == [
        one.dataset_id for one in every[len(shares) :]
    ]
    assert {one.dataset_id for one in every} - {one.dataset_id for one in public} == {PRIVATE}
    for one in every:
        if one.discovered is not None:
            assert one.served is not None and one.failed is not None and one.pending is not None  # noqa: PT018 one fact: all are known
            assert one.discovered == one.served + one.failed + one.pending
    assert sums.complete + sums.partial + sums.failed_datasets + sums.never == sums.datasets == len(every)
    told = {"complete": sums.complete, "partial": sums.partial, "failed": sums.failed_datasets, "never": sums.never}
    assert parts == told | {"processing": sums.processing, "verified": sums.verified, "unlike": sums.unlike}
    assert min(told.values()) >= 1


def test_what_others_reported_counts_as_they_told_it(engine: Engine) -> None:
    with engine.begin() as c:
        put(c, Kept(1, is_ours=False, reported=Reported("ready", stores=5, errors=1, pending=2)))
        put(c, Kept(2, is_ours=False, reported=Reported("pending")))
        found = {one.dataset_id: one for one in ranked(c, target="/served").datasets}
        sums = archive_standing(c, target="/served")
    assert (found["xx000001"].served, found["xx000001"].pending, found["xx000001"].discovered) == (5, 2, None)
    assert (found["xx000002"].served, found["xx000002"].processing) == (None, True)
    assert (sums.discovered, sums.uncounted, sums.partial, sums.never) == (None, 2, 1, 0)


def test_whoever_has_not_signed_in_sees_nothing_private_and_no_detail_of_alarms(visit: Visit) -> None:
    page = visit.open(f"/dashboard?search={PRIVATE}")
    assert "No dataset fits." in page.locator("table.datasets").inner_text()
    assert "in vain" in page.locator(".health").inner_text()
    assert "xx000007" not in page.locator(".health").inner_text()
    visit.sign_in()
    page = visit.open(f"/dashboard?search={PRIVATE}")
    assert ids(page) == [PRIVATE]
    assert "xx000007" in page.locator(".health").inner_text()


def test_tags_are_text_and_what_is_not_known_is_never_zero(visit: Visit) -> None:
    visit.sign_in()
    page = visit.open(f"/dashboard?search={HOSTILE}")
    assert TAG in page.locator("table.datasets").inner_text()
    assert TAG in page.locator(".health").inner_text()
    row = visit.open(f"/dashboard?search={UNTOUCHED}").locator("table.datasets tbody tr")
    assert row.count() == 1
    assert not re.search(r"\b0\b", row.locator("td").all_inner_texts()[1]), "its coverage"
    assert row.get_by_text("unknown").count() == 6
    assert "%" not in row.inner_text()


def test_an_empty_archive_is_unknown_and_not_zero(engine: Engine, serve: Callable[..., str], window: Any) -> None:
    with window(serve(engine)) as visit:
        page = visit.open("/dashboard")
        assert page.locator(".verdict").inner_text().startswith("unknown")
        assert tile(page, "Recordings converted") == "unknown of unknown"
        assert tile(page, "Time left") == "unknown"
        assert tile(page, "Bytes served") == "unknown"
        assert "No dataset is known here yet." in page.inner_text("main")
        with engine.begin() as c:
            mark(c, WATCHED)
        assert visit.open("/dashboard").locator(".verdict").inner_text().startswith("healthy")
        assert visit.open("/dashboard/plots").locator("figure").count() == 0


def test_the_list_is_searched_filtered_sorted_and_paged_by_its_address(visit: Visit) -> None:
    visit.sign_in()
    page = visit.open("/dashboard")
    assert ids(page)[0] == LARGE
    first = ids(page)
    page.get_by_role("link", name="Next").click()
    page.wait_for_url("**/dashboard?offset=50")
    assert len(first) == 50
    assert not set(first) & set(ids(page))
    assert len(ids(page)) == 30
    page.get_by_label("Standing").select_option("failed")
    page.wait_for_url("**standing=failed**")
    assert ids(page) == ["xx000003"]
    page.get_by_role("link", name="Show all").click()
    page.wait_for_url("**/dashboard")
    page.get_by_label("Id or name").fill("very LARGE")
    page.keyboard.press("Enter")
    page.wait_for_url("**search=very+LARGE**")
    assert ids(page) == [LARGE]
    page.get_by_role("link", name=LARGE).focus()


def test_without_scripts_everything_is_there(window: Any) -> None:
    with window(java_script_enabled=False) as visit:
        page = visit.open("/dashboard?sort=id")
        assert ids(page)[:2] == [LARGE, "xx000002"]
        page.get_by_label("Order").select_option("largest")
        page.get_by_role("button", name="Show").click()
        page.wait_for_url("**sort=largest**")
        assert ids(page)[0] == LARGE
        page = visit.page
        page.goto(f"{visit.url}/dashboard/plots")
        assert page.get_by_text("As a table").count() == 4


def test_it_is_used_by_keyboard_alone(visit: Visit) -> None:
    page = visit.open("/dashboard")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    page.get_by_label("Id or name").focus()
    page.keyboard.type(LARGE)
    page.keyboard.press("Tab")
    for _ in range(len(STANDING_WORDS) + 1):
        page.keyboard.press("ArrowUp")
    page.get_by_label("Id or name").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**search={LARGE}**")
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.textContent.trim()"))
        if seen[-1] == LARGE:
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
            return
    pytest.fail(f"the dataset is not reached: {seen}")


def test_the_reader_chooses_the_colours(visit: Visit) -> None:
    page = visit.open("/dashboard")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Dark").click()
    dark = page.evaluate(ground)
    assert dark != light
    assert visit.open("/dashboard").evaluate(ground) == dark, "it is remembered"
    page.get_by_role("button", name="Auto").click()
    assert page.evaluate(ground) == light


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_it_is_accessible_and_fits(look: str, window: Any, axe: Path, snap: Callable[..., None]) -> None:
    given: dict[str, Any] = {"dark": {"color_scheme": "dark"}, "phone": {"viewport": PHONE}}.get(look, {})
    with window(**given) as visit:
        visit.sign_in(OPERATOR)
        page = visit.open("/dashboard")
        check_accessible(page, axe)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        snap(page, f"overview-{look}")


def test_every_word_has_what_belongs_to_it() -> None:
    assert set(ADVICE) == set(KINDS)
    assert set(STANDING_WORDS) == set(STANDINGS)
    assert set(RANK_WORDS) == set(RANKS)
    runbook = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
    assert all(f"| `{kind}` |" in runbook for kind in ADVICE)


def test_the_pace_counts_what_was_settled_and_nothing_else(engine: Engine) -> None:
    with engine.begin() as c:
        pk = put(c, Kept(1, recordings=("served", "not_continuous", "pending")))
        put(c, Kept(2, visibility="private", recordings=("served",)))
        c.execute(
            text("""
                INSERT INTO runs (id, dataset_pk, number, mode, zarrmill, options, engine, biosigio, owner_host, owner_pid, state, ended_at)
                SELECT gen_random_uuid(), pk, 1, 'auto', 'z', 'o', 'e', 'b', 'h', 1, 'completed', zarrmill_now() FROM datasets
            """)
        )
        c.execute(
            text("""
                INSERT INTO attempts (id, recording_pk, run_id, worker, format, route, projected_bytes, permitted_bytes, scratch_bytes,
                                      floor_bytes, outcome, code, reason, ended_at)
                SELECT gen_random_uuid(), r.pk, u.id, 'w', 'edf', 'memory', 1, 1, 1, 1,
                       CASE r.due WHEN 'none' THEN 'done' ELSE r.due END, r.code, r.reason, zarrmill_now() - interval '7 minutes'
                FROM recordings r JOIN runs u ON u.dataset_pk = r.dataset_pk
            """)
        )
        everybodys, all_of_it = pace(c, target="/served"), pace(c, target="/served", private_too=True)
    assert pk is not None
    assert everybodys.recordings == (0,) * 10 + (2, 0)
    assert everybodys.size_bytes == (0,) * 10 + (2000, 0)
    assert all_of_it.recordings == (0,) * 10 + (3, 0)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/plots",
        "/runs",
        "/sign-in",
        f"/datasets/{LARGE}",
        f"/datasets/{LARGE}/runs/1",
        f"/datasets/{LARGE}/recordings.csv?code=corrupt_or_truncated",
        "/datasets/xx999999",
        "/elsewhere",
    ],
)
def test_head_is_answered_as_get_is(site_url: str, path: str) -> None:
    port = int(site_url.rpartition(":")[2])
    got, head = (ask(port, f"/dashboard{path}", method=method, Accept="text/html") for method in ("GET", "HEAD"))
    assert (head.status, head.body) == (got.status, b"")
    assert head.headers.get("content-type") == got.headers.get("content-type")
    assert got.body or got.status == 308


def test_head_of_what_is_followed_ends_at_once(site_url: str) -> None:
    answer = ask(int(site_url.rpartition(":")[2]), f"/dashboard/datasets/{LARGE}/events", method="HEAD")
    assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
