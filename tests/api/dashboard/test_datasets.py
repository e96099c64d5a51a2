"""The pages of datasets and recordings without a browser: who sees what, what they cost the database, hostile addresses, actions."""

from __future__ import annotations

import csv
import io
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from filled_state import Kept, put
from large_archive import HOSTILE, LARGE, PRIVATE, TAG, UNTOUCHED
from looked_at import OPERATOR, READER
from sqlalchemy import Engine, event, text
from starlette.testclient import TestClient

from api.app import create_app
from api.dashboard import addresses
from api.dashboard.stages import stage_bars
from db import pauses
from db.cost import toll
from db.ledger import MANY_SLOTS, Part, declare_host
from db.recording_table import SORTS, TABLE_STATES
from infra.settings import Settings
from infra.storage.folder import FolderTarget
from tasks.reproducing import reproduction

HTML = {"accept": "text/html", "sec-fetch-site": "same-origin"}
FAILED = "sub-00001/eeg/sub-00001_task-rest_run-3_eeg.fif"
ACTIONS = ("trigger", "requeue", "pause", "resume", "verify", "standing", "withdraw", "engine")


class Desk:
    """One browser's worth of requests to the application itself."""

    def __init__(self, engine: Engine, folder: Path, token: str | None = None, **settings: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.engine = engine
        self.target = FolderTarget(folder, port=8321)
        given = Settings(admin_tokens=f"ada:operate:{OPERATOR},viewer:read:{READER}", **settings)
        self.client = TestClient(create_app(self.target, given, engine), headers=HTML)
        if token is not None:
            self.client.post("/dashboard/sign-in", data={"token": token})

    def get(self, path: str, status: int = 200, **given: Any) -> str:
        answer = self.client.get(path, **given)
        assert answer.status_code == status, answer.text[:2000]
        return answer.text

    def csrf(self, path: str = f"/dashboard/datasets/{LARGE}") -> str:
        return re.findall(r'name="csrf" value="([^"]+)"', self.get(path))[-1]

    def act(self, dataset_id: str, verb: str, **fields: str) -> Any:
        if "csrf" not in fields:
            fields["csrf"] = self.csrf(f"/dashboard/datasets/{dataset_id}")
        return self.client.post(addresses.dataset_action(dataset_id, verb), data=fields, follow_redirects=False)

    def proposed(self, dataset_id: str, verb: str, **fields: str) -> str:
        """The digest of what the first press shows."""
        answer = self.act(dataset_id, verb, **fields)
        assert answer.status_code == 200, answer.text[:2000]
        found = re.findall(r'name="seen" value="([0-9a-f]{64})"', answer.text)
        assert len(found) == 1, "a button that does it"
        return found[0]


@pytest.fixture
def desk(archive: Engine, served_folder: Path) -> Callable[..., Desk]:
    return lambda token=None, **settings: Desk(archive, served_folder, token, **settings)


@contextmanager
def statements(engine: Engine) -> Iterator[list[str]]:
    found: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        found.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(engine, "before_cursor_execute", note)


def words(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def test_a_page_costs_the_database_as_much_at_25000_recordings_as_at_twenty(desk: Callable[..., Desk]) -> None:
    operator = desk(OPERATOR)
    costs: dict[str, list[int]] = {}
    for dataset_id in (LARGE, "xx000002"):
        for page in ("", "?state=failed&code=not_continuous&q=run&sort=-size"):
            with statements(operator.engine) as asked:
                operator.get(f"/dashboard/datasets/{dataset_id}{page}")
            costs.setdefault("dataset", []).append(len(asked))
    for dataset_id, path in ((LARGE, FAILED), ("xx000002", "sub-00000/eeg/sub-00000_task-rest_run-1_eeg.brainvision")):
        with statements(operator.engine) as asked:
            operator.get(addresses.recording_page(dataset_id, path))
        costs.setdefault("recording", []).append(len(asked))
    assert set(costs["dataset"]) == {15}
    assert set(costs["recording"]) == {6}


def test_the_coverage_balances_and_nothing_unknown_is_a_zero(desk: Callable[..., Desk]) -> None:
    reader = desk()
    told = words(reader.get(f"/dashboard/datasets/{LARGE}"))
    assert "25,000 discovered = 22,737 stores + 1,250 failures + 1,013 pending (90.9 % served)" in told
    assert "15,987 stores as they were, 6,750 made by the last conversion" in told
    untouched = reader.get(f"/dashboard/datasets/{UNTOUCHED}")
    assert "no run has looked at the source" in untouched
    assert untouched.count('class="unknown"') >= 3
    assert " 0 " not in words(untouched.partition("<main")[2].partition("</main>")[0])


def test_who_has_not_signed_in_sees_no_machine_no_path_and_no_private_dataset(desk: Callable[..., Desk]) -> None:
    anybody, reader = desk(), desk(READER)
    page, recording = f"/dashboard/datasets/{LARGE}", addresses.recording_page(LARGE, FAILED)
    for secret in ("worker-1", "/source/1", "host-a", "because &lt;"):
        assert secret not in anybody.get(page) + anybody.get(recording), secret
        assert secret in reader.get(page) + reader.get(recording), secret
    assert "Traceback" not in anybody.get(recording)
    assert "Traceback" in reader.get(recording)
    assert 'name="csrf"' not in anybody.get(page)
    assert addresses.dataset_action(LARGE, "withdraw") not in reader.get(page), "a token that reads has no buttons"
    for where in ("", "/events", "/recordings.csv", "/recordings/x"):
        anybody.get(f"/dashboard/datasets/{PRIVATE}{where}", 404)
    assert "private" in reader.get(f"/dashboard/datasets/{PRIVATE}")
    closed = desk(dashboard_reads="token")
    for where in (page, recording):
        assert closed.client.get(where, follow_redirects=False).status_code == 303


@pytest.mark.parametrize(
    "address",
    [
        "/dashboard/datasets/xx999999",
        "/dashboard/datasets/..%2f..%2fetc",
        "/dashboard/datasets/%00",
        f"/dashboard/datasets/{LARGE}/recordings/",
        f"/dashboard/datasets/{LARGE}/recordings/%00",
        f"/dashboard/datasets/{LARGE}/recordings/..%2F..%2Fetc%2Fpasswd",
        f"/dashboard/datasets/{LARGE}/recordings/%F0%28%8C%28",
        f"/dashboard/datasets/{LARGE}/recordings/{'x' * 5000}",
    ],
)
def test_an_address_of_nothing_is_404(desk: Callable[..., Desk], address: str) -> None:
    assert "no such" in desk(OPERATOR).get(address, 404)


@pytest.mark.parametrize(
    "query",
    ["state=x", "code=%27", "sort=pk", "after=AAAA", "after=WyJ4Il0=", "before=%00", "q=%00", f"q={'x' * 501}", "sort=-size&after=WyJ4IiwieSJd"],
)  # fmt: skip
def test_a_question_that_is_none_is_told(desk: Callable[..., Desk], query: str) -> None:
    assert "Bad Request" in desk().get(f"/dashboard/datasets/{LARGE}?{query}", 400)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/dashboard?standing=bogus", "There is no standing 'bogus'; it is one of "),
        ("/dashboard?sort=bogus", "There is no order 'bogus'; it is one of "),
        ("/dashboard?offset=x", "What the address says of offset is not understood."),
        ("/dashboard/runs?state=bogus", "There is no end 'bogus'; it is one of "),
        (f"/dashboard/datasets/{LARGE}?state=bogus", "There is no state 'bogus'; it is one of "),
    ],
)
def test_a_filter_that_is_none_is_one_sentence_with_a_way_back(desk: Callable[..., Desk], path: str, said: str) -> None:
    page = desk().get(path, 400)
    assert said in unescape(page)
    assert f'<a href="{path.partition("?")[0]}">The page without filters</a>' in page


def test_callbacks_wait_for_nobody_where_no_address_is_set(desk: Callable[..., Desk], archive: Engine) -> None:
    with archive.connect() as c:
        owed = c.scalar(
            text(
                "SELECT d.dataset_id FROM callbacks k JOIN datasets d ON d.pk = k.dataset_pk WHERE k.delivered_at IS NULL LIMIT 1"
            )
        )
    nobody, somebody = desk(OPERATOR), desk(OPERATOR, callback_url="http://127.0.0.1:9/told")
    page = f"/dashboard/datasets/{owed}"
    assert "no address is set, so nobody waits for them" in nobody.get("/dashboard")
    assert "nobody is told: no address is set" in nobody.get(page)
    assert "so nobody waits" not in somebody.get("/dashboard")
    assert "not delivered; the oldest since" in somebody.get(page)


def test_tags_in_names_paths_and_details_are_text_everywhere(desk: Callable[..., Desk]) -> None:
    operator = desk(OPERATOR)
    pages = [
        f"/dashboard/datasets/{HOSTILE}",
        f"/dashboard/datasets/{HOSTILE}?q=%3Cscript",
        f"/dashboard/datasets/{LARGE}",
    ]
    listing = operator.get(pages[1])
    hostile = re.findall(rf'href="(/dashboard/datasets/{HOSTILE}/recordings/[^"]+script[^"]+)"', listing)
    assert hostile, "a path with a tag has a page"
    for page in (*pages, hostile[0], f"/dashboard/datasets/xx000003?acted={TAG}"):
        html = operator.get(page)
        assert TAG not in html
        assert re.findall(r"<script(?![^>]* src=)(?![^>]*application/json)", html) == []
    assert "&lt;script&gt;" in operator.get(hostile[0])


def test_every_filter_and_order_of_the_table_is_one_page_away(desk: Callable[..., Desk]) -> None:
    reader = desk()
    for state in TABLE_STATES:
        reader.get(f"/dashboard/datasets/xx000007?state={state}")
    for sort in SORTS:
        for sign in ("", "-"):
            html = reader.get(f"/dashboard/datasets/{LARGE}?sort={sign}{sort}&state=pending")
            following = unescape(re.findall(r'rel="next" href="([^"#]+)', html)[0])
            again = reader.get(following)
            assert "51–100 of 1,000 recordings that fit" in words(again)
            back = unescape(re.findall(r'rel="prev" href="([^"#]+)', again)[0])
            assert "1–50 of 1,000 recordings that fit" in words(reader.get(back))


def test_the_table_is_a_csv_with_the_same_filters_and_without_formulas(
    archive: Engine, desk: Callable[..., Desk]
) -> None:
    reader = desk()
    with statements(archive) as asked:
        whole = list(csv.DictReader(io.StringIO(reader.get(f"/dashboard/datasets/{LARGE}/recordings.csv"))))
    assert len(whole) == len({row["path"] for row in whole}) == 25_000
    assert len(asked) == 2 + 25_000 // 2000
    some = list(
        csv.DictReader(
            io.StringIO(reader.get(f"/dashboard/datasets/{LARGE}/recordings.csv?code=not_continuous&sort=-size"))
        )
    )
    assert {row["code"] for row in some} == {"not_continuous"}
    assert len(some) == 250
    from api.dashboard.table_csv import _cell

    assert [_cell(value) for value in ("=1+1", "sub-01", -3, None)] == ["'=1+1", "sub-01", -3, None]


def test_an_action_needs_a_token_that_may_a_form_of_ours_and_a_known_verb(desk: Callable[..., Desk]) -> None:
    operator, reader, anybody = desk(OPERATOR), desk(READER), desk()

    def noted() -> int | None:
        with operator.engine.connect() as c:
            return c.scalar(text("SELECT count(*) FROM operator_actions"))

    before, csrf = noted(), operator.csrf()
    for verb in ACTIONS:
        where = addresses.dataset_action(LARGE, verb)
        assert anybody.client.post(where, data={"csrf": csrf}).status_code == 401
        assert reader.client.post(where, data={"csrf": csrf}).status_code == 403
        assert operator.client.post(where, data={"csrf": "x"}).status_code == 403
        assert (
            operator.client.post(where, data={"csrf": csrf}, headers={"sec-fetch-site": "cross-site"}).status_code
            == 403
        )
        assert operator.client.get(where).status_code in {404, 405}
    assert operator.act(LARGE, "drop", csrf=csrf).status_code == 404
    assert operator.act("xx999999", "pause", csrf=csrf).status_code == 404
    for wrong in ({"mode": "x"}, {"code": "'"}, {"visibility": "x"}, {"active": "maybe"}):
        assert operator.act(LARGE, "requeue", csrf=csrf, **wrong).status_code == 400
    assert operator.act(LARGE, "requeue", csrf=csrf, path="no/such").status_code == 404
    assert noted() == before


@pytest.fixture
def own(engine: Engine, tmp_path: Path) -> Desk:
    """A small archive of this test's own, with an operator at it."""
    made = Desk(engine, tmp_path / "served", OPERATOR, home=tmp_path / "home")
    with engine.begin() as c:
        states = ("served", "not_continuous", "not_continuous", "file_read_error", "pending", "served+not_continuous")
        put(c, Kept(1, status="ready", counts=(2, 3, 1), recordings=states), target=made.target.url)
        c.execute(text("INSERT INTO policies (dataset_pk) SELECT pk FROM datasets ON CONFLICT DO NOTHING"))
    return made


def due(engine: Engine) -> dict[str, int]:
    with engine.connect() as c:
        return {row.due: row.n for row in c.execute(text("SELECT due, count(*) AS n FROM recordings GROUP BY due"))}


def history(engine: Engine) -> list[tuple[str, bool, str, str | None]]:
    with engine.connect() as c:
        rows = c.execute(text("SELECT verb, executed, acted_by, why FROM operator_actions ORDER BY pk"))
        return [tuple(row) for row in rows]


def test_what_was_seen_is_done_and_kept_with_who_and_why(own: Desk) -> None:
    seen = own.proposed("xx000001", "requeue", code="not_continuous")
    assert due(own.engine) == {"none": 1, "failed": 4, "pending": 1}, "nothing yet"
    done = own.act("xx000001", "requeue", code="not_continuous", seen=seen, why="the converter was mended")
    assert done.status_code == 303
    assert due(own.engine) == {"none": 1, "failed": 1, "pending": 4}
    assert history(own.engine) == [
        ("requeue", False, "ada", None),
        ("requeue", True, "ada", "the converter was mended"),
    ]
    page = words(own.get(done.headers["location"]))
    assert "Done: requeue by ada" in page
    assert "recordings 3" in page
    with own.engine.connect() as c:
        assert c.scalar(text("SELECT state FROM requests")) == "waiting"


def test_what_has_changed_since_it_was_seen_is_shown_anew_and_not_done(own: Desk) -> None:
    seen = own.proposed("xx000001", "requeue", code="not_continuous")
    with own.engine.begin() as c:
        c.execute(text("UPDATE recordings SET code = 'not_continuous' WHERE code = 'file_read_error'"))
    again = own.act("xx000001", "requeue", code="not_continuous", seen=seen)
    assert again.status_code == 409
    assert "Nothing was done." in again.text
    assert "Make 4 recordings of xx000001 due again" in again.text
    assert due(own.engine) == {"none": 1, "failed": 4, "pending": 1}
    assert [executed for _verb, executed, _who, _why in history(own.engine)] == [False]
    other = own.act("xx000001", "requeue", code="file_read_error", seen=seen)
    assert other.status_code == 409, "a digest is for the form that it was shown for"
    newer = re.findall(r'name="seen" value="([0-9a-f]{64})"', again.text)[0]
    assert own.act("xx000001", "requeue", code="not_continuous", seen=newer).status_code == 303
    assert own.act("xx000001", "requeue", code="not_continuous", seen=newer).status_code == 409, "once"


def test_one_recording_is_made_due_again_from_its_page(own: Desk) -> None:
    path = "sub-03/eeg/sub-03_eeg.edf"
    page = own.get(addresses.recording_page("xx000001", path))
    assert "Make it due again" in page
    seen = own.proposed("xx000001", "requeue", path=path)
    done = own.act("xx000001", "requeue", path=path, seen=seen)
    assert done.headers["location"].startswith(addresses.recording_page("xx000001", path))
    assert due(own.engine) == {"none": 1, "failed": 3, "pending": 2}
    assert "Somebody asked for it." in own.get(done.headers["location"])


def test_each_other_action_is_shown_and_then_done(own: Desk) -> None:
    for verb, fields in (
        ("trigger", {"mode": "full"}),
        ("verify", {}),
        ("pause", {}),
        ("resume", {}),
        ("standing", {"active": "no"}),
        ("standing", {"active": "yes"}),
    ):
        seen = own.proposed("xx000001", verb, **fields)
        assert own.act("xx000001", verb, seen=seen, **fields).status_code == 303, verb
    done = [verb for verb, executed, _who, _why in history(own.engine) if executed]
    assert done == ["trigger", "verify", "pause", "resume", "dataset set", "dataset set"]
    with own.engine.connect() as c:
        assert pauses.current(c) == []
        asked = c.execute(text("SELECT work, mode, asked_by FROM requests ORDER BY pk")).all()
    assert [tuple(row) for row in asked] == [("convert", "full", "ada"), ("verify", "verify", "ada")]
    again = own.act("xx000001", "resume")
    assert "There is nothing to do." in again.text
    refused = own.act("xx000001", "trigger", commit="-x")
    assert refused.status_code == 400
    assert "is no name of a commit" in refused.text
    assert '<a href="/dashboard/datasets/xx000001#actions">Back to xx000001</a>' in refused.text


def test_how_many_go_side_by_side_is_no_number_where_no_worker_said_it(own: Desk) -> None:
    whole = Part(memory_bytes=1 << 30, scratch_bytes=1 << 30, slots=MANY_SLOTS)
    with own.engine.begin() as c:
        declare_host(c, key="boot:0", name="a machine", whole=whole)
        failed = list(c.scalars(text("SELECT pk FROM recordings WHERE due = 'failed'")))
        found = toll(c, recordings=failed)
        assert found.slots is None
        one = replace(found, seconds=30.0, unknown=0)
        assert one.range_s == (30.0, 30.0)
        declare_host(c, key="boot:1", name="another", whole=replace(whole, slots=3))
        assert toll(c, recordings=failed).slots == 3
    assert str(MANY_SLOTS) not in own.act("xx000001", "requeue").text


def test_a_withdrawal_says_what_goes_and_takes_it_away(own: Desk) -> None:
    base = own.target.root / "xx000001" / "zarr"  # type: ignore[attr-defined]  # a folder's
    (base / "sub-00" / "a.zarr").mkdir(parents=True)
    (base / "sub-00" / "a.zarr" / "zarr.json").write_text("{}")
    (base / "index.json").write_text("{}")
    seen = own.proposed("xx000001", "withdraw")
    (base / "sub-00" / "a.zarr" / "more").write_text("x")
    assert own.act("xx000001", "withdraw", seen=seen).status_code == 409
    seen = own.proposed("xx000001", "withdraw")
    assert own.act("xx000001", "withdraw", seen=seen).status_code == 303
    assert not (base / "index.json").exists()
    assert not (base / "sub-00" / "a.zarr").exists()
    assert "withdrawn" in own.get("/dashboard/datasets/xx000001")
    with own.engine.connect() as c:
        path, zarr = c.execute(text("SELECT path, zarr FROM recordings ORDER BY path LIMIT 1")).one()
    viewer = addresses.viewer_page("xx000001", zarr)
    page = own.get(viewer, 404)
    assert "xx000001 was withdrawn on" in page
    assert f'href="{addresses.recording_page("xx000001", path)}">What became of the recording' in page
    own.client.cookies.clear()
    page = own.get(viewer, 404)
    assert "xx000001 was withdrawn on" in page
    assert "What became of the recording" not in page, "its pages are not for everybody any more"


def test_the_engine_is_approved_for_all_that_is_stale(own: Desk) -> None:
    with own.engine.begin() as c:
        c.execute(text("UPDATE policies SET options = 'o', engine = '0', biosigio = 'b'"))
    assert "another options, another engine, another biosigio by now" in words(own.get("/dashboard/datasets/xx000001"))
    seen = own.proposed("xx000001", "engine")
    assert own.act("xx000001", "engine", seen=seen).status_code == 303
    with own.engine.connect() as c:
        assert set(c.scalars(text("SELECT rebuild_column FROM approvals"))) == {"options", "engine"}


def test_stages_are_told_once_each_and_fill_the_bar() -> None:
    bars = stage_bars({"upload": 1.0, "child": 7.0, "read": 2.0, "convert": 4.0, "fetch": 2.0})
    assert [(bar.stage, bar.seconds) for bar in bars] == [
        ("fetch", 2.0),
        ("start and end", 1.0),
        ("read", 2.0),
        ("convert", 4.0),
        ("upload", 1.0),
    ]
    assert sum(bar.width for bar in bars) == pytest.approx(100)
    assert [bar.stage for bar in stage_bars({"child": 3.0})] == ["child"]
    assert stage_bars({}) == ()


def test_the_command_that_reproduces_quotes_every_name(tmp_path: Path) -> None:
    path = "sub-01/eeg/sub-01_task-$(touch bad)_eeg.edf"
    names = [path, 'sub-01/eeg/it\'s "here" `touch worse` \n;_events.tsv']
    source = tmp_path / "a source; $x"
    for name in (*names, "dataset_description.json"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    command = reproduction(source=str(source), annex=None, dataset_id="xx000001", path=path, inputs=names)
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    said = tmp_path / "said"
    (bin_folder / "zarrmill").write_text(f'#!/bin/sh\nprintf "%s\\0" "$@" >> {shlex.quote(str(said))}\n')
    (bin_folder / "zarrmill").chmod(0o755)
    run = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env={"PATH": f"{bin_folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    arguments = said.read_text().split("\0")
    copy = Path(arguments[1])
    assert {str(found.relative_to(copy)) for found in copy.rglob("*") if found.is_file()} == {
        *names,
        "dataset_description.json",
    }
    assert arguments[arguments.index("why") + 2] == path
    assert not list(tmp_path.rglob("bad")) + list(tmp_path.rglob("worse"))
    remote = reproduction(
        source="s3://b/p q", annex="s3://x/y", dataset_id="xx000001", path="-a.edf", inputs=["-a.edf"]
    )
    assert "'s3://b/p q/-a.edf'" in remote
    assert "--annex s3://x/y" in remote
    assert " ./-a.edf --to" in remote
