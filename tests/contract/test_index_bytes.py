"""An index has one form in bytes, and survives being written, read, cut and built another way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from document_examples import ADDRESSES, LOCAL, facts, index
from hypothesis import given
from hypothesis import strategies as st

from contract.codes import PendingReason
from contract.documents import compact, dump, parse, write_index
from contract.errors import Refused
from contract.index import (
    FailureEntry,
    GroupEntry,
    Index,
    IndexHead,
    LocalIndex,
    PendingEntry,
    StoreEntry,
)
from contract.index_check import check_index
from contract.layout import store_path

NAMES = st.lists(
    st.text("abcé漢-_ .", min_size=1, max_size=6).filter(lambda t: t not in (".", "..")), min_size=1, max_size=3
).map(lambda parts: "/".join(parts) + ".edf")
NUMBERS = st.floats(0.001, 1e9, allow_nan=False)
GROUPS = st.builds(
    GroupEntry,
    name=st.just("eeg_250hz"),
    modality=st.none() | st.just("EEG"),
    rate=st.none() | NUMBERS,
    n_samples=st.none() | st.integers(0, 10**9),
    duration_s=st.none() | NUMBERS | st.just(-0.0),
    source_rate_hz=st.none() | NUMBERS,
    n_view_levels=st.none() | st.integers(0, 12),
)


def stores_of(paths: list[str]) -> st.SearchStrategy[list[StoreEntry]]:
    def store(path: str) -> st.SearchStrategy[StoreEntry]:
        return st.builds(
            StoreEntry,
            path=st.just(path),
            zarr=st.just(store_path(path)),
            derived=st.just(False),
            groups=st.none() | st.lists(GROUPS, max_size=2),
            power_line_frequency=st.none() | st.sampled_from([50.0, 60]),
            trial_types=st.none() | st.dictionaries(st.text(max_size=4), st.integers(0, 9), max_size=3),
            split_members=st.none() | st.just([path]),
        )

    return st.tuples(*map(store, paths)).map(lambda entries: sorted(entries, key=lambda entry: entry.zarr))


@st.composite
def indexes(draw: st.DrawFn) -> Index:
    paths = draw(st.lists(NAMES, unique_by=store_path, max_size=6))
    first, second = sorted((draw(st.integers(0, len(paths))), draw(st.integers(0, len(paths)))))
    stores = draw(stores_of(paths[:first]))
    failures = [
        FailureEntry(
            path=path, code="empty_recording", reason="No channels.", detail=draw(st.none() | st.text(max_size=9))
        )
        for path in sorted(paths[first:second])
    ]
    pending = [
        PendingEntry(path=path, zarr=store_path(path), reason=draw(st.sampled_from(PendingReason)), attempts=1)
        for path in sorted(paths[second:])
    ]
    events = draw(st.booleans())
    extra = {"events_parquet": f"{ADDRESSES['data_base']}events.parquet", "events_row_count": 7} if events else {}
    counted = facts(len(stores), len(failures), len(pending), doi=draw(st.none() | st.text(max_size=5)), **extra)
    return Index.model_validate({**counted, "stores": stores, "failures": failures, "pending": pending})


@given(document=indexes())
def test_an_index_survives_being_written_and_read(document: Index) -> None:
    data = dump(document)
    again = parse(Index, data)
    assert again == document
    assert dump(again) == data
    data.decode("ascii")


@given(document=indexes())
def test_an_index_written_from_its_entries_has_the_same_bytes(document: Index) -> None:
    shared = {name: getattr(document, name) for name in IndexHead.model_fields}
    written = write_index(
        IndexHead(**shared),
        (dump(entry) for entry in document.stores),
        (dump(entry) for entry in document.failures),
        (dump(entry) for entry in document.pending),
    )
    assert written == dump(document)


@given(document=indexes(), data=st.data())
def test_the_bytes_do_not_depend_on_how_a_document_was_built(document: Index, data: st.DataObject) -> None:
    fields = list(json.loads(dump(document)).items())
    shuffled = dict(data.draw(st.permutations(fields)))
    assert dump(Index.model_validate(shuffled)) == dump(document)


def test_equal_documents_have_equal_bytes_whatever_the_order_or_sign_of_what_they_were_given() -> None:
    here = StoreEntry(
        path="a.edf",
        zarr="a.zarr",
        derived=False,
        trial_types={"b": 1, "a": 2},
        groups=[GroupEntry(name="g", duration_s=-0.0)],
    )
    there = StoreEntry(
        path="a.edf",
        zarr="a.zarr",
        derived=False,
        trial_types={"a": 2, "b": 1},
        groups=(GroupEntry(name="g", duration_s=0),),
    )
    assert here == there
    assert dump(here) == dump(there)


SPOILT = (
    lambda d: d["stores"].reverse(),
    lambda d: d["stores"].append(d["stores"][-1]),
    lambda d: d.update(store_count=d["store_count"] + 1),
    lambda d: d.update(store_count=d["store_count"] + 1, discovered_count=d["discovered_count"] + 1),
    lambda d: d["stores"][0].update(derived="no"),
    lambda d: d["stores"][0].update(path=d["pending"][0]["path"]),
    lambda d: d["stores"][0].update(surplus=1),
    lambda d: d["failures"][0].update(code="no_such_code"),
    lambda d: d["pending"][0].pop("reason"),
    lambda d: d.update(surplus=1),
    lambda d: d.pop("failures"),
    lambda d: d.update(events_row_count=1),
    lambda d: d.update(contract_base=LOCAL["contract_base"]),
    lambda d: d.update(citation=',"stores":['),
)


@pytest.mark.parametrize("spoil", SPOILT)
@given(document=indexes())
def test_an_index_checked_by_its_entries_is_checked_as_a_whole_one_is(document: Index, spoil: Any) -> None:
    """The verdicts agree on sound documents and on spoilt ones."""
    check_index(dump(document), local=False)
    fields = json.loads(dump(document))
    try:
        spoil(fields)
    except (IndexError, KeyError):
        return
    data = compact(fields)
    for local, model in ((False, Index), (True, LocalIndex)):
        try:
            parse(model, data)
        except Refused:
            with pytest.raises(Refused):
                check_index(data, local=local)
        else:
            check_index(data, local=local)


def test_an_index_that_was_cut_is_refused_wherever() -> None:
    data = dump(index())
    for end in range(0, len(data), 7):
        with pytest.raises(Refused):
            check_index(data[:end], local=False)


def test_entries_of_another_number_than_the_head_says_are_not_written() -> None:
    head = IndexHead.model_validate(facts(1, 0, 0))
    with pytest.raises(ValueError, match="stores"):
        write_index(head, [], [], [])
    with pytest.raises(ValueError, match="pending"):
        write_index(head, [b"{}"], [], [b"{}"])
