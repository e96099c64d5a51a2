from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fabricated import tree_of, write_store

from contract.errors import LostLease, PublishError
from infra.storage.folder import FolderTarget

KEY = "xx000001/zarr/sub-01/eeg/sub-01_task-rest_eeg.zarr"


def go() -> None:
    """Say yes: the lease is held."""


@pytest.fixture
def target(tmp_path: Path) -> FolderTarget:
    return FolderTarget(tmp_path / "served", port=8321)


def put(target: FolderTarget, scratch: Path, version: str, *, token: str = "t1", chunks: int = 3) -> dict[str, str]:
    objects = write_store(scratch, version, chunks=chunks)
    target.put_store(KEY, scratch, objects, token=token, may_write=go)
    return objects


def staged(target: FolderTarget) -> list[str]:
    return sorted(path.name for path in (target.root / ".zarrmill/staging").iterdir())


def test_a_new_store_appears_whole_and_nothing_is_left_beside_it(target: FolderTarget, tmp_path: Path) -> None:
    objects = put(target, tmp_path / "scratch", "one")
    digests = target.store_digests(KEY)
    assert digests is not None
    assert {name: digest for name, (_size, digest) in digests.items()} == objects
    assert all(size == (target.root / KEY / name).stat().st_size for name, (size, _digest) in digests.items())
    assert target.store_exists(KEY)
    assert staged(target) == []
    assert not (tmp_path / "scratch").exists()


def test_a_replaced_store_keeps_no_object_of_the_old_one(target: FolderTarget, tmp_path: Path) -> None:
    put(target, tmp_path / "scratch", "one", chunks=6)
    put(target, tmp_path / "scratch", "two", chunks=2)
    served = tree_of(target.root / KEY)
    assert {text.split(b":")[0] for name, text in served.items() if name != "zarr.json"} == {b"two"}
    assert len(served) == 3
    assert staged(target) == []


def test_a_store_from_another_file_system_is_copied(target: FolderTarget, tmp_path: Path) -> None:
    other = Path("/dev/shm") / f"zarrmill-test-{os.getpid()}"
    if not Path("/dev/shm").is_dir() or Path("/dev/shm").stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("this machine has no second file system to copy from")
    try:
        objects = write_store(other, "far")
        calls: list[bool] = []
        target.put_store(KEY, other, objects, token="t1", may_write=lambda: calls.append(target.store_exists(KEY)))
        assert len(calls) >= len(objects)
        assert not any(calls)
        assert not other.exists()
        assert {name: digest for name, (_size, digest) in (target.store_digests(KEY) or {}).items()} == objects
        write_store(other, "spoilt")
        with pytest.raises(PublishError, match="changed while it was copied"):
            target.put_store(KEY, other, objects, token="t2", may_write=go)
        assert {name: digest for name, (_size, digest) in (target.store_digests(KEY) or {}).items()} == objects
        assert staged(target) == []
    finally:
        subprocess.run(["rm", "-rf", str(other)], check=True)


@pytest.mark.parametrize("change", ["extra", "missing", "link", "no root"])
def test_a_folder_that_is_not_what_was_checked_is_not_served(target: FolderTarget, tmp_path: Path, change: str) -> None:
    before = put(target, tmp_path / "scratch", "one")
    objects = write_store(tmp_path / "scratch", "two")
    if change == "extra":
        (tmp_path / "scratch/extra").write_text("")
    elif change == "missing":
        (tmp_path / "scratch/eeg_250hz/0/c/1/0").unlink()
    elif change == "link":
        (tmp_path / "scratch/link").symlink_to("/etc/passwd")
    else:
        del objects["zarr.json"]
    with pytest.raises(PublishError):
        target.put_store(KEY, tmp_path / "scratch", objects, token="t2", may_write=go)
    assert {name: digest for name, (_size, digest) in (target.store_digests(KEY) or {}).items()} == before
    assert staged(target) == []


@pytest.mark.parametrize("allowed", [0, 1, 2])
def test_a_lost_lease_stops_the_replacement_before_each_write(
    target: FolderTarget, tmp_path: Path, allowed: int
) -> None:
    before = put(target, tmp_path / "scratch", "one")
    objects = write_store(tmp_path / "scratch", "two")
    calls = iter(range(100))

    def may_write() -> None:
        if next(calls) >= allowed:
            raise LostLease("gone")

    with pytest.raises(LostLease):
        target.put_store(KEY, tmp_path / "scratch", objects, token="t2", may_write=may_write)
    assert {name: digest for name, (_size, digest) in (target.store_digests(KEY) or {}).items()} == before
    assert staged(target) == []


def test_private_scratch_becomes_readable_as_the_umask_says(target: FolderTarget, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    objects = write_store(scratch, "one")
    for path in (scratch, *scratch.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    before = os.umask(0o022)
    try:
        target.put_store(KEY, scratch, objects, token="t1", may_write=go)
    finally:
        os.umask(before)
    served = target.root / KEY
    modes = {path.is_dir(): path.stat().st_mode & 0o777 for path in (served, *served.rglob("*"))}
    assert modes == {True: 0o755, False: 0o644}


def test_a_link_at_the_stores_address_is_exchanged_not_followed(target: FolderTarget, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write_store(outside, "theirs")
    (target.root / KEY).parent.mkdir(parents=True)
    (target.root / KEY).symlink_to(outside)
    put(target, tmp_path / "scratch", "ours")
    assert not (target.root / KEY).is_symlink()
    assert b"theirs" in (outside / "zarr.json").read_bytes()


def test_deleting_stores_removes_the_folders_it_leaves_empty_and_nothing_else(
    target: FolderTarget, tmp_path: Path
) -> None:
    put(target, tmp_path / "scratch", "one")
    other = "xx000001/zarr/sub-02/eeg/sub-02_eeg.zarr"
    target.put_store(other, tmp_path / "s2", write_store(tmp_path / "s2", "b"), token="t", may_write=go)
    left = target.root / ".zarrmill/staging/removed-by-a-killed-run/x"
    left.mkdir(parents=True)
    target.delete_stores([KEY, KEY, "xx000001/zarr/sub-09/never.zarr"])
    assert not target.store_exists(KEY)
    assert target.store_exists(other)
    assert not (target.root / "xx000001/zarr/sub-01").exists()
    assert staged(target) == []
    target.delete_stores([other])
    assert target.root.is_dir()
    assert not (target.root / "xx000001").exists()


@pytest.mark.parametrize("key", ["xx000001/zarr", "xx000001/zarr/sub-01", "a.zarr", "xx000001/zarr/.zarr/../x.zarr"])
def test_only_a_store_can_be_deleted_as_a_store(target: FolderTarget, key: str) -> None:
    (target.root / "xx000001/zarr/sub-01").mkdir(parents=True)
    with pytest.raises(Exception, match=r"."):
        target.delete_stores([key])
    assert (target.root / "xx000001/zarr/sub-01").is_dir()


@pytest.mark.parametrize("token", ["", "../x", "a/b", ".hidden", "x" * 101])
def test_a_token_that_is_no_plain_name_is_refused(target: FolderTarget, tmp_path: Path, token: str) -> None:
    with pytest.raises(PublishError):
        put(target, tmp_path / "scratch", "one", token=token)


def test_a_store_without_its_root_does_not_exist(target: FolderTarget, tmp_path: Path) -> None:
    put(target, tmp_path / "scratch", "one")
    (target.root / KEY / "zarr.json").unlink()
    assert not target.store_exists(KEY)
    assert not target.store_exists("xx000009/zarr/x.zarr")
    assert target.store_digests("xx000009/zarr/x.zarr") is None


WRITER = """
import json, sys
from collections.abc import Callable
from pathlib import Path
from infra.storage.folder import FolderTarget
root, scratch, key, objects = sys.argv[1:]
def may_write():
    print("may I", flush=True)
    sys.stdin.readline()
FolderTarget(Path(root), port=1).put_store(
    key, Path(scratch), json.loads(objects), token="t2", may_write=may_write)
print("done", flush=True)
"""


def writer(target: FolderTarget, scratch: Path, objects: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(target.root), str(scratch), KEY, json.dumps(objects)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.stdout.close()


@pytest.mark.parametrize("answers", [0, 1, 2])
def test_a_writer_killed_before_the_exchange_leaves_the_old_store_and_repair_removes_its_garbage(
    target: FolderTarget, tmp_path: Path, answers: int
) -> None:
    before = put(target, tmp_path / "scratch", "one")
    process = writer(target, tmp_path / "scratch", write_store(tmp_path / "scratch", "two"))
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "may I\n"
        for _ in range(answers):
            process.stdin.write("yes\n")
            process.stdin.flush()
            assert process.stdout.readline() == "may I\n"
    finally:
        finish(process)
    assert len(staged(target)) == (1 if answers else 0)
    assert {name: digest for name, (_size, digest) in (target.store_digests(KEY) or {}).items()} == before
    target.repair_store(KEY, token="t2")
    assert staged(target) == []
    put(target, tmp_path / "again", "two", token="t2")
    assert b"two" in (target.root / KEY / "zarr.json").read_bytes()


def test_a_writer_killed_after_the_exchange_leaves_the_new_store_and_repair_removes_the_old(
    target: FolderTarget, tmp_path: Path
) -> None:
    """The old store has so many objects that its removal is seen under way; a stop in it is proven before the kill."""
    root = target.root / KEY / "zarr.json"
    put(target, tmp_path / "scratch", "one", chunks=1500)
    objects = write_store(tmp_path / "scratch", "two")
    process = writer(target, tmp_path / "scratch", objects)
    try:
        assert process.stdin is not None
        process.stdin.write("yes\n" * 3)
        process.stdin.flush()
        deadline = time.monotonic() + 90
        while b"two" not in root.read_bytes():
            assert time.monotonic() < deadline
        process.send_signal(signal.SIGSTOP)
    finally:
        finish(process)
    assert len(staged(target)) == 1, "the writer was stopped too late to show anything"
    assert {name: digest for name, (_size, digest) in (target.store_digests(KEY) or {}).items()} == objects
    target.repair_store(KEY, token="t2")
    assert staged(target) == []
    assert {name: digest for name, (_size, digest) in (target.store_digests(KEY) or {}).items()} == objects


CHUNKS = 8


class FolderReader:
    """Reads a store by the protocol; ``used`` holds the versions of what each read was allowed to use."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.used: list[set[str]] = []

    def read(self, between: Callable[[], None] = lambda: None) -> bool:
        """Read the root, the chunks and the root again; whether what was read may be used."""
        try:
            root = (self.store / "zarr.json").read_bytes()
            chunks = []
            for number in range(CHUNKS):
                chunks.append((self.store / f"eeg_250hz/0/c/{number}/0").read_text())
                between()
            after = (self.store / "zarr.json").read_bytes()
        except FileNotFoundError:
            return False
        if after != root:
            return False
        self.used.append({text.split(":")[0] for text in chunks} | {json.loads(root)["attributes"]["version"]})
        return True

    def mixtures(self) -> list[set[str]]:
        """What was used and was of more than one version."""
        return [versions for versions in self.used if len(versions) > 1]


def test_a_reader_that_compares_the_root_before_and_after_never_uses_a_mixture(
    target: FolderTarget, tmp_path: Path
) -> None:
    put(target, tmp_path / "scratch", "v0", chunks=CHUNKS)
    done = threading.Event()
    reader = FolderReader(target.root / KEY)

    def read_on() -> None:
        while not done.is_set():
            reader.read()

    thread = threading.Thread(target=read_on)
    thread.start()
    for version in range(1, 51):
        put(target, tmp_path / "scratch", f"v{version}", chunks=CHUNKS)
    done.set()
    thread.join()
    assert len({next(iter(versions)) for versions in reader.used}) > 5
    assert reader.mixtures() == []


def test_the_loop_catches_a_writer_who_only_replaces_the_root_last(target: FolderTarget, tmp_path: Path) -> None:
    put(target, tmp_path / "scratch", "v0", chunks=CHUNKS)
    reader = FolderReader(target.root / KEY)
    objects = write_store(tmp_path / "planted", "v1", chunks=CHUNKS)
    for name in sorted(objects, key=lambda name: (name == "zarr.json", name)):
        (target.root / KEY / name).write_bytes((tmp_path / "planted" / name).read_bytes())
        reader.read()
    assert len(reader.mixtures()) == CHUNKS
    versions = iter(range(2, 99))

    def exchanged() -> None:
        put(target, tmp_path / "scratch", f"v{next(versions)}", chunks=CHUNKS)

    assert not reader.read(between=exchanged), "an exchange between two reads is seen by the root"
    assert len(reader.mixtures()) == CHUNKS


def test_the_digests_are_those_of_the_bytes(target: FolderTarget, tmp_path: Path) -> None:
    put(target, tmp_path / "scratch", "one")
    (target.root / KEY / "zarr.json").write_bytes(b"changed")
    digests = target.store_digests(KEY)
    assert digests is not None
    assert digests["zarr.json"] == (7, hashlib.sha256(b"changed").hexdigest())
