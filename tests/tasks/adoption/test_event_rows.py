from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.adoption.event_rows import rows_by_store
from tasks.events.parquet import write_parquet
from tasks.events.parse import parse_events
from tasks.events.rows import event_rows, read_rows

FIRST = b"onset\tduration\ttrial_type\tside\n1\t0\tgo\tleft\n2.5\t0.1\tstop\tn/a\nn/a\t0\tgo\tright\n"
SECOND = b"onset\tduration\tvalue\n0.5\t0\t7\n"


def rows_of(name: str, events: bytes) -> tuple[str, bytes]:
    data, _count = event_rows(
        parse_events(events), zarr=f"{name}.zarr", entities={"sub": name}, groups=[("eeg_250hz", 250.0)]
    )
    return f"{name}.zarr", data


def test_the_rows_of_each_store_come_back_as_its_conversion_left_them(tmp_path: Path) -> None:
    stores = [rows_of("01", FIRST), rows_of("02", SECOND), rows_of("03", FIRST)]
    write_parquet(stores, tmp_path / "events.parquet")
    found = list(rows_by_store(tmp_path / "events.parquet"))
    assert [(zarr, count) for zarr, _rows, count in found] == [("01.zarr", 3), ("02.zarr", 1), ("03.zarr", 3)]
    for (zarr, data), (_zarr, again, _count) in zip(stores, found, strict=True):
        assert read_rows(again).equals(read_rows(data)), zarr
    write_parquet([(zarr, data) for zarr, data, _count in found], tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "events.parquet").read_bytes()


def test_a_store_whose_rows_span_row_groups_is_one(tmp_path: Path) -> None:
    write_parquet([rows_of("01", FIRST), rows_of("02", SECOND)], tmp_path / "whole.parquet")
    pq.write_table(pq.read_table(tmp_path / "whole.parquet"), tmp_path / "cut.parquet", row_group_size=2)
    found = {zarr: read_rows(rows) for zarr, rows, _count in rows_by_store(tmp_path / "cut.parquet")}
    assert found["01.zarr"].equals(read_rows(rows_of("01", FIRST)[1]))


def test_rows_in_two_places_and_foreign_files_are_no_events(tmp_path: Path) -> None:
    write_parquet([rows_of("01", FIRST), rows_of("02", SECOND)], tmp_path / "whole.parquet")
    table = pq.read_table(tmp_path / "whole.parquet")
    pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), tmp_path / "twice.parquet")
    with pytest.raises(ValueError, match="two places"):
        list(rows_by_store(tmp_path / "twice.parquet"))
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(ValueError, match="no column store_path"):
        list(rows_by_store(tmp_path / "other.parquet"))
    (tmp_path / "text.parquet").write_text("no parquet at all")
    with pytest.raises(ValueError, match="cannot be read"):
        list(rows_by_store(tmp_path / "text.parquet"))
