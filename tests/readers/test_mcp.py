"""The MCP server as an agent meets it: the SDK's own client, over stdin and stdout and over HTTP, against real processes."""

from __future__ import annotations

import base64
import io
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from demo_server import BROKEN, DATASET, GROUP, LABELS, ODDBALL, ODDBALL_S, REST, REST_S, Demo, free_port, wait_for
from mcp import Client, StdioServerParameters, stdio_client
from open_store import served
from PIL import Image

from contract.recipe import Envelope, Recipe

PROGRAM = str(Path(sys.executable).with_name("zarrmill"))
HERE: dict[str, Any] = {"dataset_id": DATASET}
QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "found": ("search_datasets", {"text": "READABLE", "modality": "eeg", "has_zarr": True}),
    "not found": ("search_datasets", {"has_zarr_verified": True}),
    "dataset": ("describe_dataset", HERE),
    "recordings": ("list_recordings", {**HERE, "limit": 1}),
    "long recordings": ("list_recordings", {**HERE, "min_duration_s": 100}),
    "events": ("get_events", {**HERE, "recording": ODDBALL}),
    "few events": ("get_events", {**HERE, "recording": REST, "limit": 5, "offset": 2}),
    "picture": ("render_overview", {**HERE, "recording": REST, "width": 640}),
    "recipe": ("read_window", {**HERE, "recording": REST, "start": 10, "stop": 14, "channels": ["O1"]}),
    "taste": (
        "read_window",
        {**HERE, "recording": ODDBALL, "start": 1, "stop": 2, "channels": ["O1", "0"], "taste": True},
    ),
    "view": ("read_window", {**HERE, "recording": REST, "level": 3, "channels": ["Cz"], "stop": 60, "taste": True}),
    "too much": ("read_window", {**HERE, "recording": REST, "taste": True}),
    "failed": ("read_window", {**HERE, "recording": BROKEN}),
    "no dataset": ("list_recordings", {"dataset_id": "xx000009"}),
    "no id": ("describe_dataset", {"dataset_id": "../../etc"}),
    "no channel": ("read_window", {**HERE, "recording": REST, "channels": ["Pz"]}),
    "limit": ("search_datasets", {"limit": 101}),
    "wide": ("render_overview", {**HERE, "recording": REST, "width": 4001}),
}


@dataclass(frozen=True)
class Told:
    """The answers to every question, by its name, and the tools."""

    tools: dict[str, Any]
    answers: dict[str, Any]
    to_a_stranger: int | None = None
    """Status of a request that names another host than this machine; None where there is no HTTP."""

    def of(self, name: str) -> dict[str, Any]:
        """The content of an answer that is no error."""
        answer = self.answers[name]
        assert not answer.is_error, answer.content
        content: dict[str, Any] = answer.structured_content
        return content

    def error(self, name: str) -> str:
        """The sentence of an answer that is an error."""
        answer = self.answers[name]
        assert answer.is_error, answer.structured_content
        return str(answer.content[0].text)


async def asked(server: Any) -> Told:
    async with Client(server) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        answers = {name: await client.call_tool(tool, given) for name, (tool, given) in QUESTIONS.items()}
    return Told(tools, answers)


@contextmanager
def over_http(demo: Demo) -> Iterator[str]:
    """A server that knows nothing but the URL of the archive; its own address."""
    port = free_port()
    process = demo.zarrmill.start("mcp", "--url", demo.url, "--http", "--port", str(port))
    try:
        wait_for(f"http://127.0.0.1:{port}/mcp", lambda: process.poll() is None)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture(scope="module", params=["stdio, at the target and its state", "http, at the URL of an archive"])
def told(request: pytest.FixtureRequest, demo: Demo) -> Told:
    if request.param.startswith("stdio"):
        command = StdioServerParameters(
            command=PROGRAM,
            args=["mcp", "--to", str(demo.served.target)],
            env=demo.zarrmill.environment(),
        )
        return anyio.run(asked, stdio_client(command))
    with over_http(demo) as url:
        return replace(anyio.run(asked, url), to_a_stranger=status_for(url, host="stranger.example.org"))


def status_for(url: str, *, host: str) -> int:
    """The answer to a page that made its own name lead to this machine."""
    headers = {"Host": host, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=body, headers=headers), timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_page_that_borrows_this_machines_address_is_not_answered(told: Told) -> None:
    assert told.to_a_stranger in (None, 421)


def test_there_are_six_tools_and_none_of_them_writes(told: Told) -> None:
    names = ["search_datasets", "describe_dataset", "list_recordings", "get_events", "render_overview", "read_window"]
    assert list(told.tools) == names
    assert all(tool.annotations.read_only_hint for tool in told.tools.values())
    for name, parameter, most in (
        ("search_datasets", "limit", 100),
        ("list_recordings", "limit", 500),
        ("get_events", "limit", 5000),
        ("render_overview", "width", 4000),
    ):
        assert told.tools[name].input_schema["properties"][parameter]["maximum"] == most


def test_datasets_are_found_and_described_with_what_to_ask_next(told: Told) -> None:
    found = told.of("found")
    assert ([row["dataset_id"] for row in found["results"]], found["count"], found["limit"]) == ([DATASET], 1, 20)
    assert (told.of("not found")["results"], told.of("not found")["truncated"]) == ([], False)
    row = told.of("dataset")
    assert (row["zarr_status"], row["zarr_store_count"], row["zarr_verify_status"]) == ("ready", 2, None)
    assert row["cost_hint"]["next_cheapest_tool"] == "list_recordings"


def test_recordings_are_listed_with_the_counts_that_add_up(told: Told, demo: Demo) -> None:
    listed = told.of("recordings")
    assert [one["recording"] for one in listed["recordings"]] == [ODDBALL]
    assert (listed["count"], listed["total_count"], listed["index_format_version"]) == (1, 2, 3)
    counts = (listed["discovered_count"], listed["store_count"], listed["failure_count"], listed["pending_count"])
    assert counts == (3, 2, 1, 0)
    assert listed["not_served"] == [{"recording": BROKEN, "state": "failed", "code": "corrupt_or_truncated"}]
    (long,) = told.of("long recordings")["recordings"]
    assert (long["recording"], long["duration_s"]) == (REST, REST_S)
    assert long["groups"][0]["name"] == GROUP


def test_every_answer_about_data_says_where_it_comes_from(told: Told, demo: Demo) -> None:
    index = demo.served.index
    for name in ("recordings", "events", "picture", "recipe", "taste"):
        provenance = told.of(name)["provenance"]
        assert set(provenance) == set(Envelope.model_fields) - {"sss"}, "a signal that is not derived has no sss"
        assert (provenance["dataset_id"], provenance["license"]) == (DATASET, "CC0")
        assert (provenance["source_commit"], provenance["lossy"]) == (index["source_commit"], True)
    assert told.of("recipe")["provenance"]["source_rate_hz"] == 500.0


def test_events_come_from_events_parquet_as_published(told: Told, demo: Demo) -> None:
    answer = told.of("events")
    assert (answer["source"], answer["estimated"], answer["truncated"]) == ("events_parquet", False, False)
    onsets = [float(onset) for onset in range(2, ODDBALL_S, 3)]
    assert [row["onset_s"] for row in answer["rows"]] == [*onsets, None]
    assert [row["sample_index"] for row in answer["rows"]] == [int(onset * 250) for onset in onsets] + [None]
    few = told.of("few events")
    assert ([row["sample_index"] for row in few["rows"]], few["truncated"]) == ([2000, 2750, 3500, 4250, 5000], True)


def test_a_picture_is_a_png_of_the_asked_width_with_something_on_it(told: Told) -> None:
    content = told.of("picture")
    assert (content["channels"], content["level"], content["stop_s"]) == (list(LABELS), 3, REST_S)
    shown = told.answers["picture"].content[0]
    picture = Image.open(io.BytesIO(base64.b64decode(shown.data)))
    assert (shown.mime_type, picture.format, picture.width) == ("image/png", "PNG", 640)
    colours = picture.convert("RGB").getcolors(1 << 24)
    assert colours is not None
    assert len(colours) > 50


def test_a_window_is_a_recipe_and_data_is_only_a_taste(told: Told, demo: Demo) -> None:
    answer = told.of("recipe")
    assert answer["data"] is None
    recipe = Recipe.model_validate({**answer["recipe"], "provenance": answer["provenance"]}, strict=False)
    assert (recipe.sample_slice.start, recipe.sample_slice.end, recipe.channels[0].label) == (2500, 3500, "O1")
    assert recipe.store_url.startswith(demo.url)
    data = told.of("taste")["data"]
    signal = served(demo.served.store(ODDBALL), GROUP)
    assert (data["labels"], data["rate_hz"], data["start_s"]) == (["O1", "Fp1"], 250.0, 1.0)
    np.testing.assert_allclose(np.array(data["values"]), signal.physical[[2, 0], 250:500], rtol=1e-5, atol=1e-4)
    view = told.of("view")["data"]
    assert np.array(view["values"]).shape == (2, 1, -(-60 * 250 // 64))
    assert view["axes"][0] == "least, greatest"


def test_what_cannot_be_answered_is_an_error_that_says_why_and_what_would_do(told: Told) -> None:
    assert "a taste has at most 60" in told.error("too much")
    assert "corrupt_or_truncated" in told.error("failed")
    assert "zarr_status is null" in told.error("no dataset")
    assert "two lower-case letters" in told.error("no id")
    assert "Fp1, Cz, O1, STIM" in told.error("no channel")
    assert "100" in told.error("limit")
    assert "4000" in told.error("wide")
    for name, answer in told.answers.items():
        if answer.is_error:
            assert "Traceback" not in told.error(name)
            assert "/tmp" not in told.error(name)
