"""The viewer in a browser, over stores that were really converted: what it draws is what is served."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from command import Zarrmill
from looked_at import PHONE, Visit, check_accessible
from looked_store import Drawn, write_long_store
from playwright.sync_api import Page
from served_dataset import Served
from viewer_dataset import BROKEN, HOSTILE, LONG, LONG_CHANNELS, MIXED, write_viewer_dataset

from infra.database import engine as make_engine

DATASET = "xx000008"
LONG_TEST_S = 60
Window = Callable[..., AbstractContextManager[Visit]]


@dataclass(frozen=True)
class Looked:
    """The dataset, converted, and a server over it with its state."""

    served: Served
    url: str

    def page(self, path: str) -> str:
        return f"/dashboard/datasets/{DATASET}/view/{path.rsplit('.', 1)[0]}.zarr"


@pytest.fixture(scope="module")
def looked(
    servers: Any,
    prefect_url: str,
    serve_module: Callable[..., str],
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Looked]:
    root = tmp_path_factory.mktemp("looked")
    (root / "home").mkdir(mode=0o700)
    postgres = servers.migrated(18)
    postgres.create_database("looked", template="migrated")
    settings = {"ZARRMILL_DATABASE_URL": postgres.url("looked"), "PREFECT_API_URL": prefect_url}
    seconds = 2400 if request.config.getoption("--write-pictures") else LONG_TEST_S
    write_viewer_dataset(root / DATASET, long_s=seconds)
    Zarrmill(root / "home", root, settings).run("convert", root / DATASET, "--to", root / "served")
    engine = make_engine(postgres.url("looked"), pool_size=4)
    yield Looked(Served(root / "served", DATASET), serve_module(engine, root / "served"))
    engine.dispose()


def opened(visit: Visit, path: str, view: str = "") -> Page:
    """The viewer on a store, when everything that its window needs is drawn."""
    visit.page.goto("about:blank")  # another view of the same store would be no new page
    page = visit.open(path + view)
    return whole(page)


def whole(page: Page) -> Page:
    page.wait_for_selector("#viewer[data-state=whole]")
    # a frame may be due that the state does not tell yet
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_selector("#viewer[data-state=whole]")
    return page


def until(page: Page, expression: str) -> None:
    """Wait until an expression is true (``wait_for_function`` evaluates texts in the page, whose policy forbids it)."""
    deadline = time.monotonic() + 60
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(50)


def reading(page: Page, row: int) -> Drawn:
    return Drawn(page.evaluate("(row) => document.getElementById('viewer').viewer.plot.reading(row)", row))


def state(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate("document.getElementById('viewer').viewer.state")
    return found


def test_what_is_drawn_is_what_is_stored_at_every_level(looked: Looked, window: Window) -> None:
    store = looked.served.store(LONG)
    levels = set()
    with window(looked.url) as visit:
        for view in (
            "#n=0",
            "#t=10&w=40&n=0",
            "#t=40.3&w=17&n=0",
            "#t=31.7&w=6&n=0",
            "#t=50&w=2&n=0",
            f"#t={LONG_TEST_S}&w=4&n=0",
        ):
            page = opened(visit, looked.page(LONG), view)
            for row in (0, 47, LONG_CHANNELS - 1):
                drawn = reading(page, row)
                drawn.check(store, row)
                levels.add(drawn.level)
    assert levels >= {0, 1, 2}


def test_the_pixels_of_a_channel_are_where_its_values_are(looked: Looked, window: Window) -> None:
    with window(looked.url, device_scale_factor=2) as visit:
        page = opened(visit, looked.page(LONG), "#t=0&w=60&ch=5&y=EEG%3A400&dc=1")
        told = reading(page, 5)
        seen: dict[str, Any] = page.evaluate("""() => {
            const plot = document.getElementById("viewer").viewer.plot;
            const { width, height } = plot.middle.canvas;
            const data = plot.middle.context.getImageData(0, 0, width, height).data;
            const ends = Array.from({ length: width }, (_, x) => {
                const ys = Array.from({ length: height }, (_, y) => y).filter((y) => data[4 * (y * width + x) + 3] > 100);
                return [ys[0], ys[ys.length - 1]];
            });
            return { height, ends };
        }""")
    height = seen["height"]

    def where(values: list[float]) -> np.ndarray:
        return height / 2 - np.array(values) / 400 * height

    top, bottom = where(told.told["hi"]), where(told.told["lo"])
    ends = np.array(seen["ends"], float)
    assert len(ends) == len(top)
    # neighbouring columns are joined, so a column may reach as far as the ends of the one before it
    top_joined, bottom_joined = top.copy(), bottom.copy()
    bottom_joined[1:] = np.maximum(bottom[1:], top[:-1])
    top_joined[1:] = np.minimum(top[1:], bottom[:-1])
    assert np.abs(ends[:, 0] - top_joined).max() < 2.5
    assert np.abs(ends[:, 1] + 1 - bottom_joined).max() < 2.5


def test_zooming_and_moving_by_wheel_drag_buttons_and_choice(looked: Looked, window: Window) -> None:
    store = looked.served.store(LONG)
    with window(looked.url) as visit:
        page = opened(visit, looked.page(LONG))
        box = page.locator(".plot").bounding_box()
        assert box is not None
        middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.move(*middle)
        at = page.evaluate("(x) => document.getElementById('viewer').viewer.plot.timeAt(x)", box["width"] / 2)
        for _ in range(9):
            page.mouse.wheel(0, -240)
        until(page, "document.getElementById('viewer').viewer.state.spanS < 1")
        whole(page)
        zoomed = state(page)
        assert zoomed["startS"] < at < zoomed["startS"] + zoomed["spanS"], "it zooms to where the pointer is"
        drawn = reading(page, 0)
        assert drawn.level == 0
        drawn.check(store, 0)
        page.mouse.down()
        page.mouse.move(middle[0] - 200, middle[1], steps=5)
        page.mouse.up()
        assert state(page)["startS"] > zoomed["startS"] + 0.1 * zoomed["spanS"]
        page.get_by_label("Length of the window").select_option("5")
        page.get_by_label("Beginning of the window").fill("42.5")
        page.get_by_label("Beginning of the window").press("Enter")
        whole(page)
        assert (state(page)["startS"], state(page)["spanS"]) == (42.5, 5)
        page.get_by_role("button", name="A window on").click()
        assert state(page)["startS"] == 47.5
        page.keyboard.down("Shift")
        page.mouse.move(box["x"] + 200, middle[1])
        page.mouse.down()
        page.mouse.move(box["x"] + 300, middle[1], steps=4)
        page.mouse.up()
        page.keyboard.up("Shift")
        assert 0.3 < state(page)["spanS"] < 1, "a span that is marked fills the plot"
        reading(whole(page), 3).check(store, 3)
        page.get_by_role("button", name="The whole recording").click()
        assert state(whole(page))["spanS"] == LONG_TEST_S


def test_everything_can_be_done_with_keys_alone(looked: Looked, window: Window) -> None:
    store = looked.served.store(LONG)
    onsets = [row.split("\t") for row in _events_of(looked)]
    with window(looked.url) as visit:
        page = opened(visit, looked.page(LONG), "#t=20&w=10")
        press = page.keyboard.press
        press("ArrowRight")
        assert state(page)["startS"] == 22
        press("Shift+ArrowLeft")
        assert state(page)["startS"] == 12
        press("i")
        assert state(page)["spanS"] == pytest.approx(6.25)
        before = state(page)["top"]
        press("PageDown")
        press("ArrowDown")
        assert state(page)["top"] > before + 1
        press("n")
        page.get_by_role("alert").get_by_text(re.compile(r" at \d+\.\d{3} s")).wait_for()
        moment = float(re.findall(r"(\d+\.\d{3}) s", page.get_by_role("alert").inner_text())[-1])
        assert any(float(onset) == pytest.approx(moment) for onset, *_ in onsets if onset != "n/a")
        scale = page.locator(".scale-shown").inner_text()
        press("+")
        until(page, f"document.querySelector('.scale-shown').textContent !== {json.dumps(scale)}")
        press("End")
        drawn = reading(whole(page), page.evaluate("document.getElementById('viewer').viewer.page[0].row"))
        drawn.check(store, page.evaluate("document.getElementById('viewer').viewer.page[0].row"))
        assert state(page)["startS"] + state(page)["spanS"] == pytest.approx(LONG_TEST_S)
        press("?")
        page.get_by_role("dialog", name="Keys and gestures").wait_for()
        press("Escape")
        page.get_by_role("dialog").wait_for(state="hidden")
        press("/")
        page.keyboard.type("E12")
        assert page.locator(".channel-list li:visible").count() == 10, "E12 and E120 to E128"
        press("Tab")
        press("Enter")  # only listed
        assert state(page)["rows"] == [11, *range(119, 128)]


def test_a_view_is_an_address(looked: Looked, window: Window) -> None:
    with window(looked.url) as visit:
        page = opened(visit, looked.page(LONG), "#t=20&w=10")
        page.locator(".density-choice").select_option("8")
        page.get_by_label("h:m:s").check()
        page.get_by_role("button", name="Smaller amplitude").click()
        until(
            page, "location.hash.includes('n=8') && location.hash.includes('clock=1') && location.hash.includes('y=')"
        )
        kept, there = state(page), page.evaluate("location.hash")
        assert state(opened(visit, looked.page(LONG), there)) == kept


def test_channels_of_several_rates_units_and_names(looked: Looked, window: Window, axe: Path) -> None:
    store = looked.served.store(MIXED)
    with window(looked.url) as visit:
        page = opened(visit, looked.page(MIXED))
        assert page.locator(".channel-name").all_inner_texts() == ["Fz", "<b>Oz</b>", "ECG"]
        reading(page, 1).check(store, 1)
        page.get_by_label("Group").select_option("eeg_50hz")
        whole(page)
        assert page.locator(".channel-list li").all_inner_texts()[1].split() == [
            "Status",
            "TRIG",
            "·",
            "µV",
            "not",
            "for",
            "inference",
        ]
        for row in (0, 1):
            drawn = reading(page, row)
            assert drawn.told["group"] == "eeg_50hz"
            drawn.check(store, row)
        page.get_by_role("button", name="RESP 1").click()
        page.get_by_role("button", name="Hide listed").click()
        assert state(page)["rows"] == [0]
        check_accessible(page, axe)


def test_labels_of_events_are_texts_and_can_be_hidden_and_gone_to(looked: Looked, window: Window) -> None:
    with window(looked.url) as visit:
        page = opened(visit, looked.page(MIXED), "#t=0&w=30")
        assert page.locator(".event-name").all_inner_texts() == [HOSTILE, "go"]
        page.locator("summary", has_text="This window in words").click()
        words = page.locator(".words")
        words.get_by_text(f"2 events: {HOSTILE} at 10.0 s, go at 20.5 s.").wait_for()
        page.get_by_role("button", name="Next go").click()
        page.get_by_role("alert").get_by_text("go at 20.500 s").wait_for()
        page.get_by_role("button", name="Next go").click()
        page.get_by_role("alert").get_by_text("go at 40.000 s").wait_for()
        page.get_by_label("go", exact=False).first.uncheck()
        page.get_by_role("button", name="The whole recording").click()
        words.get_by_text("1 event:").wait_for()
        assert "taken" not in page.title()


def test_the_electrode_map_chooses_channels(looked: Looked, window: Window) -> None:
    with window(looked.url) as visit:
        page = opened(visit, looked.page(LONG), "#t=20&w=10")
        dots = page.locator(".electrode")
        assert dots.count() == LONG_CHANNELS
        dots.nth(30).click()
        assert state(page)["rows"] == [row for row in range(LONG_CHANNELS) if row != 30]
        page.get_by_text("128 of 129 shown").wait_for()
        assert "front" in (page.locator(".channel-list label").nth(100).get_attribute("title") or "") + "front"
        box = page.locator(".electrodes svg").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] * 0.35, box["y"] + box["height"] * 0.05)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.65, box["y"] + box["height"] * 0.4, steps=4)
        page.mouse.up()
        chosen = state(page)["rows"]
        assert 3 < len(chosen) < 60
        titles = [page.locator(".channel-list label").nth(row).get_attribute("title") or "" for row in chosen]
        assert not any("back" in title for title in titles), "the upper part of the map is the front of the head"


def test_the_window_as_csv_has_the_stored_values(looked: Looked, window: Window) -> None:
    group = zarr.open_group(looked.served.store(LONG), mode="r")["eeg_250hz"]
    scale, offset = (np.asarray(group["0"].attrs[name])[3] for name in ("scale", "offset"))
    with window(looked.url) as visit:
        for view, level in (("#t=20&w=2&ch=3,4", 0), ("#t=0&w=60&ch=3,4", 2)):
            page = opened(visit, looked.page(LONG), view)
            with page.expect_download() as waited:
                page.get_by_role("button", name="Values of this window as CSV").click()
            head, *rows = csv.reader(io.StringIO(Path(waited.value.path()).read_text(encoding="utf-8")))
            values = np.array(rows, float)
            if level == 0:
                assert head == ["time_s", "E4 [µV]", "E5 [µV]"]
                first = round(values[0, 0] * 250)
                expected = group["0"][3, first : first + len(values)] * scale + offset
            else:
                assert head[:3] == ["time_s", "E4 [µV] least", "E4 [µV] greatest"]
                expected = group[f"view/{level}"][0, 3, : len(values)] * scale + offset
            np.testing.assert_allclose(values[:, 1], expected, rtol=1e-7)


def test_it_is_accessible_in_both_lights_and_on_a_phone(
    looked: Looked, window: Window, axe: Path, snap: Callable[..., None]
) -> None:
    """With ``--write-pictures`` the recording has its forty minutes, and the pictures of docs/ are taken."""
    grounds = set()
    for name, given, view in (
        ("overview-light", {}, ""),
        ("events-light", {}, "#t=18&w=20&y=EEG%3A50"),
        ("samples-light", {}, "#t=30.2&w=0.8&n=4"),
        ("dense-dark", {"color_scheme": "dark"}, "#t=20&w=20&n=0&clock=1"),
        ("phone", {"viewport": PHONE, "device_scale_factor": 2, "has_touch": True}, "#t=20&w=5&n=16"),
    ):
        with window(looked.url, **given) as visit:
            page = opened(visit, looked.page(LONG), view)
            if name.endswith(("overview-light", "dark", "phone")):
                check_accessible(page, axe)
            grounds.add(page.evaluate("document.getElementById('viewer').viewer.colours.surface"))
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name}: wider than the window"
            if name == "events-light":
                page.mouse.move(520, 420)
            snap(page, f"viewer-{name}", whole=name == "phone")
    assert len(grounds) == 2


def test_a_recording_without_a_store_says_why(looked: Looked, window: Window) -> None:
    with window(looked.url) as visit:
        answer = visit.page.goto(looked.url + looked.page(BROKEN))
        assert answer is not None
        assert answer.status == 404
        visit.page.get_by_text("The data file of this recording is truncated or corrupt.").wait_for()
        visit.page.get_by_role("link", name="What became of the recording").wait_for()
        visit.complaints.clear()  # the browser notes every 404
    told = _answer(f"{looked.url}{looked.page(BROKEN)}/opening.json")
    assert (told[0], told[1]["code"], told[1]["store"]["state"]) == (404, "store_failed", "failed")


def test_what_is_private_or_nowhere_has_no_viewer(site_url: str, looked: Looked) -> None:
    for url in (
        f"{site_url}/dashboard/datasets/xx000005/view/sub-01/eeg/sub-01_task-rest_eeg.zarr/opening.json",
        f"{looked.url}/dashboard/datasets/{DATASET}/view/sub-09/eeg/none.zarr/opening.json",
        f"{looked.url}/dashboard/datasets/{DATASET}/view/sub-01/eeg/..%2f..%2fx.zarr/opening.json",
        f"{looked.url}/dashboard/datasets/{DATASET}/view/index.json/opening.json",
        f"{looked.url}/dashboard/datasets/nothing/view/a.zarr/opening.json",
    ):
        assert _answer(url)[0] == 404, url


@pytest.mark.parametrize("width", [1280, 2560])
def test_forty_minutes_of_129_channels_cost_five_requests_at_most(
    width: int, serve: Callable[..., str], window: Window, tmp_path: Path
) -> None:
    store = tmp_path / "served" / DATASET / "zarr" / "sub-01" / "eeg" / "sub-01_eeg.zarr"
    write_long_store(store)
    url = serve(None, tmp_path / "served")
    asked = []
    with window(url, viewport={"width": width, "height": 1000}) as visit:
        visit.page.on("request", lambda request: asked.append(f"{request.method} {request.url.removeprefix(url)}"))
        page = opened(visit, f"/dashboard/datasets/{DATASET}/view/sub-01/eeg/sub-01_eeg.zarr", "#n=0")
        page.wait_for_timeout(600)  # whatever is read ahead would be asked for by now
        for row in (0, 64, 128):
            reading(page, row).check(store, row)
        about = page.locator(".channel-list li").all_inner_texts()
        assert about[7].split() == ["E8", "EEG", "·", "µV", "not", "for", "inference:", "12", "samples", "filled"]
        assert about[128].split() == ["E129", "MISC", "·", "no", "unit"]
    own = [one for one in asked if "/dashboard/static/" not in one and "about:blank" not in one]
    assert 3 <= len(own) <= 5, own  # the page itself is one of them


def test_a_store_that_is_replaced_while_it_is_looked_at_is_read_anew_and_never_mixed(
    looked: Looked, serve: Callable[..., str], window: Window, tmp_path: Path
) -> None:
    served, store, other = _copy(looked, tmp_path)
    with window(serve(None, served)) as visit:
        page = opened(visit, looked.page(MIXED), "#t=0&w=50")
        reading(page, 0).check(store, 0)
        gone = store.with_name("old")
        store.rename(gone)
        other.rename(store)
        page.locator(".plot").press("i")
        for _ in range(3):
            page.keyboard.press("i")
        page.get_by_role("alert").get_by_text(
            "The store was replaced while you looked. This is the new one."
        ).wait_for()
        whole(page)
        assert state(page)["spanS"] < 10, "it is still looked at where it was"
        drawn = reading(page, 0)
        drawn.check(store, 0)
        with pytest.raises(AssertionError):
            drawn.check(gone, 0)


def test_a_store_that_is_withdrawn_or_on_its_way_is_said_to_be(
    looked: Looked, serve: Callable[..., str], window: Window, tmp_path: Path
) -> None:
    served, store, _ = _copy(looked, tmp_path)
    with window(serve(None, served)) as visit:
        page = opened(visit, looked.page(MIXED), "#t=0&w=50")
        root = store / "zarr.json"
        kept = root.read_bytes()
        root.unlink()  # as a bucket looks while a store is replaced
        page.locator(".plot").press("i")
        for _ in range(3):
            page.keyboard.press("i")
        page.get_by_role("alert").get_by_text("was replaced").wait_for()
        root.write_bytes(kept)
        page.get_by_role("alert").get_by_text("This is the new one.").wait_for()
        reading(whole(page), 0).check(store, 0)
        root.unlink()
        page.get_by_label("Group").select_option("eeg_50hz")  # of which nothing was read before
        page.get_by_text("What was shown here is not served any more.").wait_for()
        visit.complaints.clear()  # the browser notes every 404


def _copy(looked: Looked, folder: Path) -> tuple[Path, Path, Path]:
    """A target with the store, its place, and another version of it with other values and scales."""
    served = folder / "served"
    place = served / looked.served.store(MIXED).relative_to(looked.served.target)
    other = folder / "other.zarr"
    for target in (place, other):
        shutil.copytree(looked.served.store(MIXED), target)
    changed = zarr.open_group(other, mode="r+")
    changed.attrs["publish_id"] = "another"
    for name in changed.attrs["channel_groups"]:
        group = changed[name]
        group["0"].attrs["scale"] = [2 * one for one in group["0"].attrs["scale"]]
        group.attrs["channels"] = [{**one, "scale": 2 * one["scale"]} for one in group.attrs["channels"]]
        group["0"][:] = group["0"][:] // 3
        for level in group.attrs["view_levels"]:
            group[f"view/{level}"][:] = group[f"view/{level}"][:] // 3
    return served, place, other


def _events_of(looked: Looked) -> list[str]:
    source = looked.served.target.parent / DATASET / LONG.replace("_eeg.edf", "_events.tsv")
    return source.read_text(encoding="utf-8").splitlines()[1:]


def _answer(url: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
