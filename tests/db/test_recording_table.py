"""The table of a dataset's recordings and its census: every filter, every order, and every part adds up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import text
from state_bench import Bench, path_of, planned

from contract.codes import FailureCode, PendingReason
from db import recordings, store_verdicts
from db.census import census, failure_details, rounds
from db.recording_table import SORTS, TABLE_STATES, TablePage, Wanted, recording_rows, table_page
from db.recordings import PlannedAction

pytestmark = pytest.mark.postgres_versions
NAMES = [f"{nth:02d}" for nth in range(12)]


@pytest.fixture
def lived(bench: Bench) -> Bench:
    """Served and verified, served and not, failed of two kinds, tried in vain, converting, not reached, served and due again, gone."""
    run = bench.start()
    refused = {"code": FailureCode.UNSUPPORTED_FORMAT, "detail": "<script>alert(1)</script>"}
    rows = [planned(name, size_bytes=1000 + int(name) % 3) for name in NAMES if name != "03"]
    bench.apply(run, *rows, planned("03", PlannedAction.FAIL, **refused))
    for name in ("00", "01", "02", "08"):
        bench.convert(run, name)
    for nth, name in enumerate(("04", "05")):
        attempt = bench.claim(run, name)
        bench.wait(seconds=nth + 1)
        with bench.begin() as c:
            recordings.fail(
                c, attempt_id=attempt, run_number=run.number, code=FailureCode.NOT_CONTINUOUS, detail="20 trials"
            )
    attempt = bench.claim(run, "06")
    with bench.begin() as c:
        recordings.postpone(
            c,
            attempt_id=attempt,
            run_number=run.number,
            reason=PendingReason.INFRA_FAILURE,
            error="disk",
            counted=True,
        )
    bench.end(run)
    with bench.begin() as c:
        store = store_verdicts.served_store(c, dataset=bench.dataset, recording_id=bench.state("00").id)
        assert store is not None
        more = {"why": None, "checked": 3, "mismatches": 0, "seed": 1}
        assert store_verdicts.found(c, store=store, body_digest="b", status="verified", examples=[], **more)
    second = bench.start()
    again = [planned(name) for name in NAMES if name not in {"03", "04", "05", "11", "08"}]
    kept = [planned(name, PlannedAction.KEEP_FAILED) for name in ("03", "04", "05")]
    carried = [
        replace(row, action=PlannedAction.CARRY, why=None)
        for row in again
        if row.path in {path_of("00"), path_of("01")}
    ]
    others = [row for row in again if row.path not in {one.path for one in carried} | {path_of("06")}]
    bench.apply(second, *carried, *others, *kept, planned("06", PlannedAction.WAIT))
    bench.claim(second, "07")
    return bench


def page(bench: Bench, **wanted: object) -> TablePage:
    with bench.begin() as c:
        return table_page(c, dataset=bench.dataset, wanted=Wanted(**wanted))  # type: ignore[arg-type]  # tests name what differs


def test_the_census_balances_and_knows_every_state(lived: Bench) -> None:
    with lived.begin() as c:
        found = census(c, dataset=lived.dataset)
        details, tried = failure_details(c, dataset=lived.dataset), rounds(c, dataset=lived.dataset)
    assert found.discovered == found.stores + found.failures + found.pending == 10
    assert (found.stores, found.failures, found.pending, found.converting, found.gone) == (3, 3, 4, 1, 2)
    assert (found.rebuilding, found.judged, found.whys) == (1, {"verified": 1}, {"new": 1})
    assert found.codes == {"not_continuous": 2, "unsupported_format": 1}
    assert found.reasons == {"not_attempted": 3, "infra_failure": 1}
    assert [(one.code, one.detail, one.recordings) for one in details] == [
        ("not_continuous", "20 trials", 2),
        ("unsupported_format", "<script>alert(1)</script>", 1),
    ]
    assert [(one.attempts, one.recordings) for one in tried] == [(1, 1)]


def test_each_state_finds_its_recordings(lived: Bench) -> None:
    found = {state: sorted(row.path[4:6] for row in page(lived, state=state).rows) for state in TABLE_STATES}
    assert found == {
        "served": ["00", "01", "02"],
        "failed": ["03", "04", "05"],
        "pending": ["06", "09", "10"],
        "converting": ["07"],
        "again": ["02"],
        "refused": [],
        "verified": ["00"],
        "mismatched": [],
        "unverified": ["01", "02"],
        "gone": ["08", "11"],
    }
    assert {row.state for row in page(lived).rows} == {"served", "failed", "pending", "converting", "gone"}
    assert [row.path[4:6] for row in page(lived, word="not_continuous").rows] == ["04", "05"]
    assert [row.path[4:6] for row in page(lived, word="infra_failure").rows] == ["06"]
    assert [row.path[4:6] for row in page(lived, search="SUB-07_").rows] == ["07"]
    assert page(lived, search="%").total == 0, "a search is a text and no pattern"


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("sort", list(SORTS))
def test_parts_in_any_order_are_the_whole_forwards_and_back(lived: Bench, sort: str, descending: bool) -> None:
    whole = page(lived, sort=sort, descending=descending).rows
    assert len(whole) == len(NAMES)
    if sort == "size":
        assert [row.size_bytes for row in whole] == sorted((row.size_bytes for row in whole), reverse=descending)
    parts: list[TablePage] = [page(lived, sort=sort, descending=descending, limit=5)]
    while parts[-1].has_more:
        parts.append(page(lived, sort=sort, descending=descending, limit=5, after=parts[-1].rows[-1].key))
    assert [row.pk for part in parts for row in part.rows] == [row.pk for row in whole]
    assert [(part.skipped, part.total) for part in parts] == [(0, 12), (5, 12), (10, 12)]
    back = page(lived, sort=sort, descending=descending, limit=5, before=parts[2].rows[0].key)
    assert [row.pk for row in back.rows] == [row.pk for row in parts[1].rows]
    assert back.skipped == 5


def test_a_part_behind_the_last_row_is_empty_and_says_how_many_there_are(lived: Bench) -> None:
    last = page(lived).rows[-1].key
    beyond = page(lived, after=last)
    assert (beyond.rows, beyond.total) == ((), 12)


def test_the_whole_table_comes_in_batches(lived: Bench) -> None:
    found: list[str] = []
    while True:
        with lived.begin() as c:
            after = found[-1] if found else ""
            more = list(recording_rows(c, dataset=lived.dataset, wanted=Wanted(), after=after, limit=5))
        if not more:
            break
        found += [row.path for row in more]
    assert found == [path_of(name) for name in NAMES]


def test_another_datasets_recordings_are_not_among_them(lived: Bench) -> None:
    other = Bench(lived.engine)
    with other.begin() as c:
        assert table_page(c, dataset=other.dataset, wanted=Wanted()).total == 0
        assert census(c, dataset=other.dataset).discovered == 0
        assert c.scalar(text("SELECT count(*) FROM recordings WHERE dataset_pk = :pk"), {"pk": other.dataset.pk}) == 0
