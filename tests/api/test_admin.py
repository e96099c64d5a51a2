"""Operators' actions over HTTP: who may, what is done, what is only told, and the row that each leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filled_state import Kept, put
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from api.app import create_app
from api.webhooks import same_secret
from infra.database import engine as make_engine
from infra.settings import Settings
from infra.storage.folder import FolderTarget

ADA, READER = "token-of-ada-0123456789", "token-of-a-reader-0123456789"
ACTIONS: dict[str, dict[str, Any]] = {
    "/admin/datasets/xx000001/trigger": {"mode": "full"},
    "/admin/datasets/xx000001/verify": {},
    "/admin/datasets/xx000001/pause": {},
    "/admin/datasets/xx000001/resume": {},
    "/admin/pause": {},
    "/admin/resume": {},
    "/admin/requeue": {"all": True},
    "/admin/drain": {},
    "/admin/zarr-catalog/publish": {},
    "/admin/engine/acknowledge": {},
}
READS = ("/admin/history", "/admin/requests", "/admin/pauses", "/admin/drains", "/admin/engine")


@pytest.fixture(scope="module")
def shared(servers: Any) -> Iterator[Engine]:
    server = servers.migrated(18)
    server.create_database("api_admin", template="migrated")
    made = make_engine(server.url("api_admin"))
    try:
        yield made
    finally:
        made.dispose()
        server.drop_database("api_admin")


class Office:
    def __init__(self, engine: Engine, folder: Path) -> None:
        folder.mkdir()
        self.engine = engine
        self.target = FolderTarget(folder, port=8321)
        with engine.begin() as c:
            for table in ("operator_actions", "requests", "pauses", "drains", "approvals", "datasets"):
                c.execute(text(f"DELETE FROM {table}"))
            for kept in (
                Kept(1, status="ready", counts=(1, 2, 0), recordings=("served", "not_continuous", "file_read_error")),
                Kept(2, recordings=("not_continuous", "pending")),
            ):
                put(c, kept, target=self.target.url)
            put(c, Kept(1, recordings=("not_continuous",)), target="/another")
            c.execute(text("INSERT INTO policies (dataset_pk) SELECT pk FROM datasets ON CONFLICT DO NOTHING"))
        given = Settings(admin_tokens=f"ada:operate:{ADA},viewer:read:{READER}")
        self.client = TestClient(create_app(self.target, given, engine))

    def ask(self, path: str, body: Any = None, *, token: str | None = ADA) -> Any:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        if body is None:
            return self.client.get(path, headers=headers)
        return self.client.post(path, content=json.dumps(body), headers={**headers, "Content-Type": "application/json"})

    def done(self, path: str, body: Any) -> Any:
        answer = self.ask(path, body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def history(self) -> list[dict[str, Any]]:
        return self.ask("/admin/history", token=READER).json()["actions"]

    def due(self) -> list[tuple[str, str]]:
        with self.engine.connect() as c:
            rows = c.execute(
                text("""
                    SELECT d.target || d.dataset_id, string_agg(r.due, ',' ORDER BY r.path) FROM recordings r
                    JOIN datasets d ON d.pk = r.dataset_pk GROUP BY 1 ORDER BY 1
                """)
            )
            return [(row[0].removeprefix(self.target.url), row[1]) for row in rows]


@pytest.fixture
def office(shared: Engine, tmp_path: Path) -> Office:
    return Office(shared, tmp_path / "served")


@pytest.mark.parametrize("token", [None, "", "wrong", ADA[:-1], ADA + "x", ADA.upper()])
def test_without_a_token_nothing_is_told_or_done(office: Office, token: str | None) -> None:
    for path, body in [*ACTIONS.items(), *((path, None) for path in READS)]:
        refused = office.ask(path, body, token=token)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer"), path
    assert office.history() == []


def test_a_token_that_may_read_may_not_operate(office: Office) -> None:
    for path, body in ACTIONS.items():
        refused = office.ask(path, body, token=READER)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden"), path
    assert {office.ask(path, token=READER).status_code for path in READS} == {200}
    assert office.history() == []


def test_where_no_tokens_are_set_nobody_operates(office: Office) -> None:
    closed = TestClient(create_app(office.target, Settings(), office.engine))
    for token in ("", ADA):
        assert closed.get("/admin/history", headers={"Authorization": f"Bearer {token}"}).status_code == 401


def test_secrets_are_compared_whole() -> None:
    assert same_secret("abc", "abc")
    for given in (None, "", "ab", "abcd", "abC", "\udcff"):
        assert not same_secret(given, "abc")


def test_every_action_leaves_a_row_with_who_and_why(office: Office) -> None:
    for number, (path, body) in enumerate(ACTIONS.items()):
        office.done(path, {**body, "why": f"reason {number}"})
        newest = office.history()[0]
        assert (newest["acted_by"], newest["why"]) == ("ada", f"reason {number}"), path
    verbs = [row["verb"] for row in office.history()][::-1]
    assert verbs == [
        "trigger",
        "verify",
        "pause",
        "resume",
        "pause",
        "resume",
        "requeue",
        "drain",
        "publish catalog",
        "engine approve",
    ]
    assert [row["executed"] for row in office.history()][::-1] == [True] * 6 + [False] + [True] * 2 + [False]
    assert [row["verb"] for row in office.ask("/admin/history?subject=xx000001&limit=2").json()["actions"]] == [
        "resume",
        "pause",
    ]


def test_a_trigger_is_a_request_and_a_second_one_a_part_of_it(office: Office) -> None:
    first = office.done("/admin/datasets/xx000001/trigger", {"mode": "auto"})
    second = office.done("/admin/datasets/xx000001/trigger", {"mode": "full"})
    assert (first["coalesced"], second["coalesced"], second["widened"], second["mode"]) == (False, True, True, "full")
    assert first["request"] == second["request"]
    office.done("/admin/datasets/xx000001/verify", {})
    waiting = office.ask("/admin/requests", token=READER).json()["requests"]
    assert [(one["work"], one["mode"], one["asked_by"]) for one in waiting] == [
        ("convert", "full", "ada"),
        ("verify", "verify", "ada"),
    ]


def test_a_pause_holds_until_it_is_ended(office: Office) -> None:
    assert office.done("/admin/datasets/xx000001/pause", {"why": "moving"})["changed"] is True
    assert office.done("/admin/datasets/xx000001/pause", {})["changed"] is False
    office.done("/admin/pause", {})
    paused = office.ask("/admin/pauses", token=READER).json()["pauses"]
    assert [(one["dataset_id"], one["paused_by"], one["why"]) for one in paused] == [
        (None, "ada", None),
        ("xx000001", "ada", "moving"),
    ]
    office.done("/admin/resume", {})
    office.done("/admin/datasets/xx000001/resume", {})
    assert office.ask("/admin/pauses").json()["count"] == 0


def test_a_requeue_is_told_first_and_touches_this_target_alone(office: Office) -> None:
    before = office.due()
    body = {"codes": ["not_continuous"]}
    told = office.done("/admin/requeue", body)
    assert (told["executed"], told["recordings"], [one["dataset_id"] for one in told["datasets"]]) == (
        False,
        2,
        ["xx000001", "xx000002"],
    )
    assert office.due() == before
    stale = office.ask("/admin/requeue", {**body, "execute": True, "expect": 3})
    assert (stale.status_code, stale.json()["detail"]) == (409, {"recordings": 2})
    assert office.due() == before
    assert office.done("/admin/requeue", {**body, "execute": True, "expect": 2})["executed"] is True
    assert sorted(office.due()) == [
        ("/anotherxx000001", "failed"),
        ("xx000001", "none,pending,failed"),
        ("xx000002", "pending,pending"),
    ]
    only = office.done("/admin/requeue", {"datasets": ["xx000001"], "execute": True})
    assert only["recordings"] == 2
    assert office.ask("/admin/requeue", {"datasets": ["xx000009"]}).status_code == 404


def test_a_target_without_datasets_requeues_nothing(office: Office, tmp_path: Path) -> None:
    empty = FolderTarget(tmp_path / "empty", port=8321)
    given = Settings(admin_tokens=f"ada:operate:{ADA}")
    client = TestClient(create_app(empty, given, office.engine))
    before = office.due()
    answer = client.post(
        "/admin/requeue", json={"all": True, "execute": True}, headers={"Authorization": f"Bearer {ADA}"}
    )
    assert answer.json()["recordings"] == 0
    assert office.due() == before


@pytest.mark.parametrize("body", ["", "{}", '{"execute": true}', '{"execute": true, "expect": 4}', '{"all": false}'])
def test_a_requeue_that_names_nothing_is_refused(office: Office, body: str) -> None:
    before = office.due()
    headers = {"Authorization": f"Bearer {ADA}", "Content-Type": "application/json"}
    refused = office.client.post("/admin/requeue", content=body, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (400, "bad_request"), refused.text
    assert '"all": true' in refused.json()["message"]
    assert (office.due(), office.history()) == (before, [])


def test_a_requeue_of_all_takes_everything_of_this_target(office: Office) -> None:
    told = office.done("/admin/requeue", {"all": True})
    assert (told["recordings"], told["executed"], told["count"]) == (4, False, 2)


@pytest.mark.parametrize("path", [path for path in ACTIONS if path != "/admin/requeue"])
def test_an_action_without_a_body_is_one_with_an_empty_body(office: Office, path: str) -> None:
    answer = office.client.post(path, headers={"Authorization": f"Bearer {ADA}"})
    assert (answer.status_code, answer.json()["ok"]) == (200, True), answer.text
    assert len(office.history()) == 1


def test_a_drain_is_asked_for_and_ended(office: Office) -> None:
    assert office.ask("/admin/drain", {"worker": "nobody"}).status_code == 404
    told = office.done("/admin/drain", {"grace_s": 5, "why": "new kernel"})
    assert told["drains"] == [{"worker": "*", "grace_s": 5.0, "why": "new kernel"}]
    assert office.done("/admin/drain", {"undo": True}) == {"ok": True, "count": 1, "drains": []}
    assert [(one["verb"], one["counts"]) for one in office.history()] == [
        ("drain undo", {"ended": 1}),
        ("drain", {"drains": 1}),
    ]


def test_the_catalog_is_published_on_demand(office: Office) -> None:
    told = office.done("/admin/zarr-catalog/publish", {})
    assert (told["count"], told["changed"]) == (1, True)
    assert told["bytes"] == len(office.client.get("/catalog.json").content)


def test_an_engine_is_acknowledged_by_an_approval_of_its_value(office: Office) -> None:
    told = office.done("/admin/engine/acknowledge", {"columns": ["engine"]})
    assert told["executed"] is False
    assert office.ask("/admin/engine").json()["approvals"] == []
    office.done("/admin/engine/acknowledge", {"columns": ["engine"], "execute": True, "why": "read the notes"})
    [approval] = office.ask("/admin/engine").json()["approvals"]
    assert (approval["rebuild_column"], approval["approved_by"], approval["why"]) == ("engine", "ada", "read the notes")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/admin/datasets/xx000009/trigger", {}, 404),
        ("/admin/datasets/nonsense/pause", {}, 404),
        ("/admin/datasets/xx000001/trigger", {"mode": "everything"}, 400),
        ("/admin/datasets/xx000001/trigger", {"commit": "a\x00b"}, 400),
        ("/admin/datasets/xx000001/trigger", {"commit": ""}, 400),
        ("/admin/datasets/xx000001/trigger", {"commit": "--upload-pack=x"}, 400),
        ("/admin/datasets/xx000001/trigger", {"colour": "red"}, 400),
        ("/admin/datasets/xx000001/trigger", [], 400),
        ("/admin/requeue", {"codes": ["tired"]}, 400),
        ("/admin/requeue", {"exectue": True}, 400),
        ("/admin/pause", {"why": "x" * 1001}, 400),
        ("/admin/pause", {"why": "\ud800"}, 400),
        ("/admin/pause", {"\ud800": 1}, 400),
        ("/admin/drain", {"grace_s": -1}, 400),
        ("/admin/engine/acknowledge", {"columns": []}, 400),
        ("/admin/history?subject=..", None, 400),
    ],
)
def test_what_cannot_be_understood_is_refused_and_changes_nothing(
    office: Office, path: str, body: Any, status: int
) -> None:
    refused = office.ask(path, body)
    assert (refused.status_code, set(refused.json()) >= {"code", "message", "detail", "request_id"}) == (status, True)
    assert office.history() == []
