"""Counts that are kept without counting: right after every statement, folded without loss, and by day."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from counting import counted, kept
from filled_state import Kept, fill, put
from sqlalchemy import Engine, text

from db.tallies import LIVE_DAYS, WATCHED, fold, mark, marked_at

TARGET = "/tallied"


def days(engine: Engine, dataset: int) -> dict[str, int]:
    with engine.connect() as c:
        rows = c.execute(
            text(f"SELECT name, sum(amount) AS amount FROM ({LIVE_DAYS}) d WHERE dataset_pk = :d GROUP BY 1"),
            {"d": dataset},
        )
        return {row.name: row.amount for row in rows if row.amount}


@pytest.mark.postgres_versions
def test_many_statements_are_counted_and_folded_without_loss(engine: Engine) -> None:
    with engine.begin() as c:
        fill(c, datasets=3, each=200, target=TARGET)
        ids = [row.pk for row in c.execute(text("SELECT pk FROM datasets"))]
    assert len(ids) == 3
    for ran in (
        "UPDATE recordings SET size_bytes = size_bytes + pk",
        "UPDATE stores SET size_bytes = 7, duration_s = 2.4",
        "DELETE FROM attempts WHERE code IS NULL AND recording_pk % 2 = 0",
        None,
    ):
        with engine.begin() as c:
            before = [kept(c, pk) for pk in ids]
            if ran is None:
                assert fold(c) > 20
                assert fold(c) == 0
                assert [kept(c, pk) for pk in ids] == before, "folding changes no count"
            else:
                c.execute(text(ran))
            now, right = [kept(c, pk) for pk in ids], [counted(c, pk) for pk in ids]
            for mine, truth in zip(now, right, strict=True):
                if ran is not None and ran.startswith("DELETE"):
                    assert mine.pop("ended:done") > truth["ended:done"], "what was done stays done"
                    truth.pop("ended:done")
                elif ran is None:
                    mine.pop("ended:done"), truth.pop("ended:done")
                assert mine == truth
    with engine.connect() as c:
        assert [days(engine, pk) for pk in ids] == [kept(c, pk) for pk in ids], "the days add up to what there is"


def test_a_dataset_that_is_removed_takes_its_counts_along(engine: Engine) -> None:
    with engine.begin() as c:
        pk = put(c, Kept(1, recordings=("served", "pending", "not_continuous")), target=TARGET)
        assert pk is not None
        assert kept(c, pk)["discovered"] == 3
        fold(c)
    with engine.begin() as c:
        c.execute(text("DELETE FROM datasets"))
        fold(c)
        for table in ("tallies", "tally_days", "tally_changes"):
            assert c.scalar(text(f"SELECT count(*) FROM {table}")) == 0, table


def test_folding_beside_writing_and_folding_loses_nothing(engine: Engine) -> None:
    with engine.begin() as c:
        pk = put(c, Kept(1), target=TARGET)
        assert pk is not None

    def work(nth: int) -> None:
        for _ in range(20):
            with engine.begin() as c:
                if nth % 2:
                    fold(c)
                else:
                    c.execute(
                        text("INSERT INTO tally_changes (dataset_pk, name, amount) VALUES (:pk, 'discovered', 1)"),
                        {"pk": pk},
                    )

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    with engine.begin() as c:
        assert kept(c, pk) == {"discovered": 40}
        fold(c)
        assert kept(c, pk) == {"discovered": 40}
        assert c.scalar(text("SELECT count(*) FROM tally_changes")) == 0
        assert c.scalar(text("SELECT amount FROM tallies")) == 40


def test_a_mark_says_when_something_was_last_done(engine: Engine) -> None:
    with engine.begin() as c:
        assert marked_at(c, WATCHED) is None
        mark(c, WATCHED)
        first = marked_at(c, WATCHED)
    with engine.begin() as c:
        mark(c, WATCHED)
        again = marked_at(c, WATCHED)
    assert first is not None
    assert again is not None
    assert again > first
