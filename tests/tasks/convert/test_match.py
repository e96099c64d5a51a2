"""Rows of channels.tsv meet channels by name, and what does not meet is counted, not listed whole."""

from __future__ import annotations

from tasks.convert.match import match_channels


def test_names_meet_exactly_then_without_case_and_never_by_position() -> None:
    found = match_channels(["C", "b", "X", "A"], ["A", "B", "C", "D"], {})
    assert (found.matched, found.case_only, found.unlisted, found.unknown) == (3, (("b", "B"),), ("D",), ("X",))
    assert list(found.notes("c.tsv")) == [
        "c.tsv: 1 names that differ in case only are applied (b for B)",
        "c.tsv: 1 channels without a row keep the file's type and unit (D)",
        "c.tsv: 1 rows name no channel of the file (X)",
    ]


def test_what_is_ambiguous_without_case_meets_nothing() -> None:
    two_rows = match_channels(["fp1", "FP1"], ["Fp1"], {})
    assert (two_rows.matched, two_rows.unknown, two_rows.unlisted) == (0, ("fp1", "FP1"), ("Fp1",))
    two_labels = match_channels(["FP1"], ["Fp1", "fp1"], {})
    assert (two_labels.matched, two_labels.unknown) == (0, ("FP1",))
    taken = match_channels(["Fp1", "FP1"], ["Fp1"], {})
    assert (taken.matched, taken.case_only, taken.unknown) == (1, (), ("FP1",))


def test_names_that_the_file_repeats_are_told_apart() -> None:
    found = match_channels(["T8", "A", "T8"], ["T8-0", "A", "T8-1"], {"T8-0": "T8", "T8-1": "T8"})
    assert (found.matched, found.unknown, found.renamed) == (1, ("T8",), ("T8",))
    assert found.as_attribute() == {
        "matched": 1,
        "matched_case_only": 0,
        "unmatched_channels": 2,
        "unmatched_rows": 1,
        "unmatched_renamed": 1,
        "examples": {"matched_case_only": [], "unmatched_channels": ["T8-0", "T8-1"], "unmatched_rows": ["T8"]},
    }
    assert (
        list(found.notes("c.tsv"))[-1]
        == "c.tsv: 1 names that the file repeats are applied to none of their channels (T8)"
    )


def test_examples_are_bounded() -> None:
    found = match_channels([f"E{i}" for i in range(300)], [f"e{i}" for i in range(300)], {})
    assert (found.matched, len(found.case_only)) == (300, 300)
    attribute = found.as_attribute()
    assert attribute["matched_case_only"] == 300
    assert attribute["examples"]["matched_case_only"] == [f"E{i} -> e{i}" for i in range(5)]  # type: ignore[index]  # a dict
    assert max(map(len, found.notes("c.tsv"))) < 130
    assert list(match_channels(["A"], ["A"], {}).notes("c.tsv")) == []
