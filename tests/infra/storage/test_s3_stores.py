"""One store in a bucket: what is sent, in which order, and what a crash or a fault at any point leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fabricated import write_store
from fault_proxy import Fault
from s3_server import S3Place

from contract.errors import LostLease, PublishError, Refused, StorageDenied
from infra.storage import open_target
from infra.storage.s3_target import S3Target

KEY = "xx000001/zarr/sub-01/eeg/sub-01_eeg.zarr"
BELOW = f"{KEY}/"
Believed = dict[str, tuple[str, str]]


def nothing() -> None:
    pass


@pytest.fixture
def target(s3: S3Place) -> S3Target:
    made = open_target(f"s3://{s3.name}", s3.settings())
    assert isinstance(made, S3Target)
    return made


def put(
    target: S3Target,
    folder: Path,
    version: str,
    *,
    chunks: int = 5,
    believed: Believed | None = None,
    may_write: Callable[[], None] = nothing,
    keep: tuple[int, ...] = (),
) -> Believed:
    """Put a store whose chunks carry ``version``, but for those of ``keep``, which stay those of version one."""
    objects = write_store(folder, version, chunks=chunks)
    for number in keep:
        path = folder / f"eeg_250hz/0/c/{number}/0"
        path.write_text(f"one:{number}")
        objects |= {f"eeg_250hz/0/c/{number}/0": _sha(path)}
    etags = target.put_store(KEY, folder, objects, token="t", may_write=may_write, believed=believed)
    return {name: (objects[name], etags[name]) for name in objects}


def _sha(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()


def version_at(s3: S3Place) -> str | None:
    """The version of which the store stands whole; None when it does not stand. A mixture fails the test."""
    found = {key.removeprefix(BELOW): data for key, data in s3.objects(BELOW).items()}
    if "zarr.json" not in found:
        return None
    version = json.loads(found.pop("zarr.json"))["attributes"]["version"]
    assert {data.decode().split(":")[0] for data in found.values()} == {version}, "a mixture stands under a root"
    return str(version)


def test_a_new_store_costs_its_objects_two_listings_and_a_look_back(
    s3: S3Place, target: S3Target, tmp_path: Path
) -> None:
    put(target, tmp_path / "a", "one")
    assert s3.proxy.counts() == {"PUT": 6, "LIST": 2, "GET": 1}
    assert s3.proxy.asked[-3] == ("PUT", f"{BELOW}zarr.json")
    told = {
        name: s3.plain.head_object(Bucket=s3.name, Key=f"{BELOW}{name}") for name in ("zarr.json", "eeg_250hz/0/c/0/0")
    }
    assert [(one["ContentType"], one["CacheControl"]) for one in told.values()] == [
        ("application/json", "public, max-age=60"),
        ("application/octet-stream", "public, max-age=86400"),
    ]


@pytest.mark.parametrize("changed", [1, 3, 5])
def test_n_changed_objects_cost_n_and_six_requests(s3: S3Place, target: S3Target, tmp_path: Path, changed: int) -> None:
    believed = put(target, tmp_path / "a", "one")
    s3.proxy.forget()
    put(target, tmp_path / "b", "two", believed=believed, keep=tuple(range(changed, 5)))
    assert s3.proxy.counts() == {"LIST": 2, "DELETE": 1, "PUT": changed + 1, "GET": 1}
    written = [key for word, key in s3.proxy.asked if word in ("PUT", "DELETE")]
    assert written[0] == written[-1] == f"{BELOW}zarr.json", "the root goes first and comes last"


def test_an_unchanged_store_is_looked_at_once_and_not_written(s3: S3Place, target: S3Target, tmp_path: Path) -> None:
    believed = put(target, tmp_path / "a", "one")
    s3.proxy.forget()
    assert put(target, tmp_path / "b", "one", believed=believed) == believed
    assert s3.proxy.counts() == {"LIST": 1}


def test_what_is_not_noted_is_told_by_its_md5_and_not_sent_again(s3: S3Place, target: S3Target, tmp_path: Path) -> None:
    put(target, tmp_path / "a", "one")
    s3.proxy.forget()
    put(target, tmp_path / "b", "one")
    assert s3.proxy.counts() == {"LIST": 1}


def test_a_damaged_object_is_found_and_sent_again(s3: S3Place, target: S3Target, tmp_path: Path) -> None:
    believed = put(target, tmp_path / "a", "one")
    digests = {name: (len(s3.get(BELOW + name)), sha256) for name, (sha256, _etag) in believed.items()}
    etags = {name: etag for name, (_sha256, etag) in believed.items()}
    assert target.store_stands(KEY, digests, etags)
    s3.put(f"{BELOW}eeg_250hz/0/c/2/0", b"two:2")
    assert not target.store_stands(KEY, digests, etags)
    assert not target.store_stands(KEY, digests, None)
    s3.proxy.forget()
    put(target, tmp_path / "b", "one", believed=believed)
    assert s3.proxy.counts()["PUT"] == 2
    assert version_at(s3) == "one"
    assert target.store_stands(KEY, digests, etags)


def test_chunks_that_the_new_store_lacks_are_removed(s3: S3Place, target: S3Target, tmp_path: Path) -> None:
    believed = put(target, tmp_path / "a", "one", chunks=9)
    s3.proxy.forget()
    put(target, tmp_path / "b", "two", chunks=2, believed=believed)
    assert s3.keys(BELOW) == [f"{BELOW}eeg_250hz/0/c/0/0", f"{BELOW}eeg_250hz/0/c/1/0", f"{BELOW}zarr.json"]
    assert s3.proxy.counts() == {"LIST": 2, "DELETE": 1, "POST": 1, "PUT": 3, "GET": 1}


@pytest.mark.parametrize("stop_at", range(1, 10))
def test_an_upload_that_stops_at_any_write_leaves_the_old_or_no_store_and_the_next_makes_it_whole(
    s3: S3Place, target: S3Target, tmp_path: Path, stop_at: int
) -> None:
    believed = put(target, tmp_path / "a", "one", chunks=7)
    asked = 0

    def may_write() -> None:
        nonlocal asked
        asked += 1
        if asked >= stop_at:
            raise LostLease("superseded")

    if stop_at < 9:  # the root away, six objects less one gone, six put, the root: eight writes
        with pytest.raises(LostLease):
            put(target, tmp_path / "b", "two", chunks=6, believed=believed, may_write=may_write)
        assert version_at(s3) in ("one", None)
        assert (version_at(s3) == "one") == (stop_at == 1)
    put(target, tmp_path / "c", "three", chunks=6, believed=believed)
    assert version_at(s3) == "three"
    assert len(s3.keys(BELOW)) == 7


@pytest.mark.parametrize("word", ["LIST", "PUT", "DELETE"])
def test_a_denial_stops_the_upload_and_is_never_taken_for_an_empty_place(
    s3: S3Place, target: S3Target, tmp_path: Path, word: str
) -> None:
    believed = put(target, tmp_path / "a", "one")
    s3.proxy.faults = [Fault(kind="denied", method=word)]
    with pytest.raises(StorageDenied):
        put(target, tmp_path / "b", "two", believed=believed)
    s3.proxy.forget()
    assert version_at(s3) in ("one", None)
    assert (version_at(s3) == "one") == (word != "PUT")
    put(target, tmp_path / "c", "two", believed=believed)
    assert version_at(s3) == "two"


@pytest.mark.parametrize("kind", ["unavailable", "lost", "reset"])
def test_three_calls_in_ten_that_fail_end_in_the_same_store(
    s3: S3Place, target: S3Target, tmp_path: Path, kind: str
) -> None:
    believed = put(target, tmp_path / "a", "one")
    s3.proxy.faults = [Fault(kind=kind, share=0.3, seed=5)]
    put(target, tmp_path / "b", "two", chunks=6, believed=believed)
    assert s3.proxy.faults[0].struck > 0
    s3.proxy.forget()
    assert version_at(s3) == "two"
    assert len(s3.keys(BELOW)) == 7


def test_a_neighbour_who_writes_into_the_store_meanwhile_is_noticed(
    s3: S3Place, target: S3Target, tmp_path: Path
) -> None:
    believed = put(target, tmp_path / "a", "one")
    intruder = Fault(method="PUT", pattern="zarr.json", before=lambda: s3.put(f"{BELOW}eeg_250hz/0/c/0/0", b"x:0"))
    s3.proxy.faults = [intruder]
    with pytest.raises(PublishError, match="Something else stands"):
        put(target, tmp_path / "b", "two", believed=believed)


def test_a_store_without_its_root_is_not_put(target: S3Target, tmp_path: Path) -> None:
    objects = write_store(tmp_path / "a", "one")
    del objects["zarr.json"]
    with pytest.raises(PublishError, match="no root"):
        target.put_store(KEY, tmp_path / "a", objects, token="t", may_write=nothing)


def test_stores_are_removed_root_first_and_only_stores(s3: S3Place, target: S3Target, tmp_path: Path) -> None:
    put(target, tmp_path / "a", "one")
    s3.put("xx000001/zarr/index.json", b"{}")
    s3.proxy.forget()
    target.delete_stores([KEY, "xx000001/zarr/sub-02/gone.zarr"])
    assert s3.keys() == ["xx000001/zarr/index.json"]
    assert next(key for word, key in s3.proxy.asked if word in ("DELETE", "POST")) == f"{BELOW}zarr.json"
    for key in ("xx000001/zarr/sub-01", "xx000001", "../x.zarr/y/z.zarr", "xx000001/zarr/"):
        with pytest.raises((PublishError, Refused)):
            target.delete_stores([key])


def test_unfinished_parts_of_an_interrupted_upload_are_removed(s3: S3Place, target: S3Target) -> None:
    s3.plain.create_multipart_upload(Bucket=s3.name, Key=f"{BELOW}eeg_250hz/0/c/0/0")
    s3.plain.create_multipart_upload(Bucket=s3.name, Key="xx000001/zarr/sub-02/other.zarr/c")
    target.repair_store(KEY, token="t")
    left = s3.plain.list_multipart_uploads(Bucket=s3.name)["Uploads"]
    assert [one["Key"] for one in left] == ["xx000001/zarr/sub-02/other.zarr/c"]
    s3.proxy.faults = [Fault(kind="denied", pattern="uploads")]
    target.repair_store(KEY, token="t")
