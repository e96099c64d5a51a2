from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from contract.events import FIXED_COLUMNS, event_order, passthrough_names, source_columns, trial_type_counts

HEADERS = st.lists(
    st.sampled_from(
        [
            "onset",
            "Onset",
            "duration",
            "HED",
            "hed",
            "value",
            "trial_type",
            "x_onset",
            "subject",
            "x_subject",
            "response",
            "",
            " ",
            "sample_index",
            "Value",
        ]
    )
    | st.text(min_size=0, max_size=5),
    max_size=10,
)


def test_the_fixed_columns_are_those_of_the_contract_in_its_order() -> None:
    assert list(FIXED_COLUMNS) == (
        [
            "store_path",
            "subject",
            "session",
            "task",
            "run",
            "onset_s",
            "duration_s",
            "sample_index",
            "group_name",
            "trial_type",
            "value",
            "hed",
        ]
    )


def test_source_columns_match_in_any_case_and_the_first_counts() -> None:
    assert source_columns(["Onset", "onset", " duration ", "HED", "hed"]) == {"onset_s": 0, "duration_s": 2, "hed": 3}


def test_a_column_keeps_its_name_unless_it_is_taken() -> None:
    assert passthrough_names(["onset", "response_time", "subject", ""]) == {1: "response_time", 2: "x_subject"}
    assert passthrough_names(["onset", "onset_s", "x_onset_s"]) == {1: "x_x_onset_s", 2: "x_onset_s"}
    assert passthrough_names(["a", "a", "a"]) == {0: "a", 1: "x_a", 2: "x_x_a"}


@given(headers=HEADERS)
def test_published_names_are_distinct_and_every_named_column_has_one(headers: list[str]) -> None:
    fixed = source_columns(headers)
    passed = passthrough_names(headers)
    assert len(set(passed.values())) == len(passed)
    assert not set(passed.values()) & set(FIXED_COLUMNS)
    named = {position for position, header in enumerate(headers) if header.strip()}
    assert set(passed) | set(fixed.values()) == named
    assert all(
        name.removeprefix("x_")
        and headers[at].strip() == name.removeprefix(name[: len(name) - len(headers[at].strip())])
        for at, name in passed.items()
    )


@given(onsets=st.lists(st.none() | st.floats() | st.sampled_from([0.0, 1.0]), max_size=30))
def test_events_are_ordered_by_onset_then_by_place_in_the_file(onsets: list[float | None]) -> None:
    order = event_order(onsets)
    assert sorted(order) == list(range(len(onsets)))
    known = [at for at in order if onsets[at] is not None and math.isfinite(onsets[at] or 0.0)]
    assert order[: len(known)] == known
    assert known == sorted(known, key=lambda at: (onsets[at], at))
    assert order[len(known) :] == sorted(order[len(known) :])


LABELS = st.lists(st.none() | st.sampled_from(["rest", "video"]) | st.text(min_size=129, max_size=140), max_size=20)


@given(labels=LABELS, data=st.data())
def test_trial_types_are_counted_whatever_their_order(labels: list[str | None], data: st.DataObject) -> None:
    counts = trial_type_counts(labels)
    assert sum(counts.values()) == sum(label is not None for label in labels)
    assert counts == trial_type_counts(data.draw(st.permutations(labels)))
    assert list(counts) == sorted(counts)
    assert all(len(key) <= 128 for key in counts)
    assert trial_type_counts(key for key, count in counts.items() for _ in range(count)) == counts


def test_a_short_label_keeps_its_name_even_where_it_looks_like_a_key() -> None:
    long_label = "free text " * 30
    (key,) = trial_type_counts([long_label])
    assert len(key) == 28
    assert trial_type_counts([long_label, key, key])[key] == 2
    assert len(trial_type_counts([long_label, key])) == 2
