"""The report of a real run with failures and a killed child, as a person finds it beside the served copy."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NoReturn

import httpx
import pytest
from command import ROOT, Zarrmill
from fan_out_bench import FORMAT, SUPPORT
from looked_at import launch
from playwright.sync_api import sync_playwright
from small_dataset import write_recording

from api.app import create_app
from infra.settings import Settings
from infra.storage.folder import FolderTarget

TAG = "<script>alert(1)</script>"


def write_faulty(folder: Path, subject: str, *steps: dict[str, object]) -> str:
    """A recording during whose reading the steps are taken; its path in the dataset."""
    edf = Path(write_recording(folder, subject))
    path = edf.with_suffix(".flt")
    (folder / edf).rename(folder / path)
    (folder / path.with_suffix(".fault")).write_text(json.dumps(steps))
    return str(path)


@dataclass(frozen=True)
class Story:
    """One run of a small dataset that went partly wrong."""

    zarrmill: Zarrmill
    summary: dict[str, Any]
    target: Path
    prefect_url: str
    broken: str
    killed: str

    @property
    def files(self) -> list[Path]:
        return sorted(self.target.glob("_runs/*/*"))


@pytest.fixture(scope="module")
def story(servers: Any, prefect_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    root = tmp_path_factory.mktemp("reports")
    server = servers.migrated(18)
    server.create_database("reports", template="migrated")
    home, dataset = root / "home", root / "xx004404"
    home.mkdir(mode=0o700)
    dataset.mkdir()
    (dataset / "dataset_description.json").write_text(json.dumps({"Name": f"Faulty {TAG}", "BIDSVersion": "1.10.0"}))
    for subject in ("01", "02"):
        write_recording(dataset, subject)
    broken = write_recording(dataset, "03")
    (dataset / broken).write_bytes((dataset / broken).read_bytes()[:-1000])
    killed = write_faulty(dataset, "04", {"do": "signal", "number": 9, "in_child": True})
    settings = {
        "ZARRMILL_DATABASE_URL": server.url("reports"),
        "PREFECT_API_URL": prefect_url,
        "PYTHONPATH": f"{ROOT}:{SUPPORT}:{FORMAT}",
    }
    zarrmill = Zarrmill(home, root, settings)
    summary = zarrmill.run("convert", dataset, "--json", code=None).summary
    yield Story(zarrmill, summary, root / "served", prefect_url, broken, killed)
    server.drop_database("reports")


class _Page(HTMLParser):
    """What a page would fetch or run, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.fetched += [value or "" for name, value in attrs if name in {"src", "href", "data", "action", "srcset"}]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_run_with_failures_and_a_killed_child_leaves_one_file_whose_numbers_balance(story: Story) -> None:
    (file,) = story.files
    assert (file.name, file.parent.parent) == ("report.html", story.target / "_runs")
    page = _Page(file.read_text())
    said = re.sub(r"\s+", " ", page.text)
    found = re.search(r"(\d+) discovered = (\d+) stores \+ (\d+) failures \+ (\d+) pending", said)
    assert found is not None
    discovered, stores, failures, pending = map(int, found.groups())
    assert discovered == stores + failures + pending == 4
    assert (
        (stores, failures, pending)
        == tuple(story.summary[name] for name in ("stores", "failures", "pending"))
        == (2, 1, 1)
    )
    assert "failed: corrupt_or_truncated" in said
    assert "The data file of this recording is truncated or corrupt." in said
    assert story.broken in said
    assert story.killed in said
    assert "the machine had trouble" in said, "the child that was killed"
    assert "Not tried again before" in said
    assert f"Faulty {TAG}" in said, "the dataset's name is text"


def test_it_needs_nothing_but_itself(story: Story, require: Callable[[str, str], NoReturn]) -> None:
    (file,) = story.files
    page = _Page(file.read_text())
    assert [one for one in page.fetched if not one.startswith("#")] == []
    assert page.tags & {"script", "link", "iframe", "object", "img"} == set()
    assert str(story.target.parent) not in file.read_text(), "no path of this machine"
    if shutil.which("chromium") is None:
        require("chromium", "Debian's chromium is not installed")
    asked: list[str] = []
    with sync_playwright() as playwright:
        browser = launch(playwright)
        context = browser.new_context(offline=True, color_scheme="dark")
        window = context.new_page()
        window.on("request", lambda request: asked.append(request.url))
        trouble: list[str] = []
        window.on("console", lambda message: trouble.append(message.text))
        window.on("pageerror", lambda error: trouble.append(str(error)))
        window.goto(file.as_uri())
        assert window.title() == "xx004404, run 1: completed"
        assert window.locator("svg.plot").first.is_visible()
        assert window.locator("svg.plot use.pt").count() >= 1
        browser.close()
    assert asked == [file.as_uri()]
    assert trouble == []


def test_no_reader_is_served_it(story: Story) -> None:
    from fastapi.testclient import TestClient

    (file,) = story.files
    key = file.relative_to(story.target).as_posix()
    client = TestClient(create_app(FolderTarget(story.target, port=8321), Settings(), None))
    assert client.get("/xx004404/zarr/index.json").status_code == httpx.codes.OK
    for path in (
        f"/{key}",
        f"/xx004404/zarr/../../{key}",
        f"/xx004404/zarr/..%2f..%2f{key}",
        f"/xx004404/{key}",
        "/_runs/",
        "/_runs",
    ):
        assert client.get(path).status_code == httpx.codes.NOT_FOUND, path
    assert "_runs" not in (story.target / "zarr-catalog.json").read_text()
    assert "_runs" not in (story.target / "xx004404/zarr/index.json").read_text()


def test_prefect_shows_the_numbers_and_says_where_it_is(story: Story) -> None:
    (file,) = story.files
    asked = {"artifacts": {"key": {"any_": ["zarrmill-xx004404"]}}}
    found = httpx.post(f"{story.prefect_url}/artifacts/filter", json=asked).raise_for_status().json()
    (one,) = found
    assert one["type"] == "markdown"
    assert one["flow_run_id"] is not None
    assert "**4 discovered = 2 stores + 1 failures + 1 pending**" in one["data"]
    assert "| `corrupt_or_truncated` | 1 | The data file of this recording is truncated or corrupt. |" in one["data"]
    assert f"_runs/{file.parent.name}/report.html" in one["data"]
    assert TAG not in one["data"]
    assert "sub-" not in one["data"], "no name of a recording is read as markdown"


def test_it_is_made_again_and_a_run_with_nothing_to_do_leaves_none(story: Story, tmp_path: Path) -> None:
    elsewhere = replace(story.zarrmill, cwd=story.target.parent)
    made = tmp_path / "again.html"
    told = elsewhere.run("report", "xx004404", "--run", "1", "-o", made, "--json").summary
    assert (told["run_number"], told["state"], told["size_bytes"]) == (1, "completed", made.stat().st_size)
    assert told["left"]["trouble"] is None
    assert "failed: corrupt_or_truncated" in made.read_text()
    assert elsewhere.run("report", "xx004404", "--run", "9", code=2).stderr.startswith(
        "zarrmill: xx004404 has no run 9"
    )
    before = story.files
    elsewhere.run("convert", story.target.parent / "xx004404", code=None)
    assert story.files == before
