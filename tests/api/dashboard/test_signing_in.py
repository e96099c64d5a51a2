"""Signing in: who may read, who may act, and what becomes of forged, foreign and old sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from looked_at import OPERATOR, READER, Visit, check_accessible
from sqlalchemy import Engine
from starlette.testclient import TestClient

from api.app import create_app
from api.dashboard.addresses import is_own_page
from api.dashboard.sessions import LASTS_S, begin_session, find_session
from infra.serving_settings import AdminToken
from infra.settings import Settings
from infra.storage.folder import FolderTarget

ADA, VIEWER = AdminToken("ada", "operate", OPERATOR), AdminToken("viewer", "read", READER)
HTML = {"accept": "text/html"}
FROM_HERE = {"sec-fetch-site": "same-origin", **HTML}


def test_a_session_says_who_it_is_of_until_it_is_over() -> None:
    cookie = begin_session(ADA, now_s=1000)
    found = find_session(cookie, [VIEWER, ADA], now_s=1000 + LASTS_S - 1)
    assert (found.who, found.may_operate) == ("ada", True)
    assert not find_session(cookie, [VIEWER, ADA], now_s=1000 + LASTS_S).is_signed_in
    reader = find_session(begin_session(VIEWER), [ADA, VIEWER])
    assert (reader.who, reader.may_operate) == ("viewer", False)
    assert OPERATOR not in cookie


@pytest.mark.parametrize(
    "others",
    [
        [],
        [VIEWER],
        [AdminToken("ada", "read", OPERATOR)],
        [AdminToken("bob", "operate", OPERATOR)],
        [AdminToken("ada", "operate", OPERATOR + "x")],
    ],
    ids=["none", "another", "another scope", "another name", "another token"],
)
def test_a_session_ends_with_its_token(others: list[AdminToken]) -> None:
    assert not find_session(begin_session(ADA), others).is_signed_in


@pytest.mark.parametrize("spoil", ["", ".", "x", "9{}", "{}x", "é{}", "{}.", "99999999999.abc.{}"])
def test_a_forged_session_is_nobodys(spoil: str) -> None:
    assert not find_session(spoil.format(begin_session(ADA)), [ADA]).is_signed_in


def test_forms_of_two_sessions_have_different_values() -> None:
    values = {find_session(begin_session(ADA), [ADA]).csrf for _ in range(2)}
    assert len(values) == 2


@pytest.mark.parametrize(
    "address",
    [
        "//evil.example",
        "https://evil.example",
        "/dashboardx",
        "/",
        "/dashboard\\@evil",
        "/dashboard/\r\nx",
        "javascript:1",
    ],
)
def test_nobody_is_sent_elsewhere_after_signing_in(address: str) -> None:
    assert not is_own_page(address)


@pytest.mark.parametrize("address", ["/dashboard", "/dashboard/plots?format=edf", "/dashboard?offset=50"])
def test_a_page_of_ours_is_come_back_to(address: str) -> None:
    assert is_own_page(address)


@pytest.fixture
def client(engine: Engine, tmp_path: Path) -> Any:
    def make(**given: Any) -> TestClient:
        settings = Settings(admin_tokens=f"ada:operate:{OPERATOR},viewer:read:{READER}", **given)
        app = create_app(FolderTarget(tmp_path, port=8321), settings, engine)
        return TestClient(app, base_url="https://testserver", follow_redirects=False)

    return make


def test_where_reading_needs_a_token_others_sign_in_first_and_come_back(client: Any) -> None:
    closed = client(dashboard_reads="token")
    sent = closed.get("/dashboard?offset=5", headers=HTML)
    assert sent.status_code == 303
    assert sent.headers["location"] == "/dashboard/sign-in?next=%2Fdashboard%3Foffset%3D5"
    assert closed.get("/dashboard").status_code == 401, "a program is told"
    wrong = closed.post("/dashboard/sign-in", data={"token": "x" * 20}, headers=FROM_HERE)
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
    fields = {"token": READER, "next": "/dashboard?offset=5"}
    right = closed.post("/dashboard/sign-in", data=fields, headers=FROM_HERE)
    assert (right.status_code, right.headers["location"]) == (303, "/dashboard?offset=5")
    cookie = right.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=strict", "Secure", "Path=/dashboard"))
    assert READER not in cookie
    assert closed.get("/dashboard", headers=HTML).status_code == 200
    out = closed.post(
        "/dashboard/sign-out", data={}, headers=FROM_HERE | {"content-type": "application/x-www-form-urlencoded"}
    )
    assert out.status_code == 303
    assert closed.get("/dashboard", headers=HTML).status_code == 303


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
    ],
    ids=str,
)
def test_a_form_of_another_site_is_refused(client: Any, headers: dict[str, str]) -> None:
    answer = client().post("/dashboard/sign-in", data={"token": OPERATOR}, headers=headers)
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


def test_every_page_forbids_what_it_does_not_need(client: Any) -> None:
    for path in ("/dashboard", "/dashboard/sign-in", "/dashboard/nowhere", "/dashboard/static/nothing.js"):
        headers = client().get(path, headers=HTML).headers
        assert headers["content-type"].startswith("text/html"), path
        assert "'unsafe" not in headers["content-security-policy"]
        assert "default-src 'self'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert headers["x-frame-options"] == "DENY"


def test_an_asset_is_kept_for_ever_under_its_address(client: Any) -> None:
    page = client().get("/dashboard/sign-in", headers=HTML).text
    address = page.partition('rel="stylesheet" href="')[2].partition('"')[0]
    sent = client().get(address)
    assert sent.status_code == 200
    assert "immutable" in sent.headers["cache-control"]
    assert client().get(address, headers={"if-none-match": sent.headers["etag"]}).status_code == 304
    assert "immutable" not in client().get(address.partition("?")[0]).headers["cache-control"]


def test_an_operator_signs_in_and_out_by_keyboard(visit: Visit, axe: Path) -> None:
    page = visit.open("/dashboard/sign-in")
    check_accessible(page, axe)
    page.keyboard.type("not a token at all")
    page.keyboard.press("Enter")
    page.get_by_role("alert").wait_for()
    page.keyboard.type(OPERATOR)
    page.keyboard.press("Enter")
    page.get_by_text("ada").wait_for()
    visit.complaints.clear()  # chromium says in the console that the first answer was 401
    button = page.get_by_role("button", name="Sign out")
    for _ in range(20):
        page.keyboard.press("Tab")
        if button.evaluate("one => one === document.activeElement"):
            break
    page.keyboard.press("Enter")
    page.get_by_role("banner").get_by_role("link", name="Sign in").wait_for()
