"""The viewer of a store that is not there, is private, costs requests, is replaced or is withdrawn."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zarr
from looked_store import write_long_store
from viewer_dataset import BROKEN, MIXED
from viewer_looks import DATASET, Looked, Window, opened, reading, state, whole


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


def test_a_store_that_is_withdrawn_while_nothing_is_read_of_it_is_noticed_and_not_drawn_any_more(
    looked: Looked, serve: Callable[..., str], window: Window, tmp_path: Path
) -> None:
    served, store, _ = _copy(looked, tmp_path)
    with window(serve(None, served)) as visit:
        page = opened(visit, looked.page(MIXED), "#t=0&w=50")
        shutil.rmtree(store)
        page.evaluate(
            "document.dispatchEvent(new Event('visibilitychange'))"
        )  # as when somebody comes back to the page
        alert = page.get_by_role("alert")
        alert.get_by_text("What was shown here is not served any more. There is no such store").wait_for()
        before = state(page)
        for key in ("i", "ArrowRight", "a"):
            page.locator(".plot").press(key)
        page.get_by_label("Group").select_option("eeg_50hz")
        assert state(page) == before
        assert page.locator(".plot.is-stale").count() == 1
        assert alert.get_by_text("not served any more").count() == 1
        alert.get_by_role("button", name="Try again").click()
        alert.get_by_text("There is no such store").wait_for()
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


def _answer(url: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
