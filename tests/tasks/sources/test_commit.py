from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from git_dataset import commit_all, git

from contract.errors import Refused
from tasks.bids.discovery import discover_source
from tasks.sources import open_source

EDF = "sub-01/eeg/sub-01_task-x_eeg.edf"
TSV = "sub-01/eeg/sub-01_task-x_channels.tsv"


def commit_of(folder: Path, **how: bool) -> str:
    source = open_source(str(folder), **how)
    return source.commit(discover_source(source).matters())


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "outer" / "ds"
    for name, text in {"dataset_description.json": "{}", EDF: "edf", TSV: "name\nA\n", "README": "r"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def checkout(dataset: Path) -> Path:
    git(dataset, "init", "-q")
    commit_all(dataset)
    return dataset


def test_the_toplevel_of_a_checkout_has_the_commit_of_its_head(checkout: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    assert commit_of(checkout) == head
    git(checkout, "checkout", "-q", "--detach")
    assert commit_of(checkout) == head


def test_a_plain_folder_inside_somebody_elses_checkout_never_has_its_commit(dataset: Path) -> None:
    git(dataset.parent, "init", "-q")
    outer = commit_all(dataset.parent)
    commit = commit_of(dataset)
    assert re.fullmatch(r"[0-9a-f]{40}", commit)
    assert commit != outer
    (dataset / ".git").mkdir()
    assert commit_of(dataset) == commit


@pytest.mark.parametrize("change", ["edit", "stage", "add", "ignore", "remove", "retype"])
def test_uncommitted_changes_of_what_matters_are_refused_by_name(checkout: Path, change: str) -> None:
    named = "sub-01/eeg/sub-01_task-y_eeg.edf" if change in {"add", "ignore"} else TSV
    if change in {"edit", "stage"}:
        (checkout / TSV).write_text("name\nB\n")
    elif change == "remove":
        (checkout / TSV).unlink()
    elif change == "retype":
        (checkout / TSV).rename(checkout / "moved.tsv")
        (checkout / TSV).symlink_to(checkout / "moved.tsv")
    else:
        (checkout / named).write_text("new")
    if change == "ignore":
        (checkout / ".git/info/exclude").write_text("*task-y*")
    if change == "stage":
        git(checkout, "add", "-A")
    with pytest.raises(Refused) as refused:
        commit_of(checkout)
    assert named in refused.value.sentence
    assert "--allow-dirty" in refused.value.sentence
    dirty = commit_of(checkout, allow_dirty=True)
    assert re.fullmatch(r"[0-9a-f]{40}", dirty)
    assert dirty != git(checkout, "rev-parse", "HEAD")


def test_changes_of_what_does_not_matter_are_none(checkout: Path) -> None:
    (checkout / "derivatives").mkdir()
    (checkout / "derivatives/x_eeg.edf").write_text("x")
    (checkout / "README").write_text("other")
    (checkout / "served").mkdir()
    (checkout / "served/zarr-catalog.json").write_text("{}")
    assert commit_of(checkout) == git(checkout, "rev-parse", "HEAD")


def test_many_changes_are_counted_and_some_named(checkout: Path) -> None:
    for number in range(12):
        (checkout / f"sub-01/eeg/n{number:02d}_eeg.edf").write_text("x")
    with pytest.raises(Refused, match=r"n00_eeg\.edf.*n04_eeg\.edf and 7 more"):
        commit_of(checkout)


def test_a_checkout_without_a_commit_is_refused(dataset: Path) -> None:
    git(dataset, "init", "-q")
    with pytest.raises(Refused, match="no commit yet"):
        commit_of(dataset)
    assert len(commit_of(dataset, allow_dirty=True)) == 40


def test_a_callers_git_variables_do_not_lead_elsewhere(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert commit_of(checkout) == head


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_a_checkout_of_another_user_is_refused_as_git_refuses_it(checkout: Path) -> None:
    os.chown(checkout, 1234, 1234)
    os.chown(checkout / ".git", 1234, 1234)
    with pytest.raises(Refused, match=r"dubious ownership.*--allow-dirty"):
        commit_of(checkout)


def test_a_worktree_and_a_submodule_are_checkouts_too(checkout: Path, tmp_path: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    git(checkout, "worktree", "add", "-q", str(tmp_path / "tree"))
    assert commit_of(tmp_path / "tree") == head
    parent = tmp_path / "super"
    parent.mkdir()
    (parent / "dataset_description.json").write_text("{}")
    git(parent, "init", "-q")
    git(parent, "submodule", "--quiet", "add", str(checkout), "inner")
    assert commit_all(parent) == commit_of(parent)
    assert commit_of(parent / "inner") == head
    (parent / "inner" / TSV).write_text("name\nB\n")
    with pytest.raises(Refused, match="inner/sub-01"):
        commit_of(parent)


def test_non_ascii_and_odd_names_are_compared_as_they_are(checkout: Path) -> None:
    (checkout / "sub-01/eeg/sub-é_task-a b_eeg.edf").write_text("x")
    assert commit_all(checkout) == commit_of(checkout)


def test_the_tree_hash_follows_what_matters_and_nothing_else(dataset: Path) -> None:
    first = commit_of(dataset)
    (dataset / "README").write_text("other")
    (dataset / "served").mkdir()
    (dataset / "served/x.json").write_text("{}")
    assert commit_of(dataset) == first
    (dataset / "dataset_description.json").write_text('{"Name": "x"}')
    second = commit_of(dataset)
    (dataset / TSV).rename(dataset / TSV.replace("task-x", "run-1"))
    assert len({first, second, commit_of(dataset)}) == 3
