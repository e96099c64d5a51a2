from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract import layout
from tasks.plan.fingerprint import conversion_options, options_fingerprint, pairs_encoding, source_fingerprint

_text = st.text(max_size=6) | st.sampled_from(["a", "ab", "b", "", "1:a", "2:ab", "\udcff"])
_inputs = st.dictionaries(_text, _text, max_size=5)


@given(_inputs, st.randoms())
def test_order_does_not_matter(inputs: dict[str, str], random) -> None:
    items = list(inputs.items())
    random.shuffle(items)
    assert source_fingerprint(dict(items)) == source_fingerprint(inputs)


@given(_inputs, _inputs)
def test_equal_fingerprints_are_equal_inputs(one: dict[str, str], other: dict[str, str]) -> None:
    assert (source_fingerprint(one) == source_fingerprint(other)) is (one == other)
    assert (pairs_encoding(one.items()) == pairs_encoding(other.items())) is (one == other)


@given(_inputs.filter(bool), st.data())
def test_any_change_changes_it(inputs: dict[str, str], data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(inputs)))
    before = source_fingerprint(inputs)
    assert source_fingerprint({**inputs, path: inputs[path] + "x"}) != before
    assert source_fingerprint({**inputs, path + "é": ""}) != before or path + "é" in inputs
    assert source_fingerprint({key: value for key, value in inputs.items() if key != path}) != before


@pytest.mark.parametrize(
    ("one", "other"),
    [({"a": "bc"}, {"ab": "c"}), ({"a": "b", "c": "d"}, {"a": "b1:c1:d"}), ({"": "ab"}, {"ab": ""}), ({"a": ""}, {})],
)
def test_texts_that_run_into_each_other_stay_apart(one: dict[str, str], other: dict[str, str]) -> None:
    assert source_fingerprint(one) != source_fingerprint(other)


def test_it_is_pinned_because_a_new_encoding_would_rebuild_every_store() -> None:
    inputs = {"sub-01/eeg/sub-01_task-é_eeg.edf": "stat:1-2-3", "task-é_events.json": "sha256:00"}
    assert source_fingerprint(inputs) == "4ef0846230e71dcb7ed890fa8f31727774989e8a07b449dddf33bf99073452a9"


def test_the_options_are_those_of_the_contract_and_each_counts() -> None:
    options = conversion_options()
    assert options["revision"] == layout.CONVERSION_REVISION
    assert options_fingerprint() == options_fingerprint(options)
    changed = [options_fingerprint({**options, name: "other"}) for name in options]
    assert len({options_fingerprint(), *changed}) == len(options) + 1
    assert options_fingerprint(dict(reversed(options.items()))) == options_fingerprint()
