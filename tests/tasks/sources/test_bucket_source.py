"""A dataset below a prefix of a bucket, over HTTP."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fault_proxy import Fault
from s3_server import S3Place

from contract.errors import NotNow, Refused, StorageError
from infra.storage.s3_download import RANGE_BYTES
from tasks.bids.discovery import discover_source
from tasks.sources import SourceAddress, open_source
from tasks.sources.bucket_source import BucketSource
from tasks.sources.protocol import SourceChanged

EDF, TSV = "sub-01/eeg/sub-01_task-x_eeg.edf", "sub-01/eeg/sub-01_task-x_channels.tsv"
FILES = {"dataset_description.json": b"{}", EDF: b"edf" * 1000, TSV: b"name\nA\n", "sub-é/eeg/ü b_eeg.edf": b"1"}


@pytest.fixture
def filled(s3: S3Place) -> S3Place:
    for path, content in FILES.items():
        s3.put(f"ds/{path}", content)
    s3.put("ds2/other_eeg.edf", b"another dataset")
    return s3


def at(s3: S3Place, *, moment: str | None = None, prefix: str = "ds", **more: object) -> BucketSource:
    source = open_source(SourceAddress(url=f"s3://{s3.name}/{prefix}", at=moment), s3.settings(**more))
    assert isinstance(source, BucketSource)
    return source


def ids(source: BucketSource, *paths: str) -> dict[str, str]:
    return {path: source.tree()[path].content_id for path in paths}


def test_the_tree_is_told_by_listings_alone(filled: S3Place) -> None:
    source = at(filled)
    assert set(source.tree()) == set(FILES)
    assert source.tree()[EDF].size_bytes == 3000
    assert source.url == f"s3://{filled.name}/ds"
    assert at(filled, prefix="ds/").url == source.url
    assert len(discover_source(source).recordings) == 2
    assert filled.proxy.counts() == {"LIST": 1}


def test_ids_follow_the_content(filled: S3Place) -> None:
    before = at(filled)
    filled.put(f"ds/{EDF}", FILES[EDF])
    assert at(filled).tree() == before.tree()
    matters = discover_source(before).matters()
    assert at(filled).commit(matters) == before.commit(matters)
    assert len(before.commit(matters)) == 40
    filled.put(f"ds/{EDF}", b"EDF" * 1000)
    assert at(filled).tree()[EDF].content_id != before.tree()[EDF].content_id
    assert at(filled).commit(matters) != before.commit(matters)


def test_what_is_no_file_is_left_out(filled: S3Place) -> None:
    for key in (
        "ds/",
        "ds/sub-01/",
        "ds/derivatives/x_eeg.edf",
        "ds/sub-01/code/a.edf",
        "ds/.git/HEAD",
        "ds/a//b_eeg.edf",
    ):
        filled.put(key, b"")
    source = at(filled)
    assert set(source.tree()) == set(FILES)
    assert sorted(problem.path for problem in source.left_out()) == [".git/HEAD", "a//b_eeg.edf"]


def test_files_are_fetched_as_they_were_listed(filled: S3Place, tmp_path: Path) -> None:
    long = b"0123456789abcdef" * (RANGE_BYTES // 8)
    filled.put("ds/long_eeg.edf", long)
    source = at(filled)
    inputs = ids(source, *FILES, "long_eeg.edf")
    filled.proxy.forget()
    worker = open_source(source.address, filled.settings())
    for number in range(3):
        worker.fetch(inputs, tmp_path / str(number))
    for path, content in {**FILES, "long_eeg.edf": long}.items():
        assert (tmp_path / "2" / path).read_bytes() == content
    assert filled.proxy.counts() == {"GET": len(FILES) + 3 * 2}
    assert source.copied_bytes(["long_eeg.edf", TSV]) == len(long) + len(FILES[TSV])
    assert worker.unchanged(inputs)


def test_no_file_of_a_recording_waits_for_the_answer_to_another(filled: S3Place, tmp_path: Path) -> None:
    source = at(filled)
    inputs = ids(source, TSV, "dataset_description.json", EDF)
    filled.proxy.forget()
    held = Fault(kind="hold", method="GET", pattern="channels.tsv", hold_answer=True)
    filled.proxy.faults = [held]
    with ThreadPoolExecutor(1) as threads:
        fetched = threads.submit(source.fetch, inputs, tmp_path)
        assert held.held.wait(60)
        give_up = time.monotonic() + 60
        while not (tmp_path / EDF).is_file() and time.monotonic() < give_up:
            time.sleep(0.02)
        came = (tmp_path / EDF).is_file(), (tmp_path / TSV).is_file()
        held.go.set()
        fetched.result(60)
    assert came == (True, False)
    assert (tmp_path / TSV).read_bytes() == FILES[TSV]
    assert filled.proxy.counts() == {"GET": 3}


@pytest.mark.parametrize("path", [EDF, "long_eeg.edf"])
def test_an_object_that_was_replaced_or_removed_is_never_taken_for_the_one_that_was_listed(
    filled: S3Place, tmp_path: Path, path: str
) -> None:
    filled.put("ds/long_eeg.edf", b"a" * 2_000_000)
    inputs = ids(at(filled), path)
    filled.put(f"ds/{path}", b"b" * (2_000_000 if path != EDF else 3000))
    with pytest.raises(SourceChanged):
        at(filled).fetch(inputs, tmp_path)
    filled.plain.delete_object(Bucket=filled.name, Key=f"ds/{path}")
    with pytest.raises(SourceChanged):
        at(filled).fetch(inputs, tmp_path)


def test_an_object_that_is_replaced_while_it_is_read_is_not_a_mixture(filled: S3Place, tmp_path: Path) -> None:
    filled.put("ds/long_eeg.edf", b"a" * (3 * RANGE_BYTES))
    source = at(filled)
    inputs = ids(source, "long_eeg.edf")
    replacing = Fault(
        method="GET",
        pattern="long_eeg",
        at=2,
        times=1,
        before=lambda: filled.put("ds/long_eeg.edf", b"b" * 3 * RANGE_BYTES),
    )
    filled.proxy.faults = [replacing]
    with pytest.raises(SourceChanged):
        source.fetch(inputs, tmp_path)


def test_a_broken_page_of_a_listing_is_an_error_and_never_a_smaller_dataset(s3: S3Place) -> None:
    for number in range(1010):
        s3.put(f"ds/sub-{number:04d}_eeg.edf", b"")
    for kind in ("denied", "unavailable", "short"):
        s3.proxy.faults = [Fault(kind=kind, method="LIST", at=2)]
        with pytest.raises(StorageError):
            at(s3, s3_tries=2).tree()
    s3.proxy.forget()
    assert len(at(s3).tree()) == 1010


@pytest.mark.parametrize("kind", ["denied", "unavailable"])
def test_a_service_in_trouble_is_no_verdict_and_costs_nothing(filled: S3Place, tmp_path: Path, kind: str) -> None:
    source = at(filled, s3_tries=2)
    inputs = ids(source, EDF)
    filled.proxy.faults = [Fault(kind=kind, method="GET")]
    with pytest.raises(NotNow) as pending:
        source.fetch(inputs, tmp_path)
    assert not pending.value.counted
    with pytest.raises(OSError, match=r"refused|could not be used"):
        source.read(TSV)


def test_a_bucket_is_read_as_it_was_at_a_moment(filled: S3Place, tmp_path: Path) -> None:
    s3 = filled
    s3.plain.put_bucket_versioning(Bucket=s3.name, VersioningConfiguration={"Status": "Enabled"})
    s3.put(f"ds/{EDF}", b"old" * 1000)
    s3.put("ds/late_eeg.edf", b"l")
    s3.plain.delete_object(Bucket=s3.name, Key="ds/late_eeg.edf")
    moment = _next_second()
    s3.put(f"ds/{EDF}", b"new" * 1000)
    s3.put("ds/later_eeg.edf", b"l")
    s3.plain.delete_object(Bucket=s3.name, Key=f"ds/{TSV}")
    then, now = at(s3, moment=moment), at(s3)
    assert set(then.tree()) == set(FILES)
    assert set(now.tree()) == {*FILES, "later_eeg.edf"} - {TSV}
    worker = open_source(then.address, s3.settings())
    worker.fetch(ids(then, EDF, TSV), tmp_path)
    assert (tmp_path / EDF).read_bytes() == b"old" * 1000
    assert (tmp_path / TSV).read_bytes() == FILES[TSV]
    assert then.read(TSV) == FILES[TSV]


def _next_second() -> str:
    """A moment at the end of this second, which has passed when this returns: S3 tells times in whole seconds."""
    now = datetime.now(UTC).replace(microsecond=0)
    while datetime.now(UTC).replace(microsecond=0) == now:
        time.sleep(0.01)
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_public_bucket_is_read_without_a_signature(filled: S3Place) -> None:
    filled.put(f"ds/{TSV}", FILES[TSV], ACL="public-read")
    source = at(filled, source_anonymous=True)
    assert set(source.tree()) == set(FILES)
    assert source.read(TSV) == FILES[TSV]
    assert not any("authorization" in {name.lower() for name in headers} for headers in filled.proxy.seen_headers)


def test_a_source_may_lie_in_another_service_than_the_target(filled: S3Place) -> None:
    address = SourceAddress(url=f"s3://{filled.name}/ds")
    settings = filled.settings(source_endpoint=filled.proxy.url, source_region="us-east-2")
    settings = settings.model_copy(update={"s3_endpoint": "http://127.0.0.1:9"})
    assert set(open_source(address, settings).tree()) == set(FILES)


@pytest.mark.parametrize(
    ("url", "more"),
    [
        ("s3://UPPER/ds", {}),
        ("s3://", {}),
        ("s3://bucket/a/../b", {}),
        ("s3://bucket/a//b", {}),
        ("s3://bucket/ds", {"commit": "main"}),
        ("s3://bucket/ds", {"annex": "s3://bucket/x"}),
        ("s3://bucket/ds", {"at": "yesterday"}),
        ("s3://bucket/ds", {"at": "2026-13-01T00:00:00Z"}),
        ("/", {"at": "2026-01-01T00:00:00Z"}),
        ("/", {"annex": "/elsewhere"}),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(s3: S3Place, url: str, more: dict[str, str]) -> None:
    with pytest.raises(Refused):
        open_source(SourceAddress(url=url, **more), s3.settings())


def test_a_bucket_that_is_not_there_is_refused(s3: S3Place) -> None:
    with pytest.raises(Refused, match="no such bucket"):
        open_source(f"s3://{s3.name}x/ds", s3.settings()).tree()


def test_a_secret_is_in_no_address_and_no_error(filled: S3Place) -> None:
    from s3_server import SECRET

    filled.proxy.faults = [Fault(kind="denied")]
    source = at(filled)
    with pytest.raises(StorageError) as denied:
        source.tree()
    assert SECRET not in repr(source.address) + repr(denied.value) + str(denied.value.detail)
