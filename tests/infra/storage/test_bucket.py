from __future__ import annotations

import hashlib
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fault_proxy import Fault
from s3_server import KEY_ID, SECRET, S3Place

from contract.errors import PreconditionFailed, PublishError, Refused, StorageDenied, StorageUnavailable
from infra.storage.bucket import Bucket
from infra.storage.s3_connection import access, connect
from infra.storage.s3_copy import Copy
from infra.storage.s3_upload import PART_BYTES, Upload

JSON = Upload(content_type="application/json", cache_control="public, max-age=60")


def test_an_object_is_put_with_its_headers_and_read_back(s3: S3Place) -> None:
    bucket = s3.bucket()
    etag = bucket.put("a/b.json", b"{}", JSON)
    found = bucket.read("a/b.json")
    assert found is not None
    assert (found.data, found.head.etag, found.head.sha256) == (b"{}", etag, hashlib.sha256(b"{}").hexdigest())
    told = s3.plain.head_object(Bucket=s3.name, Key="a/b.json")
    assert (told["ContentType"], told["CacheControl"]) == ("application/json", "public, max-age=60")
    assert bucket.head("a/b.json") == found.head


def test_only_a_definite_404_of_the_key_is_absence(s3: S3Place) -> None:
    bucket = s3.bucket()
    assert bucket.read("no") is None
    assert bucket.head("no") is None
    assert bucket.read_range("no", 0, 10) is None
    missing = Bucket(bucket.connection, "bucket-that-is-not")
    for ask in (missing.read, missing.head):
        with pytest.raises(Refused, match="no such bucket"):
            ask("key-404")


@pytest.mark.parametrize("word", ["GET", "HEAD", "LIST"])
def test_a_denial_is_never_absence_and_is_not_tried_again(s3: S3Place, word: str) -> None:
    s3.put("404", b"x")
    bucket = s3.bucket()
    s3.proxy.faults = [Fault(kind="denied", method=word)]
    with pytest.raises(StorageDenied, match="403"):
        {"GET": bucket.read, "HEAD": bucket.head, "LIST": lambda key: list(bucket.listing(key))}[word]("404")
    assert s3.proxy.counts()[word] == 1


@pytest.mark.parametrize("kind", ["unavailable", "lost", "reset", "short", "wrong"])
def test_what_may_pass_is_tried_again(s3: S3Place, kind: str) -> None:
    bucket = s3.bucket()
    bucket.put("k", b"value" * 100, JSON)
    s3.proxy.faults = [Fault(kind=kind, times=2)]
    found = bucket.read("k")
    assert found is not None
    assert found.data == b"value" * 100
    assert s3.proxy.counts()["GET"] == 3


def test_a_service_that_stays_broken_is_an_error_without_a_secret(
    s3: S3Place, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    s3.proxy.faults = [Fault(kind="unavailable")]
    connection = connect(access(s3.settings(s3_tries=3)))
    with pytest.raises(StorageUnavailable, match="503 SlowDown, 3 tries") as caught:
        Bucket(connection, s3.name).read("k")
    said = repr(caught.value) + str(caught.value.detail) + repr(connection.access) + caplog.text
    assert SECRET not in said
    assert KEY_ID not in repr(caught.value) + repr(connection.access)


def test_a_listing_pages_and_a_failed_page_is_no_end(s3: S3Place) -> None:
    keys = [f"many/{number}" for number in range(7)]
    for key in keys:
        s3.put(key, b"")
    bucket = s3.bucket()
    assert [one.key for one in bucket.listing("many/", page_keys=3)] == keys
    assert s3.proxy.counts() == {"LIST": 3}
    s3.proxy.faults = [Fault(kind="denied", method="LIST", at=2)]
    with pytest.raises(StorageDenied):
        list(bucket.listing("many/", page_keys=3))
    s3.proxy.forget()
    assert bucket.folders("") == ["many"]


def test_a_thousand_objects_are_removed_by_one_request(s3: S3Place) -> None:
    for key in ("one", "two & <three>"):
        s3.put(key, b"")
    s3.bucket().delete(["one", "two & <three>", *(f"absent/{number}" for number in range(999))])
    assert s3.keys() == []
    assert s3.proxy.counts() == {"POST": 1, "DELETE": 1}


def test_every_version_is_listed_and_each_can_be_read(s3: S3Place) -> None:
    s3.plain.put_bucket_versioning(Bucket=s3.name, VersioningConfiguration={"Status": "Enabled"})
    s3.put("k", b"old")
    s3.put("k", b"new")
    bucket = s3.bucket()
    listed = list(bucket.listing("", versions=True))
    assert [one.is_latest for one in listed] == [True, False]
    read = [bucket.read("k", version=one.version) for one in listed]
    assert [found.data for found in read if found] == [b"new", b"old"]


def test_a_part_is_read_at_its_place_and_of_the_version_it_names(s3: S3Place) -> None:
    etag = s3.put("k", bytes(range(200)))
    bucket = s3.bucket()
    assert bucket.read_range("k", 10, 5, etag=etag) == bytes(range(10, 15))
    assert bucket.read_range("k", 190, 50, etag=etag) == bytes(range(190, 200))
    s3.put("k", b"other" * 50)
    with pytest.raises(PreconditionFailed):
        bucket.read_range("k", 10, 5, etag=etag)


def test_a_condition_is_kept_and_a_lost_answer_is_no_conflict(s3: S3Place) -> None:
    bucket = s3.bucket()
    s3.proxy.faults = [Fault(kind="lost", method="PUT", times=1)]
    first = bucket.put("k", b"1", JSON, if_absent=True)
    with pytest.raises(PreconditionFailed):
        bucket.put("k", b"2", JSON, if_absent=True)
    s3.proxy.faults = [Fault(kind="lost", method="PUT", times=1)]
    second = bucket.put("k", b"2", JSON, if_match=first)
    with pytest.raises(PreconditionFailed):
        bucket.put("k", b"3", JSON, if_match=first)
    s3.proxy.faults = [Fault(kind="reset", method="PUT", times=1)]
    bucket.put("k", b"3", JSON, if_match=second)
    assert s3.get("k") == b"3"
    with pytest.raises(PreconditionFailed):
        bucket.put("absent", b"3", JSON, if_match=first)


def test_of_concurrent_conditional_writes_one_wins(s3: S3Place) -> None:
    etag = s3.put("k", b"0")
    bucket = s3.bucket()

    def write(number: int) -> bool:
        try:
            bucket.put("k", b"%d" % number, JSON, if_match=etag)
        except PreconditionFailed:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(write, range(1, 9))) == 1


def upload(path: Path, data: bytes) -> Upload:
    path.write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    return Upload(content_type="application/octet-stream", cache_control="no-store", path=path, sha256=sha256)


def test_files_go_up_side_by_side_and_large_ones_in_parts(s3: S3Place, tmp_path: Path) -> None:
    bucket = s3.bucket()
    large = upload(tmp_path / "large", b"abcdefgh" * (PART_BYTES // 8) + b"tail")
    small = upload(tmp_path / "small", b"s")
    etags = bucket.put_files([("large", large), ("small", small)])
    assert etags == {"large": large.checked().etag(), "small": small.checked().etag()}
    assert etags["large"].endswith("-2")
    assert hashlib.sha256(s3.get("large")).hexdigest() == large.sha256
    found = bucket.read("large")
    assert found is not None
    assert found.head.sha256 == large.sha256


def test_a_multipart_upload_that_fails_leaves_no_parts(s3: S3Place, tmp_path: Path) -> None:
    bucket = s3.bucket()
    large = upload(tmp_path / "large", b"x" * (PART_BYTES + 1))
    s3.proxy.faults = [Fault(kind="denied", method="PUT", pattern="partNumber=2")]
    with pytest.raises(StorageDenied):
        bucket.put_files([("large", large)])
    assert s3.plain.list_multipart_uploads(Bucket=s3.name).get("Uploads", []) == []
    s3.proxy.forget()
    s3.proxy.faults = [Fault(kind="lost", method="POST", pattern="uploadId", times=1)]
    assert bucket.put_files([("large", large)])["large"] == large.checked().etag()


def test_a_file_that_is_not_what_was_checked_is_not_put(s3: S3Place, tmp_path: Path) -> None:
    changed = upload(tmp_path / "f", b"one")
    (tmp_path / "f").write_bytes(b"two")
    with pytest.raises(PublishError, match="changed while it was uploaded"):
        s3.bucket().put_files([("f", changed)])
    assert s3.keys() == []


def test_a_body_that_is_damaged_on_its_way_is_refused_by_its_md5(s3: S3Place) -> None:
    s3.bucket().put("k", b"x", JSON)
    headers = {name.lower(): value for name, value in s3.proxy.seen_headers[-1].items()}
    assert headers["content-md5"] == "ndTkYSaMgDT1yFZOFVxnpg=="


def test_a_copy_never_leaves_the_service_and_keeps_what_is_known(s3: S3Place) -> None:
    bucket = s3.bucket()
    etag = bucket.put("a/sub 1/é.json", b"{}", JSON)
    assert bucket.copy([Copy(origin="a/sub 1/é.json", key="b.json", size_bytes=2)]) == {"b.json": etag}
    head = bucket.head("b.json")
    assert head is not None
    assert head.content_type == "application/json"
    assert head.sha256 == hashlib.sha256(b"{}").hexdigest()
    assert s3.proxy.counts()["GET"] == 0


MB = 1024 * 1024


def test_a_large_object_is_copied_in_parts_and_keeps_what_is_known(s3: S3Place) -> None:
    bucket = s3.bucket()
    data = bytes(range(256)) * (12 * MB // 256) + b"end"
    metadata = {"sha256": hashlib.sha256(data).hexdigest()}
    s3.put("large", data, ContentType="application/octet-stream", CacheControl="max-age=60", Metadata=metadata)
    s3.proxy.faults = [Fault(kind="lost", method="POST", pattern="uploadId", times=1)]
    copied = bucket.copy([Copy(origin="large", key="copy", size_bytes=len(data))], at_once_bytes=5 * MB)
    assert s3.proxy.counts()["GET"] == 0
    assert s3.get("copy") == data
    head = bucket.head("copy")
    assert head is not None
    assert (head.etag, head.sha256, head.content_type) == (
        copied["copy"],
        metadata["sha256"],
        "application/octet-stream",
    )
    assert s3.plain.head_object(Bucket=s3.name, Key="copy")["CacheControl"] == "max-age=60"


def test_a_large_object_that_is_replaced_or_fails_leaves_no_parts(s3: S3Place) -> None:
    bucket = s3.bucket(s3_tries=2)
    s3.put("large", b"a" * 11 * MB)
    wanted = [Copy(origin="large", key="copy", size_bytes=11 * MB)]
    s3.proxy.faults = [Fault(kind="denied", method="COPY", pattern="partNumber=2")]
    with pytest.raises(StorageDenied):
        bucket.copy(wanted, at_once_bytes=5 * MB)
    s3.proxy.faults = [Fault(kind="met", method="COPY", pattern="partNumber=3")]
    with pytest.raises(PreconditionFailed):
        bucket.copy(wanted, at_once_bytes=5 * MB)
    with pytest.raises(PreconditionFailed):
        bucket.copy([Copy(origin="large", key="copy", size_bytes=12 * MB)], at_once_bytes=5 * MB)
    assert bucket.head("copy") is None
    assert "Uploads" not in s3.plain.list_multipart_uploads(Bucket=s3.name)


def test_without_a_signature_only_open_objects_are_read(s3: S3Place) -> None:
    s3.put("closed", b"x")
    s3.put("open", b"x", ACL="public-read")
    anybody = s3.bucket(anonymous=True)
    assert anybody.read("open") is not None
    with pytest.raises(StorageDenied):
        anybody.read("closed")
    assert all("Authorization" not in headers for headers in s3.proxy.seen_headers)
