"""Windows, envelopes and events through our own reader: from a folder, a bucket, and over HTTP from either."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fault_proxy import Fault
from hypothesis import given
from hypothesis import strategies as st
from loopback import running
from s3_server import S3Place
from signal_store import (
    CHUNK,
    DATASET,
    FACTOR,
    GROUP,
    LABELS,
    N_SAMPLES,
    PATH,
    RATE_HZ,
    SHARD,
    ZARR,
    digital,
    envelope,
    physical,
    put_index,
    put_version,
)

from api.app import create_app
from contract.errors import NotServed, Refused, StorageError, StorageUnavailable
from contract.layout import events_key
from contract.window import WindowAsked
from infra.settings import Settings
from infra.storage import open_target
from infra.storage.folder import FolderTarget
from infra.storage.http_archive import HttpArchive
from infra.storage.protocol import Target
from tasks.read import events as events_reader
from tasks.read.events import read_events
from tasks.read.index import find_entry, read_catalog, read_index, verify_status_of
from tasks.read.place import Place, archive_place, target_place
from tasks.read.recipe import recipe_for
from tasks.read.store import StoreReading, read_consistently
from tasks.read.window import blocks_of, read_window, select_in


@dataclass
class Served:
    """A target, and the place by which a test reads it."""

    target: Target
    place: Place
    scratch: Path
    put: int = 0
    fetched: list[str] = field(default_factory=list)

    def publish(self) -> int:
        """Put the next version of the store; its number."""
        self.put += 1
        put_version(self.target, self.scratch, self.put)
        return self.put


@contextmanager
def place_of(target: Target, *, where: str) -> Iterator[Place]:
    if not where.startswith("http"):
        yield target_place(target)
        return
    settings = Settings(redirect="signed" if "sent on" in where else "never")
    with running(create_app(target, settings)) as port, closing(archive_place(f"http://127.0.0.1:{port}")) as place:
        yield place


EVERYWHERE = ["folder", "bucket", "http", "http over a bucket", "http sent on to a bucket"]


@pytest.fixture(params=["folder", "http"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    where: str = request.param
    target: Target = FolderTarget(tmp_path / "served", port=8321)
    if where.endswith("bucket"):
        s3: S3Place = request.getfixturevalue("s3")
        target = open_target(f"s3://{s3.name}/kept", s3.settings())
    put_index(target)
    with place_of(target, where=where) as place:
        yield Served(target, place, tmp_path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A folder with version 1 of the store, for tests that change nothing."""
    root = tmp_path_factory.mktemp("reading")
    target = FolderTarget(root / "served", port=8321)
    put_index(target)
    put_version(target, root, 1)
    return target_place(target)


def window(place: Place, **asked: Any) -> np.ndarray:
    entry = find_entry(read_index(place, DATASET), PATH)
    return read_window(place, DATASET, entry, WindowAsked(recording=PATH, **asked)).values


@pytest.mark.parametrize("served", EVERYWHERE, indirect=True)
def test_a_window_is_what_was_written_wherever_it_is_read(served: Served) -> None:
    version = served.publish()
    assert np.array_equal(window(served.place), physical(version))
    part = window(served.place, start_s=11.5, stop_s=25, channels=("Cz", "Fp1"))
    assert np.array_equal(part, physical(version)[[2, 0], 1150:2500])
    assert np.array_equal(window(served.place, level=1), envelope(version))


@given(
    start=st.integers(0, N_SAMPLES - 1),
    length=st.integers(1, N_SAMPLES + 50),
    rows=st.lists(st.sampled_from(range(len(LABELS))), unique=True),
    level=st.sampled_from([0, 1]),
)
def test_any_window_is_that_part_of_the_whole(
    folder: Place, start: int, length: int, rows: list[int], level: int
) -> None:
    got = window(
        folder,
        start_s=start / RATE_HZ,
        stop_s=(start + length) / RATE_HZ,
        channels=tuple(LABELS[row] for row in rows),
        level=level,
    )
    end = min(N_SAMPLES, start + length)
    if level:
        expected = envelope(1)[:, rows or slice(None), start // FACTOR : -(-end // FACTOR)]
    else:
        expected = physical(1)[rows or slice(None), start:end]
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("served", EVERYWHERE, indirect=True)
def test_a_store_that_is_replaced_between_two_reads_is_never_mixed(served: Served) -> None:
    served.publish()
    seen: list[int] = []

    def work(reading: StoreReading) -> tuple[np.ndarray, np.ndarray]:
        array = reading.array(f"{GROUP}/0")
        first = array[:, :CHUNK]
        seen.append(len(seen))
        if len(seen) < 3:
            served.publish()
        return first, array[:, 2 * SHARD :]

    first, last = read_consistently(served.place, DATASET, ZARR, work)
    assert len(seen) == 3
    assert np.array_equal(first, digital(3)[:, :CHUNK])
    assert np.array_equal(last, digital(3)[:, 2 * SHARD :])


def test_what_a_replacement_makes_of_a_reader_is_not_its_error_but_its_own_error_is(served: Served) -> None:
    served.publish()
    calls: list[int] = []

    def confused(reading: StoreReading) -> int:
        calls.append(1)
        if len(calls) == 1:
            served.publish()
            raise ValueError("half of one store and half of another")
        return len(calls)

    assert read_consistently(served.place, DATASET, ZARR, confused) == 2
    with pytest.raises(ZeroDivisionError):
        read_consistently(served.place, DATASET, ZARR, lambda _: 1 // 0)


@pytest.mark.parametrize("served", ["folder", "bucket"], indirect=True)
def test_a_store_without_a_root_is_waited_for_and_then_told_as_trouble(served: Served) -> None:
    served.publish()
    served.target.delete(f"{DATASET}/zarr/{ZARR}/zarr.json")
    with pytest.raises(StorageUnavailable, match="being replaced"):
        read_consistently(served.place, DATASET, ZARR, lambda _: 1, waits_s=(0.01, 0.01))
    served.publish()
    assert np.array_equal(window(served.place), physical(2))


def test_trouble_of_the_bucket_is_an_error_and_never_a_window_of_zeros(s3: S3Place, tmp_path: Path) -> None:
    target = open_target(f"s3://{s3.name}/kept", s3.settings(s3_tries=1))
    put_index(target)
    put_version(target, tmp_path, 1)
    s3.proxy.faults = [Fault(kind="unavailable", pattern="/c/0/0")]
    with pytest.raises(StorageError):
        window(target_place(target))


def test_blocks_of_a_window_are_the_window_and_end_where_chunks_do(folder: Place) -> None:
    asked = WindowAsked(recording=PATH, start_s=1.5, channels=("Cz",))

    def work(reading: StoreReading) -> list[np.ndarray]:
        selection = select_in(reading, ZARR, GROUP, asked)
        return list(blocks_of(reading, ZARR, GROUP, selection, most_values=2 * CHUNK))

    blocks = read_consistently(folder, DATASET, ZARR, work)
    ends = 150 + np.cumsum([block.shape[1] for block in blocks])
    assert max(block.size for block in blocks) <= 2 * CHUNK
    assert (ends[:-1] % CHUNK == 0).all()
    assert np.array_equal(np.concatenate(blocks, axis=1), physical(1)[[2], 150:])


def test_more_than_fits_at_once_is_refused_before_a_sample_is_read(folder: Place) -> None:
    entry = find_entry(read_index(folder, DATASET), PATH)
    with pytest.raises(Refused, match="at most 100"):
        read_window(folder, DATASET, entry, WindowAsked(recording=PATH), most_values=100)


def test_what_is_not_served_is_told_with_its_state(folder: Place) -> None:
    index = read_index(folder, DATASET)
    for recording, state, reason in (
        ("sub-02/eeg/sub-02_eeg.edf", "failed", "corrupt_or_truncated"),
        ("sub-03/eeg/sub-03_eeg.edf", "pending", "memory_budget"),
        ("sub-09/eeg/sub-09_eeg.edf", "unknown", None),
    ):
        with pytest.raises(NotServed) as raised:
            find_entry(index, recording)
        assert (raised.value.state, raised.value.reason) == (state, reason)
        assert "secret" not in f"{raised.value.sentence}{raised.value.detail}"
    assert find_entry(index, ZARR).path == PATH, "a store is found by its own path too"
    with pytest.raises(NotServed):
        read_index(folder, "xx000006")
    with pytest.raises(Refused):
        read_index(folder, "../xx000006")


def test_an_index_of_another_format_is_not_read_on(tmp_path: Path) -> None:
    target = FolderTarget(tmp_path, port=8321)
    put_index(target, format_version=4)
    with pytest.raises(Refused, match="format version 4"):
        read_index(target_place(target), DATASET)
    put_index(target, data_base='http://127.0.0.1/a"; import os; "/')
    with pytest.raises(StorageError):
        read_index(target_place(target), DATASET)
    for odd in ({"stores": "many"}, {"failures": [1]}, {"pending": None}, {"s3_uri": "file:///etc/"}):
        put_index(target, **odd)
        with pytest.raises(StorageError):
            read_index(target_place(target), DATASET)
    put_index(target, stores=[{"path": PATH, "zarr": ZARR, "groups": [{"name": "../../secret"}]}])
    with pytest.raises(StorageError):
        find_entry(read_index(target_place(target), DATASET), PATH)


@pytest.mark.parametrize("served", ["folder", "bucket", "http"], indirect=True)
def test_a_recipe_needs_the_catalog_for_the_verdict_only(served: Served) -> None:
    served.publish()
    asked = WindowAsked(recording=PATH, stop_s=4)
    assert recipe_for(served.place, DATASET, asked).provenance.zarr_verify_status is None
    catalog = b'{"datasets":[{"dataset_id":"xx000005","zarr_verify_status":"verified"},{"dataset_id":"xx000006"}]}'
    served.target.put("zarr-catalog.json", catalog, content_type="application/json")
    assert [row["dataset_id"] for row in read_catalog(served.place)] == [DATASET, "xx000006"]
    assert verify_status_of(served.place, DATASET) == "verified"
    recipe = recipe_for(served.place, DATASET, asked)
    assert recipe.provenance.zarr_verify_status == "verified"
    assert recipe.provenance.index_etag == read_index(served.place, DATASET).etag
    assert recipe.how_to.python_s3 is None
    put_index(served.target, data_base_kind="s3-public", s3_uri=f"s3://zarr-example/{DATASET}/zarr/", s3_anonymous=True)
    program = recipe_for(served.place, DATASET, asked).how_to.python_s3
    assert program is not None
    assert f'STORE = "zarr-example/{DATASET}/zarr/{ZARR}"' in program
    assert '"anon": True' in program


def write_events(place_rows: list[tuple[str, int]], out: Path, *, row_group_rows: int) -> None:
    """Rows (store path, sample index) as an events file, sorted, in small row groups."""
    text = pa.dictionary(pa.int32(), pa.string())
    table = pa.table(
        {
            "store_path": pa.array([zarr for zarr, _ in place_rows]).cast(text),
            "onset_s": pa.array([index / RATE_HZ for _, index in place_rows]),
            "sample_index": pa.array([index for _, index in place_rows], pa.int64()),
            "group_name": pa.array([GROUP if index % 2 else "eeg_50hz" for _, index in place_rows]).cast(text),
        }
    )
    pq.write_table(table, out, row_group_size=row_group_rows, compression="zstd")


def test_events_of_a_recording_come_from_its_row_groups_alone(served: Served, tmp_path: Path) -> None:
    assert read_events(served.place, DATASET, ZARR, limit=5) is None
    stores = [f"sub-{number:02}/eeg/sub-{number:02}_eeg.zarr" for number in range(20)]
    rows = [(zarr, index) for zarr in stores for index in range(200)]
    write_events(rows, tmp_path / "events", row_group_rows=200)
    served.target.put(events_key(DATASET), (tmp_path / "events").read_bytes(), content_type="x")
    got = read_events(served.place, DATASET, stores[7], limit=150)
    assert got is not None
    assert ([row["sample_index"] for row in got.rows], got.truncated) == (list(range(150)), True)
    rest = read_events(served.place, DATASET, stores[7], group=GROUP, limit=150, offset=90)
    assert rest is not None
    assert ([row["sample_index"] for row in rest.rows], rest.truncated) == (list(range(181, 200, 2)), False)
    assert read_events(served.place, DATASET, "sub-99/eeg/x.zarr", limit=5) == events_reader.EventRows([], False)


def test_a_question_reads_few_of_the_bytes_of_a_large_events_file(tmp_path: Path) -> None:
    target = FolderTarget(tmp_path / "served", port=8321)
    stores = [f"sub-{number:03}/eeg/sub-{number:03}_eeg.zarr" for number in range(400)]
    rng = np.random.default_rng(1)
    rows = [(zarr, int(index)) for zarr in stores for index in rng.integers(0, 1 << 40, 200)]
    write_events(rows, tmp_path / "events", row_group_rows=400)
    data = (tmp_path / "events").read_bytes()
    target.put(events_key(DATASET), data, content_type="x")
    read: list[int] = []
    place = counting(target_place(target), read.append)
    assert read_events(place, DATASET, stores[7], limit=5) is not None
    assert sum(read) < len(data) / 3


def test_a_recording_with_too_many_rows_is_refused_with_a_way_out(tmp_path: Path) -> None:
    target = FolderTarget(tmp_path / "served", port=8321)
    write_events(
        [(ZARR, index) for index in range(events_reader.MOST_ROWS + 1)], tmp_path / "events", row_group_rows=60_000
    )
    target.put(events_key(DATASET), (tmp_path / "events").read_bytes(), content_type="x")
    with pytest.raises(Refused, match="duckdb"):
        read_events(target_place(target), DATASET, ZARR, limit=5)


def counting(place: Place, told: Callable[[int], None]) -> Place:
    """A place that tells the bytes of each read."""

    @dataclass
    class Counted:
        opened: Any

        @property
        def size_bytes(self) -> int:
            return self.opened.size_bytes

        @property
        def etag(self) -> str:
            return self.opened.etag

        def read(self, start: int, length: int) -> bytes:
            part: bytes = self.opened.read(start, length)
            told(len(part))
            return part

        def close(self) -> None:
            self.opened.close()

    def open_object(key: str) -> Counted | None:
        opened = place.open_object(key)
        return None if opened is None else Counted(opened)

    return Place(place.url, open_object)


def test_a_store_of_another_generation_is_read_and_one_of_another_format_is_not(tmp_path: Path) -> None:
    target = FolderTarget(tmp_path / "served", port=8321)
    put_index(target)
    put_version(target, tmp_path, 2)
    at = tmp_path / "served" / DATASET / "zarr" / ZARR
    root, group = (json.loads((at / name / "zarr.json").read_text()) for name in ("", GROUP))
    root["attributes"]["nemar"] = {"a_field_of_later": True}
    for name in ("n_view_levels", "view_levels", "view_chunk_columns", "shard_seconds", "modality"):
        del group["attributes"][name]
    (at / "zarr.json").write_text(json.dumps(root))
    (at / GROUP / "zarr.json").write_text(json.dumps(group))
    place = target_place(target)
    assert np.array_equal(window(place), physical(2))
    with pytest.raises(Refused, match="it has 0 for the signal only"):
        window(place, level=1)
    for changed in ({**root["attributes"], "format_version": 3}, None, []):
        (at / "zarr.json").write_text(json.dumps({**root, "attributes": changed}))
        with pytest.raises(Refused, match="format"):
            window(place)


def test_only_a_base_url_is_an_archive() -> None:
    for wrong in ("", "ftp://x/", "https://user:pw@host/", "https://host/?a=1", "file:///etc", "not a url"):
        with pytest.raises(Refused, match="--url"):
            archive_place(wrong)


def test_an_archive_that_does_not_answer_is_trouble_and_not_absence() -> None:
    with closing(HttpArchive("http://127.0.0.1:9", tries=2)) as archive, pytest.raises(StorageUnavailable):
        archive.open("xx000001/zarr/index.json")
