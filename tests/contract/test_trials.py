"""Windows in samples, trials and the numbers of stimuli, by their formulas."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.errors import Refused
from contract.samples import sample_index
from contract.trials import Trial, choose, first_overlap, stimulus_ids, window_samples

RATES = st.sampled_from([100.0, 128.0, 250.0, 333.33, 512.0, 1000.0, 1017.25])


@given(before=st.floats(-5, 0), after=st.floats(0.02, 5), rate=RATES)
def test_a_window_holds_its_onset_and_is_as_long_as_it_says(before: float, after: float, rate: float) -> None:
    first, last = window_samples((before, after), rate)
    assert first <= 0 < last
    assert (first, last) == (math.floor(before * rate + 0.5), math.floor(after * rate + 0.5))
    assert abs((last - first) - (after - before) * rate) <= 1


@pytest.mark.parametrize(
    ("window", "word"),
    [
        ((0.1, 0.5), "does not hold the onset"),
        ((-0.5, -0.1), "does not hold the onset"),
        ((-0.5, 0.0), "does not hold the onset"),
        ((0.5, -0.5), "is none"),
        ((0.0, 0.0), "is none"),
        ((math.nan, 1.0), "is none"),
        ((-1.0, math.inf), "is none"),
        ((-0.1, 0.001), "no sample"),
        ((-0.1, 1e300), "too long"),
    ],
)
def test_what_is_no_window_is_refused_with_a_way_out(window: tuple[float, float], word: str) -> None:
    with pytest.raises(Refused, match=f"^--window: .*{word}"):
        window_samples(window, 100.0)


@given(
    onsets=st.lists(st.none() | st.integers(-50, 1050), max_size=40),
    first=st.integers(-40, 0),
    last=st.integers(1, 60),
    begin=st.integers(0, 900),
    length=st.integers(1, 100),
)
def test_each_event_of_the_part_is_a_trial_or_is_counted(
    onsets: list[int | None], first: int, last: int, begin: int, length: int
) -> None:
    part = begin, begin + length
    chosen = choose(onsets, window=(first, last), part=part)
    inside = [onset for onset in onsets if onset is not None and part[0] <= onset < part[1]]
    assert len(chosen.trials) + chosen.dropped == len(inside)
    assert chosen.without_onset == onsets.count(None)
    for trial in chosen.trials:
        assert trial.onset == onsets[trial.event]
        assert (trial.start - trial.onset, trial.stop - trial.onset) == (first, last)
        assert part[0] <= trial.start
        assert trial.stop <= part[1]
    assert [trial.event for trial in chosen.trials] == sorted(trial.event for trial in chosen.trials)


@given(onsets=st.lists(st.integers(0, 400), max_size=12), last=st.integers(1, 60))
def test_an_overlap_is_found_exactly_when_two_trials_share_a_sample(onsets: list[int], last: int) -> None:
    trials = choose(onsets, window=(0, last), part=(0, 1000)).trials
    covered = [sample for trial in trials for sample in range(trial.start, trial.stop)]
    found = first_overlap(trials)
    assert (found is not None) == (len(covered) != len(set(covered)))
    if found is not None:
        assert max(found[0].start, found[1].start) < min(found[0].stop, found[1].stop)


@given(
    events=st.lists(st.tuples(st.floats(0, 30), st.sampled_from(["face", "house", "n/a", "é/x"])), max_size=30),
    rate=RATES,
)
def test_the_label_at_each_onset_is_the_number_of_its_word(events: list[tuple[float, str]], rate: float) -> None:
    window = window_samples((-0.1, 0.4), rate)
    part = 0, math.floor(30 * rate)
    chosen = choose([sample_index(onset, rate) for onset, _ in events], window=window, part=part)
    numbers = stimulus_ids(word for _, word in events)
    words = {number: word for word, number in numbers.items()}
    assert sorted(words) == list(range(1, len(numbers) + 1))
    assert [words[number] for number in sorted(words)] == sorted(words.values())
    for trial in chosen.trials:
        assert words[numbers[events[trial.event][1]]] == events[trial.event][1]
        assert abs(trial.onset - events[trial.event][0] * rate) <= 0.5 + 1e-6


def test_trials_of_unlike_events_at_one_sample_overlap() -> None:
    one, other = Trial(start=5, stop=9, onset=5, event=0), Trial(start=5, stop=9, onset=5, event=1)
    assert first_overlap([other, one]) == (one, other)
    assert first_overlap([one]) is None
