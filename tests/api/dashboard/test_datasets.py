"""The pages of datasets and recordings without a browser: who sees what, what they cost the database, hostile addresses, actions."""

from __future__ import annotations

import csv
import io
import re
import shlex
import subprocess
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from desk import Desk, statements, words
from large_archive import HOSTILE, LARGE, PRIVATE, TAG, UNTOUCHED
from looked_at import OPERATOR, READER
from sqlalchemy import Engine, text

from api.dashboard import addresses
from api.dashboard.stages import stage_bars
from db.recording_table import SORTS, TABLE_STATES
from tasks.reproducing import reproduction

FAILED = "sub-00001/eeg/sub-00001_task-rest_run-3_eeg.fif"


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
