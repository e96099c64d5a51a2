"""From the bytes of an events.tsv to the rows of events.parquet."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.events import FIXED_COLUMNS, ROW_GROUP_ROWS
from contract.samples import sample_index
from tasks.events.parquet import write_parquet
from tasks.events.parse import parse_events
from tasks.events.rows import event_rows, read_rows

ENTITIES = {"sub": "01", "task": "rest", "run": "2"}
GROUPS = (("eeg_250hz", 250.0),)


def rows_of(
    text: str, zarr: str = "a.zarr", groups: tuple[tuple[str, float | None], ...] = GROUPS
) -> list[dict[str, object]]:
    data, count = event_rows(parse_events(text.encode()), zarr=zarr, entities=ENTITIES, groups=groups)
    rows: list[dict[str, object]] = read_rows(data).to_pylist()
    assert len(rows) == count
    return rows


def test_unknown_onsets_are_kept_and_come_last_in_file_order() -> None:
    events = parse_events(b"onset\tduration\tvalue\n2.0\t1\ta\nn/a\t1\tb\nnan\t1\tc\n\t1\td\n0.5\t1\te\n")
    assert events.onset_s == (0.5, 2.0, None, None, None)
    assert events.value == ("e", "a", "b", "c", "d")
    assert events.n_events == 5


def test_equal_onsets_keep_the_order_of_the_file() -> None:
    lines = "".join(f"1.0\t0\t{i}\n" for i in range(40))
    assert parse_events(f"onset\tduration\tvalue\n{lines}".encode()).value == tuple(map(str, range(40)))


@pytest.mark.parametrize(
    "cell", ["1,500", "1,5,0", "1.5,0", "1_000", "inf", "-inf", "NaN", "one", "0x10", "1e999", "١"]
)
def test_what_is_no_finite_decimal_number_is_null(cell: str) -> None:
    assert parse_events(f"onset\tduration\n{cell}\t0\n".encode()).onset_s == (None,)


@pytest.mark.parametrize(("cell", "value"), [("1.5", 1.5), ("-3", -3.0), ("1e-3", 0.001), (".5", 0.5), ("+2.", 2.0)])
def test_decimal_numbers_are_read(cell: str, value: float) -> None:
    assert parse_events(f"onset\tduration\n{cell}\t0\n".encode()).onset_s == (value,)


def test_a_byte_order_mark_hides_no_onset() -> None:
    for data in ("onset\tduration\n1\t0\n".encode("utf-8-sig"), "onset\tduration\n1\t0\n".encode("utf-16")):
        assert parse_events(data).onset_s == (1.0,)


def test_onsets_that_are_missing_and_that_are_no_number_are_counted_apart() -> None:
    assert parse_events(b"onset\tduration\n1\t0\nn/a\t0\n1,500\t0\ninf\tlong\n\t0\n").notes == (
        "2 rows have an onset that is no number",
        "1 row has a duration that is no number",
        "2 rows have no onset",
    )
    spellings = "".join(f"{cell}\t{cell}\tx\n" for cell in ("n/a", "N/A", "NA", "nan", "NaN", "None", "null", "", "1"))
    found = parse_events(f"onset\tduration\tvalue\n{spellings}".encode())
    assert (found.onset_s, found.notes) == ((1.0, *[None] * 8), ("8 rows have no onset",))


@pytest.mark.parametrize(
    ("rows", "onsets", "durations"),
    [
        ("0,5\t1\n1,25\t0,1\n", (0.5, 1.25), (1.0, 0.1)),
        ("12,345\t0,2\n", (12.345,), (0.2,)),
        ("1,5\t0\n2.5\t0\n", (2.5, None), (0.0, 0.0)),
        ("1,5\t0.5\n", (None,), (0.5,)),
        ("1,234\t0\n2,345\t0\n", (None, None), (0.0, 0.0)),
        ("-,5\tn/a\n1,5e1\tn/a\n", (-0.5, 15.0), (None, None)),
    ],
)
def test_a_comma_is_a_decimal_one_where_the_whole_file_says_so(
    rows: str, onsets: tuple[float | None, ...], durations: tuple[float | None, ...]
) -> None:
    events = parse_events(f"onset\tduration\n{rows}".encode())
    assert (events.onset_s, events.duration_s) == (onsets, durations)
    read = "the comma of the onset column is read as a decimal one"
    assert (read in events.notes) == (None not in onsets)


@pytest.mark.parametrize(("data", "has"), [(b"Onset\tx\n", True), (b"time\tx\n1\t2\n", False), (b"", False)])
def test_a_table_tells_whether_it_has_onsets_at_all(data: bytes, has: bool) -> None:
    assert parse_events(data).has_onset_column is has


def test_known_columns_match_in_any_case_and_the_first_wins() -> None:
    (row,) = rows_of("Onset\tDURATION\tHED\thed\tvalue\tValue\n1\t2\tx\ty\t3\t4\n")
    assert (row["onset_s"], row["duration_s"], row["hed"], row["value"]) == (1.0, 2.0, "x", "3")
    assert {name: row[name] for name in row if name not in FIXED_COLUMNS} == {"Value": "4", "x_hed": "y"}


def test_a_column_named_like_a_fixed_one_is_renamed_and_others_stand_in_alphabetical_order() -> None:
    (row,) = rows_of("onset\tduration\tzeta\tsubject\talpha\n1\t0\tz\ts\ta\n")
    assert list(row) == [*FIXED_COLUMNS, "alpha", "x_subject", "zeta"]
    assert (row["subject"], row["x_subject"], row["session"]) == ("01", "s", None)


def test_a_description_is_the_trial_type_then_the_value_then_none() -> None:
    text = b"onset\tduration\ttrial_type\tvalue\n1\t0\tgo\t1\n2\t0\tn/a\t2\n3\t0\t\tn/a\n"
    assert parse_events(text).descriptions() == ("go", "2", "n/a")


def test_trial_types_leave_out_blank_cells_and_values_are_kept() -> None:
    events = parse_events(b"onset\tduration\ttrial_type\tvalue\n1\t0\tn/a\t1\n2\t0\tn/a\t2\n3\t0\tgo\t1\n")
    assert events.trial_types() == {"go": 1}
    assert events.value == ("1", "2", "1")
    assert parse_events(b"onset\tduration\n1\t0\n").trial_types() == {}


def test_every_group_has_its_own_row_and_sample() -> None:
    rows = rows_of(
        "onset\tduration\n1.001\t0\nn/a\t0\n", groups=(("meg_250hz", 250.0), ("eeg_100hz", 100.0), ("x", None))
    )
    assert [(r["group_name"], r["sample_index"]) for r in rows] == [
        ("eeg_100hz", 100),
        ("meg_250hz", 250),
        ("x", None),
        ("eeg_100hz", None),
        ("meg_250hz", None),
        ("x", None),
    ]


@given(st.lists(st.floats(-1e6, 1e6, allow_nan=False)), st.sampled_from([250.0, 249.945, 1000.0]))
def test_the_published_sample_is_the_formula_on_the_published_onset(onsets: list[float], rate: float) -> None:
    rows = rows_of("onset\tduration\n" + "".join(f"{o!r}\t0\n" for o in onsets), groups=(("g", rate),))
    assert [r["sample_index"] for r in rows] == [sample_index(float(r["onset_s"]), rate) for r in rows]  # type: ignore[arg-type]  # no onset is null here
    assert [r["onset_s"] for r in rows] == sorted(onsets)


@given(st.binary(max_size=400))
def test_no_bytes_raise_and_every_row_is_published(data: bytes) -> None:
    events = parse_events(data)
    _, count = event_rows(events, zarr="a.zarr", entities={}, groups=GROUPS)
    assert count == events.n_events
    assert all(o is None or math.isfinite(o) for o in events.onset_s)


def ipc(text: str, zarr: str) -> tuple[str, bytes]:
    return zarr, event_rows(parse_events(text.encode()), zarr=zarr, entities=ENTITIES, groups=GROUPS)[0]


def test_the_file_has_the_columns_types_and_rows_of_all_stores(tmp_path: Path) -> None:
    stores = [
        ipc("onset\tduration\ttrial_type\tzeta\n1\t0.1\tgo\tz\n", "a.zarr"),
        ipc("onset\tduration\n", "b.zarr"),
        ipc("onset\tduration\talpha\n2\tn/a\tq\nn/a\t1\tn/a\n", "c.zarr"),
    ]
    out = tmp_path / "events.parquet"
    assert write_parquet(iter(stores), out) == 3
    table = pq.read_table(out)
    text = pa.dictionary(pa.int32(), pa.string())
    kinds = {"float64": pa.float64(), "float32": pa.float32(), "int64": pa.int64(), "dictionary": text}
    assert table.schema.names == [*FIXED_COLUMNS, "alpha", "zeta"]
    assert [table.schema.field(name).type for name in FIXED_COLUMNS] == [kinds[kind] for kind in FIXED_COLUMNS.values()]
    assert table.schema.field("alpha").type == text
    assert table.column("store_path").to_pylist() == ["a.zarr", "c.zarr", "c.zarr"]
    assert table.column("alpha").to_pylist() == [None, "q", None]
    assert table.column("zeta").to_pylist() == ["z", None, None]
    assert table.column("onset_s").to_pylist() == [1.0, 2.0, None]
    column = pq.ParquetFile(out).metadata.row_group(0).column(0)
    assert column.compression == "ZSTD"


def test_row_groups_close_between_stores_once_they_are_full(tmp_path: Path) -> None:
    body = "".join(f"{i}\t0\n" for i in range(ROW_GROUP_ROWS // 2 - 1))
    stores = [ipc(f"onset\tduration\n{body}", f"{i}.zarr") for i in range(4)]
    out = tmp_path / "events.parquet"
    write_parquet(iter(stores), out)
    file = pq.ParquetFile(out)
    assert file.num_row_groups == 2
    first = file.read_row_group(0).column("store_path").to_pylist()
    assert set(first) == {"0.zarr", "1.zarr", "2.zarr"}
    statistics = file.metadata.row_group(0).column(0).statistics
    assert (statistics.min, statistics.max) == ("0.zarr", "2.zarr")


def test_equal_rows_give_equal_bytes_and_no_rows_no_file(tmp_path: Path) -> None:
    stores = [ipc("onset\tduration\tb\ta\n1\t0\tx\ty\n", "a.zarr")]
    for name in ("one", "two"):
        write_parquet(stores, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert write_parquet([ipc("onset\tduration\n", "a.zarr")], tmp_path / "none") == 0
    assert not (tmp_path / "none").exists()


def test_stores_out_of_order_are_refused(tmp_path: Path) -> None:
    stores = [ipc("onset\tduration\n1\t0\n", "b.zarr"), ipc("onset\tduration\n1\t0\n", "a.zarr")]
    with pytest.raises(ValueError, match="order"):
        write_parquet(stores, tmp_path / "x")
