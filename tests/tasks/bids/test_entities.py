from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.bids.entities import parse_name

_words = st.text(st.sampled_from("abcXYZ019+.é雪"), min_size=1, max_size=6)
_keys = st.text(st.sampled_from("abcdefg"), min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("name", "entities", "suffix", "extension"),
    [
        ("sub-01_ses-eeg_task-rest_eeg.set", {"sub": "01", "ses": "eeg", "task": "rest"}, "eeg", ".set"),
        ("sub-01_task-rest_split-02_meg.fif", {"sub": "01", "task": "rest", "split": "02"}, "meg", ".fif"),
        ("sub-01_task-rest_meg.FIF.GZ", {"sub": "01", "task": "rest"}, "meg", ".FIF.GZ"),
        ("sub-01_task-rest_epo_eeg.set", {"sub": "01", "task": "rest"}, "eeg", ".set"),
        ("sub-01_task-v1.2_eeg.edf", {"sub": "01", "task": "v1.2"}, "eeg", ".edf"),
        ("sub-é_task-雪_eeg.edf", {"sub": "é", "task": "雪"}, "eeg", ".edf"),
        ("sub-01_run-1_run-2_eeg.edf", {"sub": "01", "run": "1"}, "eeg", ".edf"),
        ("sub-01_task-a-b_eeg.edf", {"sub": "01", "task": "a-b"}, "eeg", ".edf"),
        ("-_x-_-y_eeg.edf", {}, "eeg", ".edf"),
        ("sub-01.edf", {"sub": "01"}, "", ".edf"),
        ("channels.tsv", {}, "channels", ".tsv"),
        ("mgh70_raw.fif", {}, "raw", ".fif"),
        (".edf", {}, ".edf", ""),
        (".fif.gz", {}, ".fif", ".gz"),
        ("config", {}, "config", ""),
        ("", {}, "", ""),
    ],
)
def test_a_name_is_taken_apart(name: str, entities: dict[str, str], suffix: str, extension: str) -> None:
    parsed = parse_name(name)
    assert dict(parsed.entities) == entities
    assert (parsed.suffix, parsed.extension) == (suffix, extension)


@given(
    st.dictionaries(_keys, _words.map(lambda word: word.strip(".") or "x"), max_size=6),
    st.sampled_from(["eeg", "meg", "x"]),
)
def test_what_was_put_into_a_name_is_found_in_it_in_order(entities: dict[str, str], suffix: str) -> None:
    name = "_".join([*(f"{key}-{value}" for key, value in entities.items()), suffix]) + ".edf"
    parsed = parse_name(name)
    assert list(parsed.entities.items()) == list(entities.items())
    assert (parsed.suffix, parsed.extension) == (suffix, ".edf")


@given(st.text(max_size=40))
def test_no_part_of_any_name_is_lost(name: str) -> None:
    parsed = parse_name(name)
    stem = "_".join([*parsed.parts, *([parsed.suffix] if parsed.suffix or not parsed.parts else [])])
    assert name in {stem + parsed.extension, f"{stem}_{parsed.extension}"}


@pytest.mark.parametrize(("suffix", "modality"), [("eeg", "eeg"), ("ieeg", "ieeg"), ("EEG", None), ("raw", None)])
def test_only_the_four_suffixes_are_modalities(suffix: str, modality: str | None) -> None:
    assert parse_name(f"sub-01_{suffix}.edf").modality == modality
