"""Questions about datasets and recordings: parts, limits, what is told and what is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from asked_api import CODES, Api, made_database, make_api
from filled_state import Kept, Reported, fill
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from api.app import create_app
from infra.settings import Settings
from infra.storage.folder import FolderTarget


@pytest.fixture(scope="module")
def state(servers: Any) -> Iterator[Engine]:
    """A database that tests share, each at a target of its own."""
    with made_database(servers) as made:
        yield made


@pytest.fixture
def api(state: Engine, tmp_path: Path) -> Api:
    return make_api(state, tmp_path / uuid4().hex)


def test_a_page_is_a_part_of_the_whole_and_limits_are_kept(api: Api) -> None:
    api.put(*(Kept(number, status="ready", counts=(number, 0, 0), name=f"N{9 - number}") for number in range(1, 6)))
    whole = api.ids()
    assert [api.ids(limit=2, offset=offset) for offset in (0, 2, 4, 6)] == [whole[:2], whole[2:4], whole[4:], []]
    beyond = api.get("/datasets", offset=6, limit=2)
    assert (beyond["count"], beyond["total_count"], beyond["limit"], beyond["offset"]) == (0, 5, 2, 6)
    assert [api.get("/datasets", limit=asked)["limit"] for asked in (0, -3, 1, 200, 201, 10**9)] == [
        1,
        1,
        1,
        200,
        200,
        200,
    ]
    assert api.get("/datasets")["limit"] == 50
    assert api.get("/datasets", offset=-5)["offset"] == 0
    assert api.ids(sort="newest") == whole[::-1]
    assert api.ids(sort="oldest") == whole
    assert api.ids(sort="name") == whole[::-1]
    assert api.ids(sort="stores") == whole[::-1]


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "many"},
        {"offset": "1.5"},
        {"sort": "colour"},
        {"coverage": "half"},
        {"zarr_status": "converting"},
        {"code": "tired"},
        {"search": "a\x00b"},
        {"search": "x" * 201},
    ],
)
def test_a_parameter_that_cannot_be_understood_is_told(api: Api, query: dict[str, str]) -> None:
    told = api.get("/datasets", 400, **query)
    assert set(told) == {"code", "message", "detail", "request_id", "error"}
    assert told["message"] == told["error"]


def test_one_dataset_says_how_it_stands(api: Api) -> None:
    api.put(
        Kept(
            1, status="ready", counts=(3, 1, 0), name="One", modalities=("eeg", "meg"), verdicts=("failed", "verified")
        ),
        Kept(2, visibility="private", status="ready", counts=(1, 0, 0), recordings=("served",)),
        Kept(3, active=False),
        Kept(4, is_ours=False, reported=Reported("ready", stores=2, errors=1)),
    )
    one = api.get("/datasets/xx000001")["dataset"]
    assert (one["zarr_status"], one["zarr_store_count"], one["zarr_coverage"]) == ("ready", 3, 0.75)
    assert (one["zarr_verify_status"], one["modalities"], one["recording_count"]) == ("verified", "eeg,meg", 4)
    assert one["zarr_index_url"] == "http://127.0.0.1:8321/xx000001/zarr/index.json"
    theirs = api.get("/datasets/xx000004")["dataset"]
    assert (theirs["zarr_status"], theirs["zarr_store_count"], theirs["zarr_errors"]) == ("ready", 2, 1)
    for hidden in ("xx000002", "xx000003", "xx000009"):
        for path in ("", "/recordings", "/recordings/sub-00/eeg/sub-00_eeg.edf"):
            assert api.get(f"/datasets/{hidden}{path}", 404)["code"] == "not_found"
    assert api.get("/datasets/xx0000001", 400)["code"] == "invalid_id"
    assert api.get("/datasets/xx000004/recordings")["recordings"] == []


def test_recordings_come_by_path_a_part_at_a_time(api: Api) -> None:
    states = ("served", "pending", *CODES, f"served+{CODES[0]}", CODES[0])
    api.put(Kept(1, recordings=states))
    where = "/datasets/xx000001/recordings"
    whole = api.get(where)["recordings"]
    assert [row["state"] for row in whole] == ["served", "pending", "failed", "failed", "served", "failed"]
    assert [row["code"] for row in whole] == [None, None, *CODES, CODES[0], CODES[0]]
    pages, after = [], ""
    while after is not None:
        page = api.get(where, limit=2, after=after)
        pages.append([row["path"] for row in page["recordings"]])
        after = page["next"]
    assert [len(page) for page in pages] == [2, 2, 2]
    assert [path for page in pages for path in page] == [row["path"] for row in whole]
    for state, count in (("served", 2), ("pending", 1), ("failed", 3), ("converting", 0)):
        assert api.get(where, state=state)["count"] == count
    assert [row["path"][4:6] for row in api.get(where, code=CODES[0])["recordings"]] == ["02", "05"]
    assert api.get(where, state="tired", status=400)["code"] == "bad_request"
    served = whole[0]
    assert served["url"] == "http://127.0.0.1:8321/xx000001/zarr/sub-00/eeg/sub-00_eeg.zarr/"


def test_a_recording_is_shown_with_its_attempts_and_without_secrets_or_machines(api: Api) -> None:
    with api.engine.begin() as c:
        fill(c, datasets=1, each=10, target=api.target.url)
        error = "OSError: /home/ada/scratch/x is gone; password=hunter2"
        c.execute(text("UPDATE attempts SET error = :error, traceback = 'File \"/home/ada/x.py\"'"), {"error": error})
    told = api.client.get("/datasets/xx000001/recordings/sub-00010_eeg.edf")
    assert not re.search("ada|hunter2|w/1|File", told.text)
    body = told.json()
    assert (body["recording"]["code"], [one["outcome"] for one in body["attempts"]]) == ("not_continuous", ["failed"])
    assert api.get("/datasets/xx000001/recordings/sub-00010_eeg", 404)["message"] == "Recording not found"


def test_without_a_database_objects_are_served_and_questions_are_503(tmp_path: Path) -> None:
    target = FolderTarget(tmp_path / "served", port=8321)
    target.put("xx000001/zarr/index.json", b"{}", content_type="application/json")
    client = TestClient(create_app(target, Settings()))
    assert client.get("/xx000001/zarr/index.json").status_code == 200
    assert client.get("/readyz").json() == {"status": "ready", "database": "none", "target": "ok"}
    for path in ("/datasets", "/datasets/xx000001", "/datasets/xx000001/recordings"):
        told = client.get(path)
        assert (told.status_code, told.json()["code"]) == (503, "no_database")
        assert "no database" in told.json()["message"]
