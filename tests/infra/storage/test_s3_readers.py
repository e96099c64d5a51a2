"""Readers of a store that is published again and again: by the protocol they never use a mixture."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest
import zarr
from botocore.exceptions import ClientError
from fabricated import write_store
from s3_server import KEY_ID, SECRET, S3Place
from store_reader import StoreReader

from infra.storage import open_target
from infra.storage.s3_target import S3Target

KEY = "xx000001/zarr/sub-01/eeg/sub-01_eeg.zarr"
BELOW = f"{KEY}/"
CHUNKS = 3
NAMES = [f"eeg_250hz/0/c/{number}/0" for number in range(CHUNKS)]
REPUBLISHED = 50


@pytest.fixture
def target(s3: S3Place) -> S3Target:
    made = open_target(f"s3://{s3.name}", s3.settings())
    assert isinstance(made, S3Target)
    return made


@pytest.fixture
def reader(s3: S3Place) -> StoreReader:
    return StoreReader(s3.plain, s3.name, BELOW, NAMES)


def objects_of(folder: Path, number: int) -> dict[str, str]:
    """A store of which every second one has the same values as the one before the last, and a root of its own."""
    version = f"v{number % 2}"
    objects = write_store(folder, version, chunks=CHUNKS)
    root = json.loads((folder / "zarr.json").read_bytes())
    root["attributes"]["publish_id"] = f"publish-{number}"
    (folder / "zarr.json").write_text(json.dumps(root))
    return objects | {"zarr.json": hashlib.sha256((folder / "zarr.json").read_bytes()).hexdigest()}


@pytest.mark.timeout(600)  # fifty publishes of eight requests each, on a machine that does much else
def test_by_the_protocol_no_mixture_is_used_while_the_store_is_published_fifty_times(
    target: S3Target, reader: StoreReader, tmp_path: Path
) -> None:
    published = threading.Event()
    failures: list[BaseException] = []

    def publish() -> None:
        try:
            for number in range(REPUBLISHED + 1):
                folder = tmp_path / str(number)
                objects = objects_of(folder, number)
                target.put_store(KEY, folder, objects, token=str(number), may_write=lambda: None)
        except BaseException as error:  # noqa: BLE001 - told by the test's own thread
            failures.append(error)
        finally:
            published.set()

    publisher = threading.Thread(target=publish)
    publisher.start()
    while not published.is_set():
        reader.read()
    publisher.join(60)
    assert failures == []
    assert published.is_set()
    assert reader.read(), "a store that nobody replaces is read at once"
    assert reader.mixtures() == []
    assert reader.again > 0, "the loop must have met a replacement"


def put_in_place(s3: S3Place, folder: Path, objects: dict[str, str], reader: StoreReader) -> None:
    """The planted wrong order: objects replaced under the root that stands, the root last; a reader looks after each."""
    for name in sorted(objects, key=lambda name: (name == "zarr.json", name)):
        s3.put(BELOW + name, (folder / name).read_bytes())
        reader.read()


def test_the_loop_catches_a_publisher_who_only_puts_the_root_last(
    s3: S3Place, target: S3Target, reader: StoreReader, tmp_path: Path
) -> None:
    objects = objects_of(tmp_path / "0", 0)
    target.put_store(KEY, tmp_path / "0", objects, token="t", may_write=lambda: None)
    put_in_place(s3, tmp_path / "1", objects_of(tmp_path / "1", 1), reader)
    assert len(reader.mixtures()) >= CHUNKS - 1


def test_an_equal_root_would_hide_two_publishes_and_the_mark_tells_them(
    s3: S3Place, target: S3Target, reader: StoreReader, tmp_path: Path
) -> None:
    def publish(number: int) -> None:
        objects = objects_of(tmp_path / f"p{number}", number)
        target.put_store(KEY, tmp_path / f"p{number}", objects, token="t", may_write=lambda: None)

    publish(0)
    numbers = iter((1, 2))
    assert not reader.read(between=lambda: next(map(publish, numbers), None)), "v0 again, and yet another publish"
    publish(4)
    bare = {name: (tmp_path / "p4" / name).read_bytes() for name in NAMES}

    def twice_with_one_root() -> None:
        for name, data in bare.items():
            s3.put(BELOW + name, data.replace(b"v0", b"v1"))

    assert reader.read(between=twice_with_one_root), "without a new root nothing tells the reader"
    assert reader.mixtures() != []


def test_a_reader_who_knows_nothing_of_it_meets_no_error_that_trying_again_does_not_cure(
    s3: S3Place, target: S3Target, tmp_path: Path
) -> None:
    def write(number: int) -> dict[str, str]:
        folder = tmp_path / str(number)
        root = zarr.create_group(folder, zarr_format=3)
        array = root.create_array("x", shape=(12,), chunks=(4,), dtype="int32", fill_value=-1)
        array[:] = number
        files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
        return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}

    options: dict[str, Any] = {
        "key": KEY_ID,
        "secret": SECRET,
        "endpoint_url": s3.server.url,
        "client_kwargs": {"region_name": "us-east-2"},
        "use_listings_cache": False,
    }
    target.put_store(KEY, tmp_path / "0", write(0), token="t", may_write=lambda: None)
    published = threading.Event()
    failures: list[BaseException] = []

    def publish() -> None:
        try:
            for number in range(1, 13):
                target.put_store(KEY, tmp_path / str(number), write(number), token="t", may_write=lambda: None)
        except BaseException as error:  # noqa: BLE001 - told by the test's own thread
            failures.append(error)
        finally:
            published.set()

    publisher = threading.Thread(target=publish)
    publisher.start()
    reads = 0
    while True:
        last = published.is_set()
        try:
            group = zarr.open_group(f"s3://{s3.name}/{KEY}", mode="r", zarr_format=3, storage_options=options)
            values = set(group["x"][:].tolist())
        except (FileNotFoundError, KeyError, ClientError, OSError):
            assert not last, "nothing is replaced any more, so nothing may be missing"
            continue
        reads += 1
        if last:
            break
    publisher.join(60)
    assert failures == []
    assert reads > 0
    assert values == {12}
