"""Broken and odd inputs, converted together, and what exactly comes of each."""

from __future__ import annotations

from collections import Counter

import pytest
from corpus_found import Outcomes, differences, twins
from corpus_row import Row, Unseen
from corpus_table import ROWS

pytestmark = pytest.mark.timeout(900)  # whichever case comes first waits for the conversion of all


def test_the_corpus_is_wide() -> None:
    kinds = Counter(row.kind for row in ROWS)
    assert len(ROWS) >= 120
    assert len(kinds) >= 40
    assert max(kinds.values()) <= 6
    assert len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_comes_of_it_is_exactly_this(corpus: Outcomes, row: Row) -> None:
    found = corpus.found(row.path)
    assert differences(row, row.expect, found) == [], row.kind
    taken = [name for name, wrong in twins(row.expect) if not differences(row, wrong, found)]
    assert taken == [], "these wrong expectations would pass as well"


def test_every_recording_is_one_that_a_row_made(corpus: Outcomes) -> None:
    made = {row.path for row in ROWS if not isinstance(row.expect, Unseen)} | {
        path for row in ROWS for path in row.also
    }
    assert set(corpus.dataset.lists()) == made
    index = corpus.dataset.index
    assert (
        index["discovered_count"] == len(made) == index["store_count"] + index["failure_count"] + index["pending_count"]
    )
    assert index["pending"] == []
