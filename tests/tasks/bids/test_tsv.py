from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.bids.tsv import Table, parse_tsv

CLEAN = Table(("onset", "value"), (("1.0", "a"), ("2.0", "µ")))


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("onset\tvalue\n1.0\ta\n2.0\tµ\n".encode(), "utf-8"),
        ("\ufeffonset\tvalue\n1.0\ta\n2.0\tµ".encode(), "utf-8"),
        ("onset\tvalue\n1.0\ta\n2.0\tµ\n".encode("utf-16"), "utf-16"),
        (b"\xfe\xff" + "onset\tvalue\n1.0\ta\n2.0\tµ\n".encode("utf-16-be"), "utf-16"),
        ("onset\tvalue\n1.0\ta\n2.0\tµ\n".encode("cp1252"), "cp1252"),
        ("onset\tvalue\r\n1.0\ta\r\n2.0\tµ\r\n".encode(), "utf-8"),
        ("onset\tvalue\r1.0\ta\r2.0\tµ\r".encode(), "utf-8"),
        ("onset\tvalue\t\n1.0\ta\t\n\n2.0\tµ\t\n\n".encode(), "utf-8"),
        (b"\xef\xbb\xbf" + "onset\tvalue\n1.0\ta\n2.0\tµ\n".encode("cp1252"), "cp1252"),
        (' onset \t"value"\n1.0\t"a"\n  2.0\tµ  \n'.encode(), "utf-8"),
        ("onset\tvalue\n1.0\ta\n2.0\tµ\t\t\n".encode(), "utf-8"),
    ],
)
def test_one_table_in_many_spellings_is_one_table(data: bytes, encoding: str) -> None:
    table = parse_tsv(data)
    assert (table.headers, table.rows, table.encoding) == (CLEAN.headers, CLEAN.rows, encoding)
    assert table.notes == (() if encoding == "utf-8" else (f"the file is {encoding}, not UTF-8",))


def test_a_mark_of_utf16_before_something_else_is_no_reason_to_fail() -> None:
    assert parse_tsv(b"\xff\xfename\nA\n").headers == ("ÿþname",)
    assert parse_tsv(b"n\x81me\n\xb5V\n") == Table(
        ("n\x81me",), (("µV",),), "latin-1", ("the file is latin-1, not UTF-8",)
    )


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ('a\t"b\tc"\td', ["a", "b\tc", "d"]),
        ('"say ""hi"""\tb\tc', ['say "hi"', "b", "c"]),
        ('5" wide\tb\tc', ['5" wide', "b", "c"]),
        ('"open\tb\tc', ['"open', "b", "c"]),
        ('"a" b\tb\tc', ['"a" b', "b", "c"]),
        ('""\tb\tc', ["", "b", "c"]),
        ('"\tb\t"', ["\tb\t".strip(), "", ""]),
        ("n/a\tNaN\t ", ["n/a", "NaN", ""]),
    ],
)
def test_quotes_are_quotes_only_around_a_whole_cell(line: str, cells: list[str]) -> None:
    assert parse_tsv(f"x\ty\tz\n{line}\nlast\t\t\n".encode()).rows == (tuple(cells), ("last", "", ""))


def test_ragged_rows_are_filled_and_cut_with_a_note() -> None:
    table = parse_tsv(b"a\tb\tc\n1\n1\t2\t3\t4\n1\t2\t3\t\t\n")
    assert table.rows == (("1", "", ""), ("1", "2", "3"), ("1", "2", "3"))
    assert table.notes == (
        "1 row has fewer cells than the header",
        "1 row has cells beyond the header, which were left out",
    )


def test_a_column_without_header_is_left_out_and_repeated_headers_stay_apart() -> None:
    table = parse_tsv(b"onset\t\tHED\thed\tvalue\tvalue\tx_value\n1\tlost\tA\tb\tc\td\te\n")
    assert table.headers == ("onset", "HED", "hed", "value", "x_x_value", "x_value")
    assert table.rows == (("1", "A", "b", "c", "d", "e"),)
    assert table.column("value") == ("c",)
    assert table.column("x_x_value") == ("d",)
    assert len(table.notes) == 2


def test_a_column_is_found_exactly_and_then_in_any_case() -> None:
    table = parse_tsv(b"HED\thed\tOnset\n1\t2\t3\n")
    assert (table.column("hed"), table.column("Hed"), table.column("onset")) == (("2",), ("1",), ("3",))
    assert table.column("duration") is None


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xef\xbb\xbf", b" \t \n"])
def test_an_empty_file_is_an_empty_table(data: bytes) -> None:
    assert (parse_tsv(data).headers, parse_tsv(data).rows) == ((), ())


def test_nul_never_reaches_a_cell() -> None:
    table = parse_tsv(b"a\tb\n1\x00\t2\n")
    assert table.rows == (("1", "2"),)
    assert table.notes == ("NUL characters were left out",)


@given(st.binary(max_size=200))
def test_no_bytes_make_the_parser_fail_and_rows_are_as_wide_as_the_header(data: bytes) -> None:
    table = parse_tsv(data)
    assert all(len(row) == len(table.headers) for row in table.rows)
    assert len(set(table.headers)) == len(table.headers)
    assert "" not in table.headers
    for row in (table.headers, *table.rows):
        "".join(row).encode()


_cell = st.text(st.characters(exclude_characters="\x00\r\n", exclude_categories=["Cs"]), max_size=8).map(str.strip)


@given(
    st.lists(_cell.filter(bool), min_size=1, max_size=4, unique=True).flatmap(
        lambda headers: st.tuples(
            st.just(headers), st.lists(st.tuples(*[_cell] * len(headers)).filter(any), max_size=6)
        )
    ),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_what_was_written_with_quotes_is_read_back(
    table: tuple[list[str], list[tuple[str, ...]]], encoding: str, end: str
) -> None:
    headers, rows = table

    def quoted(cell: str) -> str:
        return '"' + cell.replace('"', '""') + '"'

    text = end.join("\t".join(quoted(cell) for cell in line) for line in (headers, *rows))
    if text.startswith("\ufeff"):
        return
    read = parse_tsv(text.encode(encoding))
    assert (read.headers, read.rows) == (tuple(headers), tuple(rows))
