"""A dataset below one prefix of a bucket, served below another: each run reads and writes what changed, and no more."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from command import Zarrmill
from s3_server import S3Place
from small_dataset import write_recording, write_root

from infra.postgres import PostgresServer

SOURCE, TARGET = "raw/ds000042", "kept"
DESCRIPTION = "dataset_description.json"
CHANGED = "sub-02/eeg/sub-02_task-rest_channels.tsv"
READING = {"GET", "HEAD", "LIST"}


@dataclass(frozen=True)
class FromBucket:
    """The commands over one bucket with a source and a target in it."""

    zarrmill: Zarrmill
    s3: S3Place

    @property
    def source(self) -> str:
        return f"s3://{self.s3.name}/{SOURCE}"

    @property
    def target(self) -> str:
        return f"s3://{self.s3.name}/{TARGET}"

    def convert(self) -> dict[str, Any]:
        return self.zarrmill.run("convert", self.source, "--to", self.target, "--json").summary

    def index(self) -> dict[str, Any]:
        return json.loads(self.s3.get(f"{TARGET}/ds000042/zarr/index.json"))

    def sent(self) -> set[str]:
        """Subjects whose stores got an object since the proxy last forgot."""
        stores = f"{TARGET}/ds000042/zarr/"
        return {
            key.removeprefix(stores).partition("/")[0]
            for word, key in self.s3.proxy.asked
            if word not in READING and key.startswith(stores) and ".zarr/" in key
        }

    def read(self) -> Counter[str]:
        """How often the content of each object of the source was asked for since the proxy last forgot."""
        return Counter(
            key.removeprefix(f"{SOURCE}/")
            for word, key in self.s3.proxy.asked
            if word == "GET" and key.startswith(f"{SOURCE}/")
        )


@pytest.fixture
def bucket(zarrmill: Zarrmill, s3: S3Place, tmp_path: Path) -> FromBucket:
    folder = tmp_path / "local"
    write_root(folder)
    for subject in ("01", "02", "03"):
        write_recording(folder, subject)
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            s3.put(f"{SOURCE}/{file.relative_to(folder).as_posix()}", file.read_bytes())
    return FromBucket(replace(zarrmill, settings={**zarrmill.settings, **s3.environment()}), s3)


@pytest.mark.timeout(900)
def test_a_dataset_in_a_bucket_is_kept_true(bucket: FromBucket, postgres_server: PostgresServer) -> None:
    s3 = bucket.s3
    before = s3.objects(SOURCE)
    first = bucket.convert()
    assert (first["dataset_id"], first["converted"], first["stores"]) == ("ds000042", 3, 3)
    commit = bucket.index()["source_commit"]
    assert len(commit) == 40

    s3.proxy.forget()
    again = bucket.convert()
    assert (again["run_number"], again["changed"]) == (None, False)
    assert bucket.read() == {DESCRIPTION: 1}, (
        "a listing tells that nothing changed; only what the dataset is called is read"
    )
    assert s3.proxy.counts().keys() <= READING, "nothing to do writes nothing"

    channels = before[f"{SOURCE}/{CHANGED}"].replace(b"A\tEEG", b"A\tEOG")
    s3.put(f"{SOURCE}/{CHANGED}", channels)
    s3.proxy.forget()
    changed = bucket.convert()
    assert (changed["converted"], changed["carried"], changed["stores"]) == (1, 2, 3)
    assert {name.partition("/")[0] for name in bucket.read()} == {DESCRIPTION, "sub-02"}
    assert bucket.sent() == {"sub-02"}
    assert bucket.index()["source_commit"] != commit
    assert s3.objects(SOURCE) == {**before, f"{SOURCE}/{CHANGED}": channels}, "the source is only read"

    served = bucket.index()
    postgres_server.create_database("empty_bucket_state")
    try:
        state = {"ZARRMILL_DATABASE_URL": postgres_server.url("empty_bucket_state")}
        forgetful = replace(bucket.zarrmill, settings={**bucket.zarrmill.settings, **state})
        s3.proxy.forget()
        [told] = forgetful.run("adopt", "ds000042", bucket.source, "--to", bucket.target, "--json").lines
        assert (told["stores"], told["trusted"], told["to_convert"]) == (3, 3, 0)
        assert s3.proxy.counts().keys() <= READING, "taking over writes nothing"
        after = replace(bucket, zarrmill=forgetful).convert()
        assert (after["converted"], after["carried"], after["stores"]) == (0, 3, 3)
        assert bucket.read().keys() == {DESCRIPTION}, "no signal is read again"
        assert bucket.sent() == set(), "and no store is written"
        assert bucket.index()["stores"] == served["stores"]
    finally:
        postgres_server.drop_database("empty_bucket_state")
