"""The codes of errors over HTTP: one table, what is documented of it, and what the app answers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from product import ROOT
from starlette.testclient import TestClient

from api.app import create_app
from api.codes import STATUSES, ErrorCode, code_of_status
from infra.settings import Settings
from infra.storage.folder import FolderTarget

TOKEN = "token-of-an-operator-0123456789"


def documented() -> set[tuple[int, str]]:
    """Pairs of status and code in the table of docs/api.md."""
    section = (ROOT / "docs/api.md").read_text(encoding="utf-8").partition("## Errors")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d{3}) \| ([^|]+) \|", section, re.MULTILINE)
    return {(int(status), code) for status, codes in rows for code in re.findall(r"`(\w+)`", codes)}


def test_every_code_is_documented_with_its_statuses_and_no_other() -> None:
    assert documented() == {(status, str(code)) for code, statuses in STATUSES.items() for status in statuses}
    assert set(STATUSES) == set(ErrorCode)


def used_codes() -> Iterator[str]:
    """What stands behind ``code=`` wherever an error is made in ``api/``."""
    for path in sorted((ROOT / "api").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"error", "ApiError"}:
                yield from (ast.unparse(one.value) for one in node.keywords if one.arg == "code")


def test_errors_take_their_codes_from_the_table() -> None:
    used = set(used_codes())
    assert len(used) > 5
    assert {one for one in used if "ErrorCode." not in one and one not in {"code", "raised.code"}} <= {
        "code or code_of_status(status)",
        "_ABSENT.get(raised.state, ErrorCode.NOT_SERVED)",
    }
    assert {name for one in used for name in re.findall(r"ErrorCode\.(\w+)", one)} <= set(ErrorCode.__members__)


@pytest.mark.parametrize("status", [status for status in HTTPStatus if status >= 400])
def test_every_status_has_a_code_of_the_table(status: HTTPStatus) -> None:
    assert code_of_status(status) in STATUSES


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    root: Path = tmp_path_factory.mktemp("codes") / "served"
    (root / "xx000001/zarr").mkdir(parents=True)
    (root / "xx000001/zarr/index.json").write_text("{}")
    given = Settings(admin_tokens=f"ada:operate:{TOKEN}")
    return TestClient(create_app(FolderTarget(root, port=8321), given))


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        (("GET", "/xx000001/zarr/index.json", {"Range": "bytes=999-"}), 416, "range_not_satisfiable"),
        (("GET", "/admin/requeue", {}), 405, "method_not_allowed"),
        (("GET", "/admin/datasets/xx000001/trigger", {}), 405, "method_not_allowed"),
        (("POST", "/datasets", {}), 405, "method_not_allowed"),
        (("GET", "/admin/nothing", {}), 404, "not_found"),
        (("GET", "/schemas/nothing", {}), 404, "unknown_schema"),
        (("POST", "/admin/pause", {"Content-Length": "99999999"}), 413, "content_too_large"),
        (("POST", "/admin/pause", {}), 401, "unauthorized"),
        (("GET", "/datasets/xx000001/recipe?recording=a%00b", {}), 400, "refused"),
        (("GET", "/datasets/xx000002/recipe?recording=a", {}), 404, "not_served"),
        (("GET", "/datasets?limit=many", {}), 400, "bad_request"),
        (("GET", "/datasets", {}), 503, "no_database"),
    ],
)
def test_what_is_answered_stands_in_the_table(
    client: TestClient, asked: tuple[str, str, dict[str, str]], status: int, code: str
) -> None:
    method, path, headers = asked
    answer = client.request(method, path, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert (status, code) in documented()


def test_a_405_names_the_methods_that_there_are(client: TestClient) -> None:
    assert client.get("/admin/requeue").headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("question", "name"),
    [("level=99&recording=x", "level"), ("level=0", "recording"), ("recording=x&start=soon", "start")],
)
def test_what_a_parameter_has_wrong_is_told_under_its_name(client: TestClient, question: str, name: str) -> None:
    told: dict[str, Any] = client.get(f"/datasets/xx000001/recipe?{question}").json()
    assert told["message"].startswith(f"{name}: ")
    assert told["detail"][0]["where"] == f"query.{name}"
