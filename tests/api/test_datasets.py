"""The questions over HTTP: filters against a computation over the same random states, pages, plans at size, statements."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from filled_state import Kept, Reported, fill, put
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event, text
from starlette.testclient import TestClient

from api.app import create_app
from db.catalog import catalog_rows
from infra.database import engine as make_engine
from infra.settings import Settings
from infra.storage.folder import FolderTarget

CODES = ("not_continuous", "corrupt_or_truncated")
WORDS = ("eeg", "meg", "ieeg")


@contextmanager
def made_database(servers: Any) -> Iterator[Engine]:
    """An engine on a database of its own."""
    server = servers.migrated(18)
    name = f"api_{uuid4().hex[:12]}"
    server.create_database(name, template="migrated")
    made = make_engine(server.url(name), pool_size=4)
    try:
        yield made
    finally:
        made.dispose()
        server.drop_database(name)


@pytest.fixture(scope="module")
def state(servers: Any) -> Iterator[Engine]:
    """A database that tests share, each at a target of its own."""
    with made_database(servers) as made:
        yield made


@pytest.fixture(scope="module")
def filtered(servers: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A database for the filters alone, so that it can be emptied."""
    with made_database(servers) as made:
        yield make_api(made, tmp_path_factory.mktemp("filtered"))


@dataclass
class Api:
    """The application over a target of its own, in a database that others use too."""

    client: TestClient
    engine: Engine
    target: FolderTarget

    def put(self, *kept: Kept) -> None:
        with self.engine.begin() as c:
            for one in kept:
                put(c, one, target=self.target.url)

    def get(self, path: str, status: int = 200, **query: Any) -> Any:
        answer = self.client.get(path, params=query)
        assert answer.status_code == status, answer.text
        return answer.json()

    def ids(self, **query: Any) -> list[str]:
        return [row["dataset_id"] for row in self.get("/datasets", **query)["datasets"]]


@pytest.fixture
def api(state: Engine, tmp_path: Path) -> Api:
    return make_api(state, tmp_path / uuid4().hex)


def make_api(engine: Engine, folder: Path) -> Api:
    target = FolderTarget(folder, port=8321)
    return Api(TestClient(create_app(target, Settings(), engine)), engine, target)


statuses = st.sampled_from([None, "ready", "failed"])
small = st.integers(0, 2)


@st.composite
def kept(draw: st.DrawFn, number: int) -> Kept:
    """A dataset in a state that can be."""
    status = draw(statuses)
    counts = draw(st.tuples(small, small, small)) if status == "ready" or draw(st.booleans()) else None
    if status is None:
        counts = None
    reported = draw(
        st.none()
        | st.builds(
            Reported,
            status=st.sampled_from(["pending", "ready", "failed"]),
            stores=st.none() | small,
            errors=small,
            pending=st.none() | small,
        )
    )
    return Kept(
        number=number,
        is_ours=reported is None or draw(st.booleans()),
        name=draw(st.none() | st.sampled_from(["Rest", "The REST of it", "Oddball %_"])),
        modalities=tuple(sorted(draw(st.sets(st.sampled_from(WORDS))))),
        tasks=tuple(sorted(draw(st.sets(st.sampled_from(["rest", "oddball"]))))),
        visibility=draw(st.sampled_from(["public", "public", "private"])),
        active=draw(st.sampled_from([True, True, False])),
        status=status,
        converting=draw(st.booleans()),
        counts=counts,
        verdicts=tuple(
            draw(
                st.lists(
                    st.sampled_from(
                        ["verified", "verified", "failed", "unverifiable", "verified stale", "verified partial"]
                    ),
                    max_size=2,
                )
            )
        ),
        reported=reported,
        recordings=tuple(
            draw(
                st.lists(
                    st.sampled_from(["served", "pending", *CODES, *(f"served+{code}" for code in CODES)]), max_size=3
                )
            )
        ),
    )


@dataclass(frozen=True)
class Seen:
    """A dataset as a person would work it out from what was put there."""

    kept: Kept
    status: str | None
    stores: int
    missing: int
    verified: bool

    @property
    def has_zarr(self) -> bool:
        return self.status == "ready" and self.stores > 0


def seen(one: Kept) -> Seen | None:
    if not one.is_ours:
        assert one.reported is not None
        return Seen(one, one.reported.status, one.reported.stores or 0, missing(one.reported), False)
    if one.visibility != "public" or not one.active:
        return None
    verified = one.verdicts[-1:] == ("verified",)
    theirs = one.reported
    is_served = theirs is not None and theirs.status == "ready" and bool(theirs.stores)
    if theirs is not None and (one.status is None or (is_served and one.counts is None)):
        return Seen(one, theirs.status, theirs.stores or 0, missing(theirs), verified)
    status = one.status or ("pending" if one.converting else None)
    stores, failures, pending = one.counts or (0, 0, 0)
    return Seen(one, status, stores, failures + pending, verified)


def missing(reported: Reported) -> int:
    if reported.status == "pending":
        return 0
    return reported.errors + (reported.pending or 0)


def names(one: Kept, name: str) -> tuple[str, ...]:
    return getattr(one, name) if one.is_ours else ()


def everything(_one: Seen) -> bool:
    return True


FILTERS: dict[tuple[str, str], Callable[[Seen], bool]] = {
    ("has_zarr", "1"): lambda one: one.has_zarr,
    ("has_zarr", "true"): lambda one: one.has_zarr,
    ("has_zarr", "0"): everything,
    ("has_zarr", "yes"): everything,
    ("has_zarr_verified", "1"): lambda one: one.has_zarr and one.verified,
    ("has_zarr_verified", "false"): everything,
    ("zarr_status", "none"): lambda one: one.status is None,
    ("zarr_status", "pending"): lambda one: one.status == "pending",
    ("zarr_status", "ready"): lambda one: one.status == "ready",
    ("zarr_status", "failed"): lambda one: one.status == "failed",
    ("coverage", "complete"): lambda one: one.stores > 0 and one.missing == 0,
    ("coverage", "partial"): lambda one: one.stores > 0 and one.missing > 0,
    ("coverage", "none"): lambda one: one.stores == 0,
    ("modality", "EEG"): lambda one: any("eeg" in word for word in names(one.kept, "modalities")),
    ("modality", "ieeg"): lambda one: "ieeg" in names(one.kept, "modalities"),
    ("task", "odd"): lambda one: "oddball" in names(one.kept, "tasks"),
    ("search", "rest"): lambda one: one.kept.is_ours and "rest" in (one.kept.name or "").lower(),
    ("search", "%_"): lambda one: one.kept.is_ours and "%_" in (one.kept.name or ""),
    ("search", "XX000002"): lambda one: one.kept.number == 2,
    ("code", CODES[0]): lambda one: one.kept.is_ours and CODES[0] in one.kept.recordings,
    ("code", CODES[1]): lambda one: one.kept.is_ours and CODES[1] in one.kept.recordings,
}


# without Phase.explain, which traces every line of the server
@settings(max_examples=20, phases=(Phase.generate, Phase.shrink))
@given(data=st.data())
def test_filters_agree_with_a_computation_over_the_same_states(filtered: Api, data: st.DataObject) -> None:
    api = filtered
    put_there = [data.draw(kept(number)) for number in range(1, data.draw(st.integers(1, 9)) + 1)]
    with api.engine.begin() as c:
        c.execute(text("DELETE FROM received"))
        c.execute(text("DELETE FROM datasets"))
    api.put(*put_there)
    visible = [one for one in map(seen, put_there) if one is not None]
    assert api.ids() == [one.kept.dataset_id for one in visible]
    for (name, value), fits in FILTERS.items():
        expected = [one.kept.dataset_id for one in visible if fits(one)]
        answer = api.get("/datasets", **{name: value, "limit": 3})
        assert [row["dataset_id"] for row in answer["datasets"]] == expected[:3], (name, value)
        assert (answer["total_count"], answer["count"]) == (len(expected), len(expected[:3])), (name, value)
    (first, wanted), (second, also) = data.draw(
        st.lists(st.sampled_from(list(FILTERS.items())), min_size=2, max_size=2)
    )
    if first[0] != second[0]:
        both = [one.kept.dataset_id for one in visible if wanted(one) and also(one)]
        assert api.ids(**dict([first, second])) == both
    with api.engine.connect() as c:
        catalog = [row.dataset_id for row in catalog_rows(c, target=api.target.url)]
    assert catalog == api.ids(has_zarr="1"), "the catalog equals the filter"


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


# At size: what each question costs, counted and not timed.

QUESTIONS = (
    "/datasets",
    "/datasets?has_zarr=1&has_zarr_verified=1",
    "/datasets?code=not_continuous&search=data&modality=eeg&coverage=partial&sort=newest",
    "/datasets/xx000007",
    "/datasets/xx000007/recordings",
    "/datasets/xx000007/recordings?state=failed&limit=200",
    "/datasets/xx000007/recordings?state=pending&after=sub-00050",
    "/datasets/xx000007/recordings?code=not_continuous",
    "/datasets/xx000007/recordings/sub-00010_eeg.edf",
    "/xx000007/zarr/sub-00010_eeg.zarr/zarr.json",
    "/metrics",
)


@pytest.fixture(scope="module")
def large(servers: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """200 datasets with 20,000 recordings."""
    with made_database(servers) as made:
        folder = tmp_path_factory.mktemp("large")
        with made.begin() as c:
            fill(c, datasets=200, each=100, target=FolderTarget(folder, port=8321).url)
        yield make_api(made, folder)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_one_or_two_statements_that_read_no_table_of_recordings_through(
    large: Api, question: str
) -> None:
    asked: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        asked.append((statement, parameters))

    event.listen(large.engine, "before_cursor_execute", note)
    try:
        answer = large.client.get(question)
    finally:
        event.remove(large.engine, "before_cursor_execute", note)
    assert answer.status_code == (404 if "/zarr/" in question else 200), answer.text
    assert 1 <= len(asked) <= 2, [statement for statement, _ in asked]
    with large.engine.connect() as c:
        for statement, parameters in asked:
            plan = c.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).scalar_one()
            assert not scans(plan[0]["Plan"]) & {"recordings", "attempts", "stores"}, json.dumps(plan)


def scans(node: dict[str, Any]) -> set[str]:
    """Tables that a plan reads through."""
    own = {node["Relation Name"]} if node["Node Type"] in ("Seq Scan", "Parallel Seq Scan") else set()
    return own.union(*(scans(inner) for inner in node.get("Plans", [])))


def test_a_table_that_is_read_through_would_be_found(large: Api) -> None:
    with large.engine.connect() as c:
        plan = c.exec_driver_sql("EXPLAIN (FORMAT JSON) SELECT count(DISTINCT size_bytes) FROM recordings").scalar_one()
    assert scans(plan[0]["Plan"]) == {"recordings"}


def test_a_store_that_is_not_there_says_why(large: Api) -> None:
    failed = large.get("/xx000007/zarr/sub-00010_eeg.zarr/eeg_250hz/0/zarr.json", 404)
    assert (failed["code"], failed["store"]["code"]) == ("store_failed", "not_continuous")
    assert failed["message"] == failed["store"]["reason"]
    pending = large.get("/xx000007/zarr/sub-00011_eeg.zarr", 404)
    assert (pending["code"], pending["store"]["pending_reason"]) == ("store_pending", "not_attempted")
    for served_or_unknown in (
        "sub-00012_eeg.zarr/zarr.json",
        "sub-99999_eeg.zarr/zarr.json",
        "index.json",
        "sub-00010_eeg.edf",
    ):
        assert "store" not in large.get(f"/xx000007/zarr/{served_or_unknown}", 404)


def test_measurements_are_in_the_format_of_prometheus(large: Api) -> None:
    large.get("/datasets")
    page = large.client.get("/metrics").text
    assert 'zarrmill_datasets{status="ready"} 200.0' in page
    assert 'zarrmill_recordings{list="failures"} 2000.0' in page
    assert re.search(r'zarrmill_http_requests_total\{method="GET",route="/datasets",status="200"\} \d', page)
