from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contract.errors import PreconditionFailed, PublishError, Refused
from infra.storage.folder import FolderTarget

KEY = "xx000001/zarr/index.json"
JSON = "application/json"


@pytest.fixture
def target(tmp_path: Path) -> FolderTarget:
    return FolderTarget(tmp_path / "served", port=8321)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_an_object_that_was_put_is_read_back_with_the_hash_of_its_bytes(target: FolderTarget) -> None:
    etag = target.put(KEY, b"{}", content_type=JSON)
    stored = target.read(KEY)
    assert stored is not None
    assert (stored.data, stored.etag, etag) == (b"{}", sha(b"{}"), sha(b"{}"))


def test_a_file_is_put_by_its_path_and_stays_where_it_was(target: FolderTarget, tmp_path: Path) -> None:
    source = tmp_path / "events.parquet"
    source.write_bytes(b"PAR1" * 700_000)
    assert target.put("xx000001/zarr/events.parquet", source, content_type="x") == sha(b"PAR1" * 700_000)
    assert source.exists()
    assert (target.root / "xx000001/zarr/events.parquet").read_bytes() == source.read_bytes()


def test_reading_what_does_not_exist_gives_none_and_makes_nothing(target: FolderTarget) -> None:
    assert target.read(KEY) is None
    assert not target.root.exists()


@pytest.mark.parametrize("in_the_way", ["file", "link", "folder"])
def test_trouble_on_the_way_to_an_object_is_never_read_as_absence(target: FolderTarget, in_the_way: str) -> None:
    dataset = target.root / "xx000001"
    target.root.mkdir()
    if in_the_way == "file":
        dataset.write_text("")
    elif in_the_way == "link":
        dataset.symlink_to(target.root)
    else:
        (target.root / KEY).mkdir(parents=True)
    with pytest.raises((NotADirectoryError, IsADirectoryError)):
        target.read(KEY)


def test_if_absent_writes_once_and_then_refuses(target: FolderTarget) -> None:
    target.put(KEY, b"first", content_type=JSON, if_absent=True)
    with pytest.raises(PreconditionFailed):
        target.put(KEY, b"second", content_type=JSON, if_absent=True)
    assert (target.root / KEY).read_bytes() == b"first"


def test_if_match_writes_only_over_the_version_it_names(target: FolderTarget) -> None:
    with pytest.raises(PreconditionFailed):
        target.put(KEY, b"x", content_type=JSON, if_match=sha(b"never there"))
    etag = target.put(KEY, b"first", content_type=JSON)
    target.put(KEY, b"second", content_type=JSON, if_match=etag)
    with pytest.raises(PreconditionFailed):
        target.put(KEY, b"third", content_type=JSON, if_match=etag)
    assert (target.root / KEY).read_bytes() == b"second"


def test_of_many_concurrent_conditional_writes_exactly_one_wins_each_round(target: FolderTarget) -> None:
    etag = target.put(KEY, b"0", content_type=JSON)

    def attempt(text: str) -> str | None:
        try:
            return FolderTarget(target.root, port=8321).put(KEY, text.encode(), content_type=JSON, if_match=etag)
        except PreconditionFailed:
            return None

    with ThreadPoolExecutor(8) as pool:
        for turn in range(5):
            won = [new for new in pool.map(attempt, [f"{turn}-{writer}" for writer in range(8)]) if new]
            assert len(won) == 1
            etag = won[0]
    assert sha((target.root / KEY).read_bytes()) == etag


APPEND = """
import sys
from pathlib import Path
from contract.errors import PreconditionFailed
from infra.storage.folder import FolderTarget
target, name = FolderTarget(Path(sys.argv[1]), port=1), sys.argv[2]
for turn in range(20):
    while True:
        now = target.read("xx000001/zarr/index.json")
        text = f"{now.data.decode() if now else ''}{name}{turn};".encode()
        condition = {"if_match": now.etag} if now else {"if_absent": True}
        try:
            target.put("xx000001/zarr/index.json", text, content_type="x", **condition)
        except PreconditionFailed:
            continue
        break
"""


def test_two_processes_that_write_conditionally_lose_no_update(target: FolderTarget) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", APPEND, str(target.root), name]) for name in "ab"]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    parts = (target.root / KEY).read_text().rstrip(";").split(";")
    assert sorted(parts) == sorted(f"{name}{turn}" for name in "ab" for turn in range(20))


def test_what_a_killed_put_left_is_overwritten_by_the_next(target: FolderTarget) -> None:
    target.put(KEY, b"old", content_type=JSON)
    left = target.root / "xx000001/zarr/.index.json.new"
    left.write_bytes(b"half")
    target.put(KEY, b"new", content_type=JSON)
    assert (target.root / KEY).read_bytes() == b"new"
    assert not left.exists()


@pytest.mark.parametrize(
    "key", ["", "/etc/passwd", "../x", "xx000001/../../x", "xx000001//x", "xx000001/zarr/a\x00b", "a\\b", "a/./b"]
)
def test_a_key_that_could_leave_the_target_is_refused_for_every_operation(target: FolderTarget, key: str) -> None:
    for operation in (
        lambda: target.read(key),
        lambda: target.put(key, b"", content_type=JSON),
        lambda: target.delete(key),
        lambda: target.store_exists(key),
        lambda: target.delete_stores([key]),
    ):
        with pytest.raises((Refused, PublishError, ValueError)):
            operation()
    assert not (target.root.parent / "x").exists()


def test_names_that_start_with_a_dot_belong_to_the_target_itself(target: FolderTarget) -> None:
    with pytest.raises(PublishError):
        target.put(".zarrmill/locks/xx000001", b"", content_type=JSON)


def test_nothing_is_written_through_a_symbolic_link_below_the_target(target: FolderTarget, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target.root.mkdir()
    (target.root / "xx000001").symlink_to(outside)
    with pytest.raises(PublishError):
        target.put(KEY, b"{}", content_type=JSON)
    assert list(outside.iterdir()) == []


def test_a_link_at_the_name_itself_is_replaced_not_followed(target: FolderTarget, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text("theirs")
    (target.root / "xx000001/zarr").mkdir(parents=True)
    (target.root / KEY).symlink_to(outside)
    target.put(KEY, b"ours", content_type=JSON)
    assert outside.read_text() == "theirs"
    assert (target.root / KEY).read_bytes() == b"ours"
    assert not (target.root / KEY).is_symlink()


def test_deleting_an_object_twice_is_fine(target: FolderTarget) -> None:
    target.put(KEY, b"{}", content_type=JSON)
    target.delete(KEY)
    target.delete(KEY)
    assert target.read(KEY) is None


def test_the_permission_bits_of_what_is_served_follow_the_umask(target: FolderTarget) -> None:
    before = os.umask(0o022)
    try:
        target.put(KEY, b"{}", content_type=JSON)
    finally:
        os.umask(before)
    assert (target.root / KEY).stat().st_mode & 0o777 == 0o644
    assert (target.root / "xx000001").stat().st_mode & 0o777 == 0o755


def test_the_addresses_name_the_gateway_of_this_machine(target: FolderTarget) -> None:
    addresses = target.addresses("xx000001")
    assert addresses.contract_base == addresses.data_base == "http://127.0.0.1:8321/xx000001/zarr/"
    assert (addresses.data_base_kind, addresses.s3_uri) == ("local-http", "s3://local/xx000001/zarr/")
    assert (addresses.s3_region, addresses.s3_anonymous) == ("local", False)


def test_an_object_is_fetched_into_a_file_with_its_etag(target: FolderTarget, tmp_path: Path) -> None:
    assert target.etag(KEY) is None
    assert target.fetch(KEY, tmp_path / "copy") is None
    assert not (tmp_path / "copy").exists()
    etag = target.put(KEY, b"x" * 3_000_000, content_type=JSON)
    assert target.etag(KEY) == target.fetch(KEY, tmp_path / "copy") == etag
    assert (tmp_path / "copy").read_bytes() == b"x" * 3_000_000
