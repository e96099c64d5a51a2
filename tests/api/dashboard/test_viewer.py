"""The viewer in a browser, over stores that were really converted: what it draws is what is served."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from looked_at import PHONE, check_accessible
from viewer_dataset import HOSTILE, LONG, LONG_CHANNELS, MIXED
from viewer_looks import DATASET, LONG_TEST_S, Looked, Window, opened, reading, state, until, whole


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
            until(page, "document.getElementById('viewer').viewer.navigator.activity !== null")
            whole(page)
            snap(page, f"viewer-{name}", whole=name == "phone")
    assert len(grounds) == 2


def _events_of(looked: Looked) -> list[str]:
    source = looked.served.target.parent / DATASET / LONG.replace("_eeg.edf", "_events.tsv")
    return source.read_text(encoding="utf-8").splitlines()[1:]
