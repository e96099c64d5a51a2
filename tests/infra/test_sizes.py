from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.errors import Refused
from infra.sizes import format_bytes, parse_bytes


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 0),
        ("1048576", 2**20),
        ("8GiB", 8 * 2**30),
        (" 8 gib ", 8 * 2**30),
        ("8GB", 8 * 10**9),
        ("1.5TiB", 3 * 2**39),
        ("0.1kB", 100),
        ("12B", 12),
        ("1.9B", 1),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_a_size_is_read_as_it_is_written(text: str, size_bytes: int) -> None:
    assert parse_bytes(text) == size_bytes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GiB",
        "8G",
        "8g",
        "-1",
        "1e9",
        "8 GiB!",
        "8,5GiB",
        "٣GiB",
        "nan",
        "inf",
        "8gibb",
        "1.GiB",
        "9223372036854775808",
        "9" * 30,
        "8\x00GiB",
    ],
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        parse_bytes(text)


def test_an_ambiguous_unit_is_refused_with_both_ways_out() -> None:
    with pytest.raises(Refused, match="8GiB or 8GB"):
        parse_bytes("8G")


@given(st.integers(0, 2**63 - 1))
def test_a_plain_number_of_bytes_is_exact(size_bytes: int) -> None:
    assert parse_bytes(str(size_bytes)) == size_bytes


@given(st.integers(1, 2**62))
def test_a_shown_size_reads_back_within_five_percent(size_bytes: int) -> None:
    shown = format_bytes(size_bytes)
    assert abs(parse_bytes(shown) - size_bytes) <= 0.05 * size_bytes
    # never four digits before the unit but below 1 KiB, where bytes are exact
    assert len(shown.split(".")[0].rstrip("BKMGTPi")) <= 4


@given(st.integers(1, 1023), st.integers(0, 5))
def test_whole_multiples_of_a_unit_read_back_exactly(count: int, step: int) -> None:
    assert parse_bytes(format_bytes(count * 1024**step)) == count * 1024**step
