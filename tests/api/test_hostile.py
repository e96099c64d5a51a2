"""What a hostile client sends: made-up requests from the OpenAPI document, paths, methods and bodies; and many readers at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from filled_state import Kept, put
from gateway import measure
from hypothesis import HealthCheck, Phase, given, settings
from loopback import ask, running
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance
from sqlalchemy import Engine

from api.app import create_app
from infra.database import engine as make_engine
from infra.settings import Settings
from infra.storage.folder import FolderTarget

ADMIN, WEBHOOK = "token-of-an-operator-0123456789", "token-of-a-webhook-0123456789"


@pytest.fixture(scope="module")
def state(servers: Any) -> Iterator[Engine]:
    server = servers.migrated(18)
    server.create_database("api_hostile", template="migrated")
    made = make_engine(server.url("api_hostile"))
    try:
        yield made
    finally:
        made.dispose()
        server.drop_database("api_hostile")


@pytest.fixture(scope="module")
def app(state: Engine, tmp_path_factory: pytest.TempPathFactory) -> Any:
    target = FolderTarget(tmp_path_factory.mktemp("hostile") / "served", port=8321)
    for number in (1, 2):
        target.put(f"xx{number:06d}/zarr/index.json", b'{"secret":1}', content_type="application/json")
        target.put(f"xx{number:06d}/zarr/a.zarr/zarr.json", b"{}", content_type="application/json")
    (target.root.parent / "secret.json").write_text('{"secret":1}')
    with state.begin() as c:
        put(c, Kept(1, status="ready", counts=(1, 1, 0), recordings=("served", "not_continuous")), target=target.url)
        put(
            c,
            Kept(2, visibility="private", status="ready", counts=(1, 0, 0), recordings=("served",)),
            target=target.url,
        )
    given = Settings(admin_tokens=f"ada:operate:{ADMIN}", webhook_token=WEBHOOK)
    return create_app(target, given, state)


def test_no_request_that_the_document_allows_is_an_error_of_ours(app: Any) -> None:
    document = schemathesis.openapi.from_asgi("/openapi.json", app)
    headers = {"Authorization": f"Bearer {ADMIN}", "X-Webhook-Token": WEBHOOK}
    checks = [not_a_server_error, response_schema_conformance, content_type_conformance]
    operations = [found.ok() for found in document.get_all_operations()]
    assert len(operations) > 20
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query):
                continue

            @settings(max_examples=5, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck))
            @given(case=operation.as_strategy(generation_mode=mode))
            def answered(case: Any) -> None:
                case.call_and_validate(headers=headers, checks=checks)

            answered()


def test_the_document_shows_an_example_of_every_body(app: Any) -> None:
    document = app.openapi()
    shown = json.dumps(document)
    for word in ("zarr_coverage", "corrupt_or_truncated", "request_id", "nm000103"):
        assert word in shown
    assert {"/datasets", "/webhooks/zarr-ready", "/admin/requeue", "/{dataset_id}/zarr/{path}"} <= set(
        document["paths"]
    )


@pytest.fixture(scope="module")
def port(app: Any) -> Iterator[int]:
    with running(app) as port:
        yield port


UP = ("..", "%2e%2e", "%2E%2E", ".%2e", "%252e%252e")
HOSTILE = [
    *(f"/xx000001/zarr/{up}/{up}/{up}/secret.json" for up in UP),
    *(f"/xx000001/zarr/{up}/{up}/xx000002/zarr/index.json" for up in UP),
    *(f"/datasets/xx000001/recordings/{up}/{up}/xx000002/recordings" for up in UP),
    "/xx000001/zarr/..%2f..%2fxx000002%2fzarr%2findex.json",
    "/xx000001/zarr/a.zarr%2fzarr.json",
    "/xx000001/zarr/a.zarr%5czarr.json",
    "/xx000001/zarr/index.json%00",
    "/xx000001/zarr/%00",
    "/xx000001/zarr/index.json%0d%0aX-Evil:1",
    "/xx000001/zarr//index.json",
    "//xx000001/zarr/index.json",
    "/xx000001//zarr/index.json",
    "/xx000001/zarr//etc/passwd",
    "/xx000001/zarr/%2fetc%2fpasswd",
    "/xx000001/zarr/.zarrmill/locks",
    "/xx000001/zarr/a.zarr/",
    "/xx000001/zarr/",
    "/xx000001/zarr",
    "/xx000001",
    "/xx000002/zarr/index.json",
    "/xx000002/zarr/a.zarr/zarr.json",
    "/xx000002/zarr/a.zarr/nothing",
    "/datasets/xx000002",
    "/datasets/xx000002/recordings",
    "/datasets/xx000002/recordings/sub-00/eeg/sub-00_eeg.edf",
    "/datasets/xx000002/recipe?recording=sub-00/eeg/sub-00_eeg.edf",
    "/datasets/xx000001/recordings/%00",
    "/datasets/xx000001'%20OR%20'1'='1",
    "/datasets/xx000001/recordings?after=%00",
    "/datasets?search=%00",
    "/datasets?sort=dataset_id;DROP%20TABLE%20datasets",
    "/datasets?limit=99999999999999999999999999x",
    "/schemas/..%2f..%2fapi%2fapp.py",
    "/schemas/../../secret.json",
    "/admin/../datasets/xx000002",
    "/" + "a/" * 3000,
]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_no_path_leads_to_what_is_not_served(port: int, method: str) -> None:
    for path in HOSTILE:
        answer = ask(port, path, method=method)
        assert answer.status in (400, 404, 405), (path, answer.status)
        assert b"secret" not in answer.body, path
        assert b"root:" not in answer.body, path
        assert "x-evil" not in answer.headers, path


def test_large_numbers_and_odd_queries_are_answered(port: int) -> None:
    for query in (
        "offset=9223372036854775807",
        "offset=99999999999999999999999",
        "limit=-99999999999999999999",
        "search=%ff%fe",
    ):
        answer = ask(port, f"/datasets?{query}")
        assert answer.status == 200, (query, answer.body)


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH", "TRACE", "CONNECT", "PROPFIND"])
def test_nothing_is_written_by_any_method(port: int, method: str) -> None:
    for path in ("/xx000001/zarr/index.json", "/datasets", "/datasets/xx000001", "/catalog.json", "/metrics"):
        assert ask(port, path, method=method).status in (400, 404, 405), path
    assert ask(port, "/xx000001/zarr/index.json").body == b'{"secret":1}'


def test_many_readers_at_once_get_exactly_what_is_stored() -> None:
    found = measure(3.0, readers=20)
    assert (found.errors, found.differing) == (0, 0)
    assert found.requests > 0
