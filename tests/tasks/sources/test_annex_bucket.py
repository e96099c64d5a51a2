"""Content of git-annex in a bucket: one object or chunks, verified by the key, over HTTP with faults on the way."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest
from fault_proxy import Fault
from git_dataset import repository
from s3_server import S3Place

from contract.codes import FailureCode
from contract.errors import LostLease, NotNow, RecordingFailed
from infra.storage.s3_download import RANGE_BYTES
from tasks.bids.discovery import discover_source
from tasks.sources import SourceAddress, open_source
from tasks.sources.annex_bucket import AnnexBucket
from tasks.sources.protocol import Source
from tasks.sources.small_contents import SMALL_BYTES

EDF, TSV = "sub-01/eeg/sub-01_task-x_eeg.edf", "task-x_channels.tsv"
BIG = bytes(range(256)) * (SMALL_BYTES // 128)
"""Twice as long as what is kept."""


def key_for(content: bytes, backend: str = "SHA256E", *, extension: str = ".edf") -> str:
    name = {
        "SHA256E": lambda: hashlib.sha256(content).hexdigest() + extension,
        "MD5E": lambda: hashlib.md5(content).hexdigest() + extension,
        "SHA1": lambda: hashlib.sha1(content).hexdigest(),
        "WORM": lambda: f"some{extension}",
    }[backend]()
    return f"{backend}-s{len(content)}--{name}"


def put_chunks(s3: S3Place, key: str, content: bytes, chunk: int, *, without: int | None = None) -> list[str]:
    """The content as git-annex stores it with ``chunk=``; names of the objects."""
    fields, _, name = key.partition("--")
    names = []
    for number, start in enumerate(range(0, max(len(content), 1), chunk), 1):
        names.append(f"ds/objects/{fields}-S{chunk}-C{number}--{name}")
        if number != without:
            s3.put(names[-1], content[start : start + chunk])
    return names


def annex(s3: S3Place, **more: object) -> AnnexBucket:
    return AnnexBucket(s3.bucket(**more), "ds/")


@pytest.mark.parametrize("backend", ["SHA256E", "MD5E", "SHA1", "WORM"])
@pytest.mark.parametrize("size", [0, 10, len(BIG)])
def test_an_object_is_its_content_by_one_request_a_range(s3: S3Place, tmp_path: Path, backend: str, size: int) -> None:
    content = BIG[:size]
    key = key_for(content, backend)
    s3.put(f"ds/objects/{key}", content)
    annex(s3).fetch(key, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == content
    assert s3.proxy.counts() == {"GET": 1}


def test_a_long_object_comes_in_ranges_and_a_break_costs_one(s3: S3Place, tmp_path: Path) -> None:
    content = bytes(RANGE_BYTES) + b"x" * RANGE_BYTES + b"end"
    key = key_for(content)
    s3.put(f"ds/objects/{key}", content)
    s3.proxy.faults = [
        Fault(kind="short", method="GET", at=2, times=1),
        Fault(kind="reset", method="GET", at=3, times=1),
    ]
    annex(s3).fetch(key, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == content
    assert s3.proxy.counts() == {"GET": 3 + 2}
    ranges = {headers.get("Range") or headers.get("range") for headers in s3.proxy.seen_headers}
    assert len(ranges) == 3


@pytest.mark.parametrize("kind", ["unavailable", "lost", "reset", "short"])
def test_what_may_pass_is_asked_again(s3: S3Place, tmp_path: Path, kind: str) -> None:
    key = key_for(BIG)
    s3.put(f"ds/objects/{key}", BIG)
    s3.proxy.faults = [Fault(kind=kind, times=2)]
    annex(s3).fetch(key, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == BIG


@pytest.mark.parametrize("content", [BIG, b"small"], ids=["large", "small"])
def test_other_bytes_than_the_key_says_are_fetched_once_more_and_never_used(
    s3: S3Place, tmp_path: Path, content: bytes
) -> None:
    key = key_for(content)
    s3.put(f"ds/objects/{key}", content)
    s3.proxy.faults = [Fault(kind="wrong", method="GET", times=1)]
    annex(s3).fetch(key, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == content
    s3.proxy.faults = [Fault(kind="wrong", method="GET")]
    with pytest.raises(NotNow) as pending:
        annex(s3).fetch(key, tmp_path / "other")
    assert not pending.value.counted
    assert "not what the key says" in str(pending.value.detail)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("kind", ["denied", "unavailable"])
@pytest.mark.parametrize("method", ["GET", "LIST"])
def test_a_refusal_is_never_absence(s3: S3Place, tmp_path: Path, kind: str, method: str) -> None:
    key = key_for(BIG)
    if method == "GET":
        s3.put(f"ds/objects/{key}", BIG)
    s3.proxy.faults = [Fault(kind=kind, method=method)]
    with pytest.raises(NotNow) as pending:
        annex(s3, s3_tries=2).fetch(key, tmp_path / "file")
    assert not pending.value.counted


def test_only_a_definite_absence_of_object_and_chunks_is_a_verdict(s3: S3Place, tmp_path: Path) -> None:
    key = key_for(BIG)
    other = key_for(BIG[:-1] + b"!")
    put_chunks(s3, other, BIG, 1 << 20)  # chunks of another key of the same size begin with the same letters
    for one in (key, "URL--http&c%%host%../../x.edf", "WORM--no-size.edf"):
        with pytest.raises(RecordingFailed) as failed:
            annex(s3).fetch(one, tmp_path / "file")
        assert failed.value.failure is FailureCode.ANNEX_OBJECT_MISSING
    assert not any(".." in key for _, key in s3.proxy.asked)


@pytest.mark.parametrize(("size", "chunk"), [(len(BIG), 1 << 20), (len(BIG) - 7, 1 << 20), (5, 2), (0, 4), (3, 100)])
def test_chunks_are_put_together(s3: S3Place, tmp_path: Path, size: int, chunk: int) -> None:
    content = BIG[:size]
    key = key_for(content)
    names = put_chunks(s3, key, content, chunk)
    annex(s3).fetch(key, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == content
    assert s3.proxy.counts() == {"GET": 1 + len(names), "LIST": 1}


def test_of_two_chunk_sizes_the_whole_one_is_taken(s3: S3Place, tmp_path: Path) -> None:
    key = key_for(BIG)
    put_chunks(s3, key, BIG, 1 << 19, without=2)
    put_chunks(s3, key, BIG, 1 << 20)
    annex(s3).fetch(key, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == BIG


@pytest.mark.parametrize("trouble", ["missing", "short", "whole object short"])
def test_what_is_half_uploaded_is_pending_and_comes_when_it_is_whole(s3: S3Place, tmp_path: Path, trouble: str) -> None:
    key = key_for(BIG)
    if trouble == "whole object short":
        names = [f"ds/objects/{key}"]
        s3.put(names[0], BIG[:1000])
    else:
        names = put_chunks(s3, key, BIG, 1 << 20, without=2 if trouble == "missing" else None)
        if trouble == "short":
            s3.put(names[1], b"short")
    with pytest.raises(NotNow) as pending:
        annex(s3).fetch(key, tmp_path / "file")
    assert not pending.value.counted
    s3.put(names[-1], BIG if len(names) == 1 else BIG[1 << 20 :])
    annex(s3).fetch(key, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == BIG


def test_a_download_stops_when_its_attempt_is_stopped(s3: S3Place, tmp_path: Path) -> None:
    content = bytes(3 * RANGE_BYTES)
    key = key_for(content)
    s3.put(f"ds/objects/{key}", content)
    left = [1]

    def before() -> None:
        if not left.pop() if left else True:
            raise LostLease("stopped")

    with pytest.raises(LostLease):
        annex(s3).fetch(key, tmp_path / "file", before=before)
    assert s3.proxy.counts()["GET"] == 1


@pytest.fixture
def pointing(tmp_path: Path, s3: S3Place) -> tuple[Path, dict[str, bytes]]:
    """A metadata-only clone: twenty recordings, an inherited sidecar and participants.tsv, all in the bucket alone."""
    contents = {f"sub-{n:02d}/eeg/sub-{n:02d}_task-x_eeg.edf": f"edf {n}".encode() * 1000 for n in range(1, 21)} | {
        TSV: b"name\nA\n",
        "participants.tsv": b"participant_id\nsub-01\n",
    }
    for content in contents.values():
        s3.put(f"ds/objects/{key_for(content)}", content)
    pointers = {path: f"/annex/objects/{key_for(content)}\n".encode() for path, content in contents.items()}
    repository(tmp_path / "clone", {"dataset_description.json": b"{}", **pointers})
    return tmp_path / "clone", contents


def opened(s3: S3Place, folder: Path, commit: str | None) -> Source:
    address = SourceAddress(url=str(folder), commit=commit, annex=f"s3://{s3.name}/ds/")
    return open_source(address, s3.settings())


@pytest.mark.parametrize("commit", ["HEAD", None], ids=["commit", "folder"])
def test_planning_asks_the_bucket_for_nothing_and_each_sidecar_is_fetched_once(
    s3: S3Place, tmp_path: Path, pointing: tuple[Path, dict[str, bytes]], commit: str | None
) -> None:
    clone, contents = pointing
    source = opened(s3, clone, commit)
    recordings = discover_source(source).recordings
    assert len(recordings) == 20
    assert source.copied_bytes([EDF]) == len(contents[EDF])
    assert source.header_folder({EDF: source.tree()[EDF].content_id}, tmp_path / "header") is None
    assert s3.proxy.counts() == {}
    assert source.read("participants.tsv") == contents["participants.tsv"]
    assert s3.proxy.counts() == {"GET": 1}
    s3.proxy.forget()
    worker = open_source(source.address, s3.settings())
    threads = [
        threading.Thread(
            target=worker.fetch,
            args=({path: source.tree()[path].content_id for path in one.inputs()}, tmp_path / one.entities["sub"]),
        )
        for one in recordings
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in recordings:
        for path in one.inputs():
            assert (tmp_path / one.entities["sub"] / path).read_bytes() == contents[path]
    assert s3.proxy.counts() == {"GET": 20 + 1}
    assert not [key for word, key in s3.proxy.asked if word == "HEAD"]


def test_what_is_here_is_not_asked_for(s3: S3Place, pointing: tuple[Path, dict[str, bytes]], tmp_path: Path) -> None:
    from tasks.sources.annex import local_places

    clone, contents = pointing
    place = clone / ".git/annex/objects" / local_places(key_for(contents[EDF]))[0]
    place.parent.mkdir(parents=True)
    place.write_bytes(contents[EDF])
    source = opened(s3, clone, "HEAD")
    source.fetch({EDF: source.tree()[EDF].content_id}, tmp_path / "scratch")
    assert (tmp_path / "scratch" / EDF).read_bytes() == contents[EDF]
    assert s3.proxy.counts() == {}
