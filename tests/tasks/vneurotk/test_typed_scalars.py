from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.errors import RecordingFailed, Refused
from tasks.vneurotk.typed_scalars import ENCODING, BadScalars, Missing, Scalar, ScalarType, TypedScalars, as_text

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
IDENTIFIERS = st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
MISSING = st.sampled_from([None, Missing.NA, Missing.NAT, math.nan])
NASTY: list[Scalar] = [
    1, "1", True, 1.0, 0, "0", False, -0.0, 0.0, 2**70, -(2**70), 5e-324, 1.7976931348623157e308, 0.1,
    "", "faces/../é", "日本", "/", ".", "nan", "None", "😀", "a\nb\t", "\x01",
]  # fmt: skip


def through_a_file(values: list[Any], *, missing: bool = False) -> list[Scalar]:
    with h5py.File("memory.h5", "w", driver="core", backing_store=False) as file:
        TypedScalars.encode(values, missing=missing).write(file, "ids")
        return TypedScalars.read(file["ids"], most=10_000).decode(missing=missing)


def same(left: Any, right: Any) -> bool:
    """Equal in type, value and sign."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return (math.isnan(left) and math.isnan(right)) or (left, math.copysign(1, left)) == (
            right,
            math.copysign(1, right),
        )
    return bool(left == right)


@given(st.lists(IDENTIFIERS, max_size=20))
def test_identifiers_come_back_as_they_were(values: list[Scalar]) -> None:
    again = through_a_file(values)
    assert len(again) == len(values)
    assert all(map(same, again, values))


@given(st.lists(IDENTIFIERS | MISSING, max_size=20))
def test_labels_with_missing_ones_come_back_as_they_were(values: list[Scalar]) -> None:
    assert all(map(same, through_a_file(values, missing=True), values))


def test_values_that_look_alike_are_kept_apart() -> None:
    again = through_a_file(NASTY)
    assert all(map(same, again, NASTY))
    assert [type(value) for value in again[:4]] == [int, str, bool, float]


def test_what_stands_on_disk_is_what_the_format_says(tmp_path: Path) -> None:
    values = [True, False, 7, -0.0, 0.5, "é/x"]
    absent = [None, pd.NA, pd.NaT, float("nan")]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        TypedScalars.encode([*values, *absent], missing=True).write(file, "ids")
    with h5py.File(tmp_path / "a.h5") as file:
        group = file["ids"]
        assert dict(group.attrs) == {"encoding": ENCODING}
        assert set(group) == {"types", "values"}
        assert (group["types"].dtype, group["types"].shape) == (np.uint8, (10,))
        assert group["types"][()].tolist() == [1, 1, 2, 3, 3, 4, 5, 6, 7, 3]
        kind = h5py.check_string_dtype(group["values"].dtype)
        assert (kind.encoding, kind.length) == ("utf-8", None)
        texts = [text.decode() for text in group["values"][()]]
    assert texts == ["1", "0", "7", "-0x0.0p+0", "0x1.0000000000000p-1", "é/x", "", "", "", "nan"]


@given(st.integers(-(2**63), 2**63 - 1), st.floats(width=32, allow_nan=False, allow_infinity=False), st.booleans())
def test_numbers_of_numpy_are_numbers(whole: int, real: float, truth: bool) -> None:
    values = [np.int64(whole), np.float32(real), np.float64(real), np.bool_(truth), np.str_("é")]
    assert all(map(same, through_a_file(values), [whole, float(np.float32(real)), real, truth, "é"]))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (float("nan"), "missing value"),
        (float("inf"), "finite"),
        (-float("inf"), "finite"),
        (None, "missing value"),
        (pd.NA, "missing value"),
        (pd.NaT, "missing value"),
        ("a\0b", "NUL"),
        ("\ud800", "Unicode"),
        pytest.param(10**4300, "4300 digits", id="long"),
        (b"bytes", "a bool, an integer"),
        (1j, "a bool, an integer"),
        ((1,), "a bool, an integer"),
        (np.datetime64("2020-01-01"), "a bool, an integer"),
        (np.longdouble("inf"), "a bool, an integer"),
        (pd.Timestamp("2020-01-01"), "a bool, an integer"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_value(value: Any, said: str) -> None:
    with pytest.raises(Refused, match=said) as refused:
        TypedScalars.encode([1, value], what="stimulus identifiers")
    assert refused.value.sentence.startswith("stimulus identifiers: ")


def test_an_infinity_is_refused_where_values_may_be_missing() -> None:
    with pytest.raises(Refused, match="finite"):
        TypedScalars.encode([math.inf], missing=True)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (1, "True"), (1, ""), (1, "2"), (2, "1.0"), (2, "1_0"), (2, " 1"), (2, "+1"), (2, "٣"), (2, ""), (2, "9" * 5000),
        (3, "inf"), (3, "-inf"), (3, "nan"), (3, "x"), (3, "0x1p99999"), (5, ""), (6, ""), (7, ""), (5, "x"),
    ],
)  # fmt: skip
def test_a_text_that_is_none_of_its_type_is_an_error(code: int, text: str) -> None:
    with pytest.raises(BadScalars):
        TypedScalars((ScalarType(code),), (text,)).decode()


def spoiled(group: Any, how: str) -> None:
    if how == "encoding":
        group.attrs["encoding"] = "vneurotk_scalar_v2"
    elif how == "no encoding":
        del group.attrs["encoding"]
    elif how == "lengths":
        del group["types"]
        group["types"] = np.array([2], dtype=np.uint8)
    elif how == "code":
        group["types"][0] = 9
    elif how == "axes":
        del group["types"], group["values"]
        group["types"] = np.array([[2]], dtype=np.uint8)
        group["values"] = np.array([["1"]], dtype=object)
    elif how == "real types":
        del group["types"]
        group["types"] = np.array([2.0, 2.0])
    elif how == "numbers":
        del group["values"]
        group["values"] = np.array([1, 2])


@pytest.mark.parametrize("how", ["encoding", "no encoding", "lengths", "code", "axes", "real types", "numbers"])
def test_a_list_that_is_encoded_otherwise_is_an_error(tmp_path: Path, how: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        TypedScalars.encode([1, 2]).write(file, "ids")
        spoiled(file["ids"], how)
        with pytest.raises(BadScalars):
            TypedScalars.read(file["ids"], most=10)


def test_a_list_that_declares_too_much_is_not_read(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        group = file.create_group("ids")
        group.attrs["encoding"] = ENCODING
        group.create_dataset("types", shape=(10**12,), chunks=(1000,), dtype=np.uint8)
        group.create_dataset("values", shape=(10**12,), chunks=(1000,), dtype=h5py.string_dtype())
        with pytest.raises(RecordingFailed) as failed:
            TypedScalars.read(group, most=100_000)
        assert "more than the file can hold" in (failed.value.detail or "")
        TypedScalars.encode(range(11)).write(file, "few")
        with pytest.raises(BadScalars, match="11 values are listed, more than 10"):
            TypedScalars.read(file["few"], most=10)
        with pytest.raises(BadScalars, match="the encoding is None"):
            TypedScalars.read(None, most=10)


@pytest.mark.parametrize(("value", "text"), [(None, ""), (Missing.NA, ""), (math.nan, ""), (True, "True"), (7, "7")])
def test_a_value_is_shown_as_a_cell(value: Scalar, text: str) -> None:
    assert as_text(value) == text
