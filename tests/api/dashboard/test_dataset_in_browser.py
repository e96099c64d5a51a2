"""The pages of datasets and recordings in a browser: live progress, filters, dry run then deed, keyboard only, dark, accessible."""

from __future__ import annotations

import http.client
import re
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from large_archive import HOSTILE, LARGE, TAG, UNTOUCHED
from looked_at import PHONE, Visit, check_accessible
from playwright.sync_api import Page, expect
from press import Press
from sqlalchemy import Engine, text
from sqlalchemy.pool import QueuePool

from api.dashboard import addresses
from api.dashboard.live import Watch
from api.errors import ApiError
from api.service import Service
from infra.settings import Settings

expect.set_options(timeout=60_000)  # two cores under load
DATASET = f"/dashboard/datasets/{LARGE}"
FAILED = addresses.recording_page(LARGE, "sub-00001/eeg/sub-00001_task-rest_run-3_eeg.fif")


def counts(page: Page) -> dict[str, int]:
    return {
        name: int(page.locator(f'[data-count="{name}"]').inner_text().replace(",", ""))
        for name in ("stores", "failures", "pending")
    }


@pytest.fixture
def press(engine: Engine, tmp_path: Path) -> Press:
    """A dataset of six recordings whose run is under way."""
    made = Press(engine, tmp_path)
    made.plan("01", "02", "03", "04", "05", "06")
    return made


@pytest.fixture
def moving(press: Press, serve: Callable[..., str], tmp_path: Path) -> str:
    return serve(press.engine, tmp_path / "served")


def test_progress_moves_on_an_open_page_and_ends_with_the_run(
    press: Press, moving: str, window: Callable[..., Any]
) -> None:
    with window(moving) as visit:
        page = visit.open("/dashboard/datasets/xx000001?state=failed")
        assert counts(page) == {"stores": 0, "failures": 0, "pending": 6}
        press.convert("01", "02")
        expect(page.locator('[data-count="stores"]')).to_have_text("2")
        press.fail("03", detail=TAG)
        expect(page.locator('[data-count="failures"]')).to_have_text("1")
        press.claim(press.run, "04")  # type: ignore[arg-type]  # a run is under way
        row = page.locator(".at-work a")
        expect(row).to_have_text("sub-04/eeg/sub-04_task-rest_eeg.edf")
        row.focus()
        press.convert("05")
        expect(page.locator('[data-count="stores"]')).to_have_text("3")
        expect(row).to_be_focused()
        assert sum(counts(page).values()) == 6
        assert press.run is not None
        press.end(press.run)
        expect(page.locator(".live-word")).to_have_count(0)  # it has loaded itself anew, once
        expect(page.locator("details.code summary")).to_contain_text("not_continuous")
        expect(page.locator("section[aria-labelledby=runs] tbody tr").first).not_to_contain_text("running")
        expect(page.get_by_label("State")).to_have_value("failed")
        assert urlsplit(page.url).query == "state=failed"


def test_a_form_that_is_being_filled_in_is_not_lost_at_the_end(
    press: Press, moving: str, window: Callable[..., Any]
) -> None:
    with window(moving) as visit:
        page = visit.open("/dashboard/datasets/xx000001")
        expect(page.get_by_text("The rest of this page is as of")).to_be_visible()
        page.get_by_label("Path holds").fill("sub-0")
        press.convert("01")
        assert press.run is not None
        press.end(press.run)
        expect(page.locator(".live-word")).to_have_text("Nothing moves any more.")
        expect(page.get_by_label("Path holds")).to_have_value("sub-0")
        page.get_by_role("link", name="load it anew").click()
        expect(page.locator(".live-word")).to_have_count(0)


class Listener:
    """Somebody who reads the stream of a dataset as it comes."""

    def __init__(self, url: str, **headers: str) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        self.connection.request("GET", "/dashboard/datasets/xx000001/events", headers=headers)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200

    def next(self) -> tuple[str, str]:
        """The event and the id that come next; a comment is no event."""
        found: dict[str, str] = {}
        while True:
            line = self.answer.readline().decode().rstrip("\n")
            name, _, value = line.partition(": ")
            if name in {"event", "id"}:
                found[name] = value
            if not line and "event" in found:
                return found["event"], found["id"]

    def close(self) -> None:
        self.answer.close()
        self.connection.close()


def test_who_comes_again_is_told_only_what_is_new(press: Press, moving: str) -> None:
    first = Listener(moving)
    event, seen = first.next()
    assert event == "progress"
    first.close()
    again = Listener(moving, **{"Last-Event-ID": seen})
    press.convert("01")
    event, newer = again.next()
    assert (event, newer != seen) == ("progress", True)
    assert press.run is not None
    press.end(press.run)
    told = [again.next()]
    while told[-1][0] != "end":
        told.append(again.next())
    assert again.answer.read() == b"", "it is closed at the end"
    again.close()
    late = Listener(moving, **{"Last-Event-ID": told[-1][1]})
    assert late.next() == ("end", told[-1][1])
    late.close()


def test_thirty_listeners_are_one_look_and_hold_no_connection(press: Press, moving: str) -> None:
    listeners = [Listener(moving) for _ in range(30)]
    assert {listener.next()[0] for listener in listeners} == {"progress"}
    pool = press.engine.pool
    assert isinstance(pool, QueuePool)
    assert pool.checkedout() <= 1
    press.convert("01")
    assert {listener.next()[0] for listener in listeners} == {"progress"}
    for listener in listeners:
        listener.close()


def test_one_listener_too_many_is_told_to_come_again(engine: Engine) -> None:
    full = Watch(Service(None, Settings(), engine), most=0)  # type: ignore[arg-type]  # no target is looked at
    with pytest.raises(ApiError) as raised:
        full.check_room()
    assert raised.value.status == 503


def test_a_stream_that_is_left_is_no_longer_looked_after(press: Press, moving: str) -> None:
    listener = Listener(moving)
    listener.next()
    assert listener.connection.sock is not None
    listener.connection.sock.shutdown(socket.SHUT_RDWR)
    listener.close()
    answered = threading.Event()

    def ask() -> None:
        other = Listener(moving)
        other.next()
        other.close()
        answered.set()

    threading.Thread(target=ask, daemon=True).start()
    assert answered.wait(60)


def test_the_table_is_filtered_searched_sorted_and_paged(visit: Visit) -> None:
    page = visit.open(DATASET)
    expect(page.get_by_text("1–50 of 25,000 recordings")).to_be_visible()
    page.get_by_role("link", name="Next", exact=True).click()
    expect(page.get_by_text("51–100 of 25,000 recordings")).to_be_visible()
    page.get_by_role("link", name="Previous", exact=True).click()
    expect(page.get_by_text("1–50 of 25,000 recordings")).to_be_visible()
    page.get_by_label("State").select_option("failed")
    expect(page.get_by_text("1–50 of 1,250 recordings that fit")).to_be_visible()
    page.get_by_label("Code or reason").select_option("file_read_error")
    expect(page.get_by_text("1–50 of 250 recordings that fit")).to_be_visible()
    assert set(page.locator("table.recordings td.why code").all_inner_texts()) == {"file_read_error"}
    page.get_by_label("Path holds").fill("SUB-00")
    page.get_by_label("Path holds").press("Enter")
    expect(page.get_by_text("1–40 of 40 recordings that fit")).to_be_visible()
    page.get_by_role("link", name="Size").click()
    expect(page.locator('th[aria-sort="ascending"]')).to_contain_text("Size")
    page.get_by_role("link", name="Show all", exact=True).click()
    expect(page.get_by_text("1–50 of 25,000 recordings")).to_be_visible()


def test_requeue_by_keyboard_alone_shows_first_and_refuses_what_is_stale(
    press: Press, moving: str, window: Callable[..., Any]
) -> None:
    press.fail("01")
    press.fail("02")
    press.convert("03")
    assert press.run is not None
    press.end(press.run)
    with window(moving) as visit:
        visit.sign_in()
        page = visit.open("/dashboard/datasets/xx000001")

        def press_button(name: str) -> None:
            for _ in range(80):
                page.keyboard.press("Tab")
                if page.evaluate("document.activeElement.textContent").strip() == name:
                    break
            else:
                raise AssertionError(f"no way by Tab to {name!r}")
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", "what has the keyboard is seen"
            page.keyboard.press("Enter")

        press_button("Make them due again …")
        expect(page.get_by_role("heading", name="Make 2 recordings of xx000001 due again")).to_be_visible()
        with press.begin() as c:
            c.execute(
                text(
                    "UPDATE recordings SET detail = NULL, attempts = 0, last_attempt_at = zarrmill_now() WHERE due = 'failed'"
                )
            )
        visit.page.on("response", lambda answer: visit.complaints.clear() if answer.status == 409 else None)
        press_button("Make 2 recordings of xx000001 due again")
        expect(page.get_by_role("alert")).to_contain_text("Nothing was done.")
        assert press.state("01").due == "failed"
        press_button("Make 2 recordings of xx000001 due again")
        expect(page.get_by_role("status").first).to_contain_text("Done: requeue by ada")
        assert press.state("01").due == press.state("02").due == "pending"
        visit.complaints[:] = [one for one in visit.complaints if "409" not in one]


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_pages_are_accessible_and_pictured(
    window: Callable[..., Any], axe: Path, snap: Callable[..., None], colours: str
) -> None:
    with window(color_scheme=colours) as visit:
        visit.sign_in()
        page = visit.open(DATASET)
        for details in page.locator("details").all():
            details.evaluate("element => (element.open = true)")
        check_accessible(page, axe)
        visit.open(DATASET)
        page.evaluate(
            "document.querySelectorAll('code').forEach(one => one.textContent = one.textContent.replace(/\\/tmp\\/.*/, '/srv/served'))"
        )
        snap(page, f"dataset-{colours}")
        page = visit.open(FAILED)
        page.locator("summary", has_text="Log and traceback").first.click()
        check_accessible(page, axe)
        page.evaluate(
            "document.querySelectorAll('pre').forEach(one => one.textContent = one.textContent.replace(/\\/tmp\\/[^\"]*/, '/srv/served'))"
        )
        snap(page, f"recording-{colours}", whole=True)
        page = visit.open(f"{DATASET}?state=failed")
        page.get_by_role("button", name="Make them due again …").first.click()
        expect(page.get_by_role("heading", name="What would happen")).to_be_visible()
        check_accessible(page, axe)
        snap(page, f"action-{colours}", whole=True)
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 200) is (colours == "dark")


def test_pages_fit_a_phone(window: Callable[..., Any], snap: Callable[..., None]) -> None:
    with window(viewport=PHONE) as visit:
        visit.sign_in()
        for name, path in (("dataset", DATASET), ("recording", FAILED), (None, f"/dashboard/datasets/{UNTOUCHED}")):
            page = visit.open(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
            if name is not None:
                snap(page, f"{name}-phone")


def test_tags_are_text(visit: Visit) -> None:
    visit.sign_in()
    page = visit.open(f"/dashboard/datasets/{HOSTILE}")
    assert TAG in page.locator("h1").inner_text()
    assert TAG in page.locator("details.code").first.inner_text()
    page = visit.open(f"/dashboard/datasets/{HOSTILE}?q=script")
    page.locator("table.recordings tbody a").first.click()
    expect(page.locator("h1")).to_contain_text("<script>alert(1)<_script>")
    page = visit.open(FAILED)
    page.locator("summary", has_text="Log and traceback").first.click()
    assert TAG in page.locator(".attempt .notice").first.inner_text()
    assert "<script>" in page.locator(".attempt pre").first.inner_text()
