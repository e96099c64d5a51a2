"""What each question costs at 200 datasets with 20,000 recordings, counted and not timed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from asked_api import Api, made_database, make_api
from filled_state import fill
from sqlalchemy import event

from infra.storage.folder import FolderTarget

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
