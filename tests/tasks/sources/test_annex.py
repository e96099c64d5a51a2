"""Repositories made by the real git-annex: what zarrmill says of them is what git-annex says."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from git_dataset import annex_repository, commit_all, git, key_of, write

from contract.codes import FailureCode
from contract.errors import NotNow, RecordingFailed, Refused
from tasks.bids.discovery import discover_source
from tasks.sources import SourceAddress, open_source
from tasks.sources.annex import content_digest, key_size_bytes, local_places
from tasks.sources.protocol import Absence, Source

EDF, OTHER = "sub-01/eeg/sub-01_task-x_eeg.edf", "sub-02/eeg/sub-02_task-x_eeg.edf"
TSV = "sub-01/eeg/sub-01_task-x_channels.tsv"
CONTENT = {EDF: b"first" * 1000, OTHER: b"other" * 1000}
BACKENDS = ["SHA256E", "MD5E", "SHA1", "SHA3_256E", "BLAKE2B256", "WORM"]


@pytest.fixture(autouse=True)
def _installed(require) -> None:
    if shutil.which("git-annex") is None:
        require("git-annex", "git-annex is not installed")


def dataset(folder: Path, *, backend: str = "SHA256E") -> Path:
    annex_repository(folder, backend=backend)
    write(folder, {"dataset_description.json": b"{}", TSV: b"name\nA\n", **CONTENT})
    git(folder, "annex", "add", "-q", ".")
    commit_all(folder)
    return folder


def at(folder: Path, commit: str | None = "HEAD") -> Source:
    return open_source(SourceAddress(url=str(folder), commit=commit))


@pytest.mark.parametrize("backend", BACKENDS)
def test_keys_sizes_places_and_hashes_are_those_of_git_annex(tmp_path: Path, backend: str) -> None:
    folder = dataset(tmp_path / "ds", backend=backend)
    source = at(folder)
    for path, content in CONTENT.items():
        key = key_of(folder, path)
        entry = source.tree()[path]
        assert (entry.content_id, entry.size_bytes, entry.absent) == (f"annex:{key}", len(content), None)
        assert key_size_bytes(key) == len(content)
        mixed, lower = local_places(key)
        assert (folder / path).resolve() == folder / ".git/annex/objects" / mixed
        told = git(folder, "annex", "lookupkey", path)
        assert git(folder, "annex", "examinekey", "--format=${hashdirmixed}", told) == mixed.partition(key)[0]
        assert git(folder, "annex", "examinekey", "--format=${hashdirlower}", told) == lower.partition(key)[0]
        expected = content_digest(key)
        assert (expected is None) is (backend == "WORM")
        if expected is not None:
            expected[0].update(content)
            assert expected[0].hexdigest() == expected[1]


@pytest.mark.parametrize("shape", ["locked", "unlocked", "bare", "bare-annexed", "worktree"])
def test_content_is_found_in_every_shape_of_annex(tmp_path: Path, shape: str) -> None:
    folder = dataset(tmp_path / "ds")
    key = key_of(folder, EDF)
    place = folder
    if shape == "unlocked":
        git(folder, "annex", "unlock", "-q", EDF)
        commit_all(folder)
    elif shape == "bare":
        # objects where a bare repository keeps them: hashdirlower
        place = tmp_path / "bare.git"
        git(tmp_path, "clone", "-q", "--bare", str(folder), str(place))
        git(place, "annex", "init", "-q", "bare")
        git(folder, "remote", "add", "bare", str(place))
        git(folder, "annex", "copy", "-q", "--to=bare", ".")
        assert (place / "annex/objects" / local_places(key)[1]).is_file()
    elif shape == "bare-annexed":
        place = folder / ".git"
    elif shape == "worktree":
        place = tmp_path / "tree"
        git(folder, "worktree", "add", "-q", "--detach", str(place))
    source = at(place)
    entry = source.tree()[EDF]
    assert (entry.content_id, entry.absent) == (f"annex:{key}", None)
    source.fetch({EDF: entry.content_id}, tmp_path / "scratch")
    assert (tmp_path / "scratch" / EDF).read_bytes() == CONTENT[EDF]
    assert source.copied_bytes([EDF]) == 0


def test_dropped_content_is_a_failure_by_name_and_comes_back(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "ds")
    before = at(folder).tree()[EDF]
    git(folder, "annex", "drop", "-q", "--force", EDF)
    source = at(folder)
    entry = source.tree()[EDF]
    assert (entry.content_id, entry.absent) == (before.content_id, Absence.NOT_FETCHED)
    with pytest.raises(RecordingFailed) as failed:
        source.fetch({EDF: entry.content_id}, tmp_path / "scratch")
    assert failed.value.failure is FailureCode.ANNEX_OBJECT_MISSING
    assert EDF in str(failed.value.detail)


def test_content_of_another_size_than_its_key_says_is_no_verdict(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "ds")
    stored = (folder / EDF).resolve()
    stored.parent.chmod(0o755)
    stored.chmod(0o644)
    os.truncate(stored, 100)
    source = at(folder)
    with pytest.raises(NotNow) as pending:
        source.fetch({EDF: source.tree()[EDF].content_id}, tmp_path / "scratch")
    assert not pending.value.counted
    assert "100 bytes" in str(pending.value.detail)


def test_an_annexed_sidecar_is_read_as_its_content(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "ds")
    sidecar = "sub-01/eeg/sub-01_task-x_acq-a.big.tsv"
    for unlocked in (False, True):
        write(folder, {sidecar: b"name\nannexed\n", "participants.tsv": b"participant_id\nsub-01\n"})
        git(folder, "-c", "annex.largefiles=anything", "annex", "add", "-q", sidecar, "participants.tsv")
        if unlocked:
            git(folder, "annex", "unlock", "-q", sidecar, "participants.tsv")
        commit_all(folder)
        source = at(folder)
        assert source.tree()[sidecar].content_id == f"annex:{key_of(folder, sidecar)}"
        assert source.read(sidecar) == b"name\nannexed\n"
        assert source.read("participants.tsv") == b"participant_id\nsub-01\n"
        git(folder, "rm", "-q", "-f", sidecar, "participants.tsv")
        commit_all(folder)


def test_a_checkout_and_its_commit_agree_on_what_is_annexed(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "ds")
    lying, committed = open_source(str(folder)), at(folder)
    found = [discover_source(source).recordings for source in (lying, committed)]
    assert found[0] == found[1]
    assert {lying.tree()[path].content_id for path in CONTENT} == {
        committed.tree()[path].content_id for path in CONTENT
    }
    assert lying.commit(discover_source(lying).matters()) == committed.commit(())


def test_asking_for_the_commit_of_an_unlocked_checkout_runs_no_git_annex(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "ds")
    git(folder, "annex", "unlock", "-q", EDF)
    head = commit_all(folder)
    git(folder, "status")
    source = open_source(str(folder))
    assert source.commit(discover_source(source).matters()) == head


def test_an_unlocked_file_is_as_committed_by_its_content_not_by_its_times(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "ds")
    git(folder, "annex", "unlock", "-q", EDF)
    head = commit_all(folder)
    source = open_source(str(folder))
    matters = discover_source(source).matters()
    os.utime(folder / EDF, (1, 1))
    assert source.commit(matters) == head
    (folder / EDF).chmod(0o644)
    for other in (b"other" * 1000, b"shorter"):
        (folder / EDF).write_bytes(other)
        os.utime(folder / EDF, (1, 1))
        with pytest.raises(Refused, match=f"Not as committed in .*: {EDF}"):
            source.commit(matters)
