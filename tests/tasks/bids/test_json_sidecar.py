from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.bids.json_sidecar import parse_json


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_an_object_is_read_in_every_encoding(encoding: str) -> None:
    sidecar = parse_json('{"PowerLineFrequency": 50, "Unit": "µV"}'.encode(encoding))
    assert sidecar.values == {"PowerLineFrequency": 50, "Unit": "µV"}
    assert sidecar.readable


@pytest.mark.parametrize(
    "data", [b"", b"[1]", b"null", b'"x"', b'{"a": 1,}', b"{", b"[" * 100_000, b"9" * 5_000, b'{"a":' * 3_000]
)
def test_a_file_that_holds_no_object_is_not_the_same_as_no_file(data: bytes) -> None:
    sidecar = parse_json(data)
    assert (sidecar.values, sidecar.readable) == ({}, False)
    assert sidecar.notes


def test_repeated_keys_and_numbers_that_are_none_are_noted() -> None:
    sidecar = parse_json(b'{"a": 1, "b": {"c": NaN, "c": 1e999}, "a": 2}')
    assert sidecar.values == {"a": 2, "b": {"c": None}}
    assert len(sidecar.notes) == 4


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r"\ud83d\ude00", "😀"),
        (r"\ud83d", "\ufffd"),
        (r"x\ude00\u0000y", "x\ufffd\ufffdy"),
        (r"\\u0000", r"\u0000"),
    ],
)
def test_nothing_that_a_database_refuses_is_smuggled_in_by_escapes(written: str, value: str) -> None:
    assert parse_json(f'{{"{written}": ["{written}"]}}'.encode()).values == {value: [value]}


@given(st.binary(max_size=80))
def test_no_bytes_make_it_fail(data: bytes) -> None:
    sidecar = parse_json(data)
    assert sidecar.readable or sidecar.notes


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), _json, max_size=4))
def test_a_written_object_is_read_back(values: dict[str, object]) -> None:
    if "\\u0000" in json.dumps(values):
        return
    sidecar = parse_json(json.dumps(values).encode())
    assert sidecar.values == values
    assert sidecar.notes == ()
