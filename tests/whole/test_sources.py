"""One dataset from a bare clone at commits, its signals in a bucket: each run touches what a commit changed, and says its commit."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from command import Zarrmill
from git_dataset import commit_all, git
from s3_server import S3Place
from served_dataset import Served
from small_dataset import write_recording, write_root

SIDECAR = "sub-02/eeg/sub-02_task-rest_channels.tsv"


def annex_all(folder: Path, s3: S3Place) -> None:
    """Put every EDF of the folder into the bucket, and a locked pointer in its place."""
    for file in sorted(folder.rglob("*.edf")):
        if file.is_symlink():
            continue
        content = file.read_bytes()
        key = f"SHA256E-s{len(content)}--{hashlib.sha256(content).hexdigest()}.edf"
        s3.put(f"xx000077/objects/{key}", content)
        file.unlink()
        file.symlink_to(f"../../.git/annex/objects/aa/bb/{key}/{key}")


@pytest.fixture
def archive(tmp_path: Path, s3: S3Place) -> Path:
    """A metadata-only bare clone called xx000077.git, with a working clone beside it."""
    folder = tmp_path / "working"
    write_root(folder)
    for subject in ("01", "02", "03"):
        write_recording(folder, subject)
    annex_all(folder, s3)
    git(folder, "init", "-q", "-b", "main")
    commit_all(folder)
    git(tmp_path, "clone", "-q", "--bare", str(folder), "xx000077.git")
    git(folder, "remote", "add", "origin", str(tmp_path / "xx000077.git"))
    return tmp_path / "xx000077.git"


@pytest.mark.timeout(900)
def test_an_archive_of_commits_and_keys_is_kept_true(
    zarrmill: Zarrmill, s3: S3Place, archive: Path, tmp_path: Path
) -> None:
    working, served = tmp_path / "working", Served(tmp_path / "served", "xx000077")
    zarrmill = replace(zarrmill, settings={**zarrmill.settings, **s3.environment()})
    annex = ("--annex", f"s3://{s3.name}/xx000077", "--json")

    def convert(*more: str, code: int = 0) -> dict[str, object]:
        return zarrmill.run("convert", archive, *annex, *more, code=code).summary

    def push() -> str:
        commit = commit_all(working)
        git(working, "push", "-q", "origin", "main")
        return commit

    first = convert()
    head = git(working, "rev-parse", "HEAD")
    assert (first["dataset_id"], first["converted"], first["stores"]) == ("xx000077", 3, 3)
    assert served.index["source_commit"] == head
    assert not list(Path(zarrmill.home, "scratch").glob("*/source/**/*.edf"))

    s3.proxy.forget()
    again = convert()
    assert (again["run_number"], s3.proxy.counts()) == (None, {}), "a rerun asks the bucket for nothing"

    (working / SIDECAR).write_text((working / SIDECAR).read_text().replace("A\tEEG", "A\tEOG"))
    second = push()
    changed = convert()
    assert (changed["converted"], changed["carried"]) == (1, 2)
    assert s3.proxy.counts() == {"GET": 1}, "the one recording that changed is fetched"
    assert served.index["source_commit"] == second

    # a new recording whose upload has not ended waits, and what is served stays
    write_recording(working, "04")
    annex_all(working, s3)
    [key] = [key for key in s3.keys("xx000077/objects/") if key.endswith(_name(working, "04"))]
    content = s3.get(key)
    s3.put(key, content[:100])
    push()
    waiting = convert(code=5)
    assert (waiting["stores"], waiting["pending"], waiting["failures"]) == (3, 1, 0)
    [entry] = served.index["pending"]
    assert (entry["reason"], entry["attempts"]) == ("infra_failure", 0)
    assert "100 bytes instead of" in entry["last_error"]

    s3.plain.delete_object(Bucket=s3.name, Key=key)
    missing = convert("--mode", "retry-pending")
    assert (missing["stores"], missing["failures"]) == (3, 1)
    assert [entry["code"] for entry in served.index["failures"]] == ["annex_object_missing"]

    s3.put(key, content)
    whole = convert()
    assert (whole["stores"], whole["converted"]) == (4, 1)
    back = convert("--commit", head)
    assert (back["stores"], back["converted"]) == (3, 1), (
        "an earlier commit has its own sidecar and no fourth recording"
    )
    assert served.index["source_commit"] == head


def _name(folder: Path, subject: str) -> str:
    [link] = (folder / f"sub-{subject}").rglob("*.edf")
    return link.readlink().name
