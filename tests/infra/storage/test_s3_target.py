from __future__ import annotations

import json
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from fabricated import write_store
from fault_proxy import Fault
from s3_server import KEY_ID, SECRET, S3Place

from contract.errors import PreconditionFailed, PublishError, Refused, StorageDenied
from infra.storage import open_target
from infra.storage.folder import FolderTarget
from infra.storage.protocol import Target
from infra.storage.s3_target import S3Target

KEY = "xx000001/zarr/sub-01/eeg/sub-01_eeg.zarr"
INDEX = "xx000001/zarr/index.json"
JSON: Any = {"content_type": "application/json"}


@pytest.fixture(params=["folder", "bucket", "prefix"])
def target(request: pytest.FixtureRequest, s3: S3Place, tmp_path: Path) -> Target:
    """Each kind of target in turn: what holds for one holds for all."""
    if request.param == "folder":
        return FolderTarget(tmp_path / "served", port=8321)
    below = "" if request.param == "bucket" else "/some/where"
    return open_target(f"s3://{s3.name}{below}", s3.settings())


def nothing() -> None:
    pass


def put_store(target: Target, folder: Path, key: str = KEY, version: str = "one") -> dict[str, str]:
    objects = write_store(folder, version)
    target.put_store(key, folder, objects, token="t", may_write=nothing)
    return objects


def test_documents_are_put_on_condition_read_and_removed(target: Target, tmp_path: Path) -> None:
    assert target.read(INDEX) is None
    assert target.etag(INDEX) is None
    first = target.put(INDEX, b"1", **JSON, if_absent=True)
    with pytest.raises(PreconditionFailed):
        target.put(INDEX, b"2", **JSON, if_absent=True)
    second = target.put(INDEX, b"2", **JSON, if_match=first)
    with pytest.raises(PreconditionFailed):
        target.put(INDEX, b"3", **JSON, if_match=first)
    stored = target.read(INDEX)
    assert stored is not None
    assert (stored.data, stored.etag, target.etag(INDEX)) == (b"2", second, second)
    assert target.fetch(INDEX, tmp_path / "copy") == second
    assert (tmp_path / "copy").read_bytes() == b"2"
    assert target.fetch("xx000001/zarr/no", tmp_path / "no") is None
    (tmp_path / "file").write_bytes(b"from a file")
    target.put(INDEX, tmp_path / "file", **JSON)
    target.delete(INDEX)
    target.delete(INDEX)
    assert target.read(INDEX) is None


def test_stores_are_listed_copied_and_removed(target: Target, tmp_path: Path) -> None:
    objects = put_store(target, tmp_path / "a")
    target.put(INDEX, b"{}", **JSON)
    listed = target.list_store(KEY)
    assert listed.keys() == objects.keys()
    digests = target.store_digests(KEY)
    assert digests is not None
    assert {name: sha256 for name, (_size, sha256) in digests.items()} == objects
    assert {name: one.size_bytes for name, one in listed.items()} == {
        name: size for name, (size, _sha) in digests.items()
    }
    etags = {name: one.etag for name, one in listed.items()}
    assert target.store_stands(KEY, digests, etags)
    other = "xx000001/zarr/sub-02/eeg/sub-02_eeg.zarr"
    assert target.missing_stores([KEY, other]) == {other}
    target.copy_store(KEY, other, may_write=nothing)
    assert target.missing_stores([KEY, other]) == set()
    assert target.store_digests(other) == digests
    with pytest.raises(PublishError, match="free address"):
        target.copy_store(KEY, other, may_write=nothing)
    with pytest.raises(PublishError, match="no store"):
        target.copy_store("xx000001/zarr/sub-03/x.zarr", "xx000001/zarr/sub-04/x.zarr", may_write=nothing)
    found = dict(target.list_objects("xx000001/"))
    assert found.keys() == {INDEX, *(f"{key}/{name}" for key in (KEY, other) for name in objects)}
    assert found[f"{other}/zarr.json"] == listed["zarr.json"]
    assert {key for key, _ in target.list_objects("xx000001/zarr/sub-02")} == {f"{other}/{name}" for name in objects}
    target.delete_stores([KEY])
    assert not target.store_exists(KEY)
    assert target.store_exists(other)
    assert target.store_digests(KEY) is None
    assert target.list_store(KEY) == {}


@pytest.mark.parametrize("key", ["../x", "a//b", "/a", "xx000001/zarr/.hidden", "a/../b"])
def test_a_key_that_leaves_the_target_or_is_hidden_is_refused(target: Target, key: str) -> None:
    for ask in (target.read, target.etag, target.delete):
        with pytest.raises((Refused, PublishError)):
            ask(key)
    with pytest.raises((Refused, PublishError)):
        target.put(key, b"", **JSON)


def test_a_target_can_be_opened_again_by_its_address(target: Target, s3: S3Place) -> None:
    assert open_target(target.url, s3.settings()) == target
    assert hash(open_target(target.url, s3.settings())) == hash(target)
    target.prepare()
    assert target.decides_conditions
    assert [key for key, _ in target.list_objects("")] == []


@pytest.fixture
def bucket(s3: S3Place) -> S3Target:
    made = open_target(f"s3://{s3.name}/a-prefix/", s3.settings())
    assert isinstance(made, S3Target)
    return made


def test_the_addresses_are_those_of_the_service_or_of_the_stable_host(s3: S3Place) -> None:
    below = "xx000001/zarr/"
    here = open_target(f"s3://{s3.name}/p", s3.settings()).addresses("xx000001")
    assert here.contract_base == here.data_base == f"{s3.proxy.url}/{s3.name}/p/{below}"
    assert (here.s3_uri, here.s3_region, here.data_base_kind) == (f"s3://{s3.name}/p/{below}", "us-east-2", "s3-public")
    hosted = open_target("s3://nemar/p", s3.settings(contract_host="https://zarr.example.org")).addresses("xx000001")
    assert hosted.contract_base == f"https://zarr.example.org/{below}"
    amazon = s3.settings().model_copy(update={"s3_endpoint": None})
    assert (
        open_target("s3://nemar", amazon).addresses("xx000001").data_base
        == f"https://nemar.s3.us-east-2.amazonaws.com/{below}"
    )
    dotted = open_target("s3://ne.mar", amazon).addresses("xx000001")
    assert dotted.data_base == f"https://s3.us-east-2.amazonaws.com/ne.mar/{below}"
    inside = s3.settings().model_copy(update={"s3_endpoint": "http://minio.internal:9000"})
    with pytest.raises(Refused, match="ZARRMILL_CONTRACT_HOST"):
        open_target("s3://nemar", inside).prepare()
    named = inside.model_copy(update={"contract_host": "https://zarr.example.org"})
    assert open_target("s3://nemar", named).addresses("xx000001").data_base == f"https://zarr.example.org/{below}"


@pytest.mark.parametrize(
    "url",
    [
        "s3://",
        "s3://UPPER/x",
        "s3://b",
        "s3://bucket/a//b",
        "s3://bucket/.zarrmill",
        "s3://bucket/a b",
        "s3://bucket/../x",
    ],
)
def test_an_address_that_is_no_place_in_a_bucket_is_refused(s3: S3Place, url: str) -> None:
    with pytest.raises(Refused, match=r"bucket|prefix"):
        open_target(url, s3.settings())


def test_the_probe_learns_that_conditions_are_decided_and_leaves_nothing(s3: S3Place, bucket: S3Target) -> None:
    bucket.prepare()
    assert bucket.decides_conditions
    assert s3.keys() == []
    # the GET is the unsigned one that sees whether anybody may read
    assert s3.proxy.counts() == {"PUT": 3, "HEAD": 2, "GET": 1, "DELETE": 1}


@pytest.mark.parametrize("conditions", [("if-match",), ("if-none-match",), ("if-match", "if-none-match")])
def test_a_service_that_ignores_a_condition_is_told_of_and_guarded_otherwise(
    s3: S3Place, bucket: S3Target, caplog: pytest.LogCaptureFixture, conditions: tuple[str, ...]
) -> None:
    s3.proxy.faults = [Fault(kind="ignore-conditions", conditions=conditions)]
    bucket.prepare()
    assert not bucket.decides_conditions
    assert "a lock in Postgres guards" in caplog.text
    first = bucket.put(INDEX, b"1", **JSON, if_absent=True)
    with pytest.raises(PreconditionFailed):
        bucket.put(INDEX, b"2", **JSON, if_absent=True)
    with pytest.raises(PreconditionFailed):
        bucket.put(INDEX, b"2", **JSON, if_match="0" * 32)
    bucket.put(INDEX, b"2", **JSON, if_match=first)
    assert s3.get(f"a-prefix/{INDEX}") == b"2"


@pytest.mark.parametrize("word", ["PUT", "HEAD"])
def test_a_target_that_may_not_be_used_is_refused_before_anything(s3: S3Place, bucket: S3Target, word: str) -> None:
    s3.proxy.faults = [Fault(kind="denied", method=word)]
    with pytest.raises(Refused, match="cannot be used") as caught:
        bucket.prepare()
    assert SECRET not in str(caught.value)


def test_a_bucket_that_is_not_there_is_refused(s3: S3Place) -> None:
    with pytest.raises(Refused, match="no such bucket"):
        open_target("s3://bucket-that-is-not", s3.settings()).prepare()


def test_publishing_openly_wants_a_bucket_that_anybody_can_read(s3: S3Place, bucket: S3Target) -> None:
    with pytest.raises(Refused, match="--public"):
        bucket.prepare(public=True)
    everybody = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{s3.name}/*"}
    s3.plain.put_bucket_policy(Bucket=s3.name, Policy=json.dumps({"Version": "2012-10-17", "Statement": [everybody]}))
    bucket.prepare(public=True)
    with pytest.raises(Refused, match="--public"):
        FolderTarget(Path("/nowhere"), port=1).prepare(public=True)


def test_large_documents_are_fetched_in_parts_of_one_version(s3: S3Place, bucket: S3Target, tmp_path: Path) -> None:
    data = bytes(range(256)) * (9 * 4096)
    (tmp_path / "events.parquet").write_bytes(data)
    bucket.put(
        "xx000001/zarr/events.parquet", tmp_path / "events.parquet", content_type="application/vnd.apache.parquet"
    )
    s3.proxy.forget()
    s3.proxy.faults = [Fault(kind="short", method="GET", times=1)]
    etag = bucket.fetch("xx000001/zarr/events.parquet", tmp_path / "copy")
    assert etag is not None
    assert (tmp_path / "copy").read_bytes() == data
    assert s3.proxy.counts() == {"HEAD": 1, "GET": 3}
    replaced = Fault(method="GET", at=2, before=lambda: s3.put("a-prefix/xx000001/zarr/events.parquet", b"other"))
    s3.proxy.faults = [replaced]
    with pytest.raises(PreconditionFailed):
        bucket.fetch("xx000001/zarr/events.parquet", tmp_path / "again")


def test_nothing_that_is_logged_or_raised_holds_a_credential(
    s3: S3Place, bucket: S3Target, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for kind in ("denied", "unavailable", "reset"):
        s3.proxy.faults = [Fault(kind=kind)]
        impatient = open_target(bucket.url, s3.settings(s3_tries=1))
        with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is
            impatient.prepare()
        said = f"{caught.value!r} {caught.value.__cause__!r} {getattr(caught.value, 'detail', '')} {impatient!r} {caplog.text}"
        assert SECRET not in said
        assert KEY_ID not in said


def test_two_threads_use_one_connection(bucket: S3Target) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            key = f"xx00000{number}/zarr/index.json"
            for _ in range(3):
                bucket.put(key, b"%d" % number, **JSON)
                stored = bucket.read(key)
                assert stored is not None
                assert stored.data == b"%d" % number
        except BaseException as error:  # noqa: BLE001 - told to the test below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []


def test_a_denied_read_is_never_absence(s3: S3Place, bucket: S3Target) -> None:
    s3.proxy.faults = [Fault(kind="denied")]
    for ask in (bucket.read, bucket.etag, bucket.store_exists):
        with pytest.raises(StorageDenied):
            ask(INDEX)
    with pytest.raises(StorageDenied):
        bucket.missing_stores([KEY])
