"""The version of a source changes with whatever a run could see, and with nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from git_dataset import commit_all, git, repository, write
from s3_server import S3Place

from contract.errors import Refused
from infra.settings import Settings
from tasks.sources import SourceAddress
from tasks.sources.version import source_version

FILES = {
    "dataset_description.json": b"{}",
    "sub-01/eeg/sub-01_task-rest_eeg.edf": b"signal",
    "sourcedata/raw.bin": b"x",
}


def version(url: str | Path) -> str:
    return source_version(SourceAddress(url=str(url)), Settings())


CHANGES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "nothing": (lambda _: None, False),
    "a signal": (lambda f: (f / "sub-01/eeg/sub-01_task-rest_eeg.edf").write_bytes(b"signal2"), True),
    "a signal of equal size": (lambda f: rewritten(f / "sub-01/eeg/sub-01_task-rest_eeg.edf", b"SIGNAL"), True),
    "a new file": (lambda f: (f / "participants.tsv").write_bytes(b"participant_id\n"), True),
    "a file that went": (lambda f: (f / "dataset_description.json").unlink(), True),
    "a renamed file": (lambda f: (f / "sub-01").rename(f / "sub-02"), True),
    "something outside the raw data": (lambda f: (f / "sourcedata/raw.bin").write_bytes(b"yy"), False),
    "content that a link leads to": (lambda f: (f.parent / "annexed").write_bytes(b"content"), True),
}


def rewritten(path: Path, data: bytes) -> None:
    """Other bytes with another time, whatever the resolution of the clock."""
    before = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


@pytest.mark.parametrize(("change", "changes"), CHANGES.values(), ids=CHANGES)
def test_a_folder(tmp_path: Path, change: Callable[[Path], object], changes: bool) -> None:
    folder = write(tmp_path / "ds", FILES)
    (folder / "linked.edf").symlink_to("../annexed")
    before = version(folder)
    assert before.startswith("folder:")
    change(folder)
    assert (version(folder) != before) is changes


def test_a_repository_is_its_commit(tmp_path: Path) -> None:
    first = repository(tmp_path / "work", FILES)
    git(tmp_path, "clone", "-q", "--bare", "work", "ds.git")
    assert version(tmp_path / "ds.git") == f"git:{first}"
    write(tmp_path / "work", {"README": b"x"})
    second = commit_all(tmp_path / "work")
    git(tmp_path / "work", "push", "-q", str(tmp_path / "ds.git"), "main")
    assert version(tmp_path / "ds.git") == f"git:{second}"
    assert version(tmp_path / "work").startswith("folder:"), "a checkout is read as it lies there"


def test_a_bucket_is_its_listing(s3: S3Place) -> None:
    for name, data in FILES.items():
        s3.put(f"ds/{name}", data)

    def now() -> str:
        return source_version(SourceAddress(url=f"s3://{s3.name}/ds"), s3.settings())

    before = now()
    assert before.startswith("bucket:")
    s3.put("ds/sourcedata/raw.bin", b"yy")
    assert now() == before
    s3.put("ds/sub-01/eeg/sub-01_task-rest_eeg.edf", b"SIGNAL")
    assert now() != before


def test_a_source_that_is_away_has_no_version(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="does not exist"):
        version(tmp_path / "gone")
