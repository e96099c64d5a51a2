from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from contract.codes import FailureCode
from contract.errors import RecordingFailed, Refused
from tasks.bids.discovery import discover_source
from tasks.sources import open_source
from tasks.sources.folder import FolderSource
from tasks.sources.protocol import Absence, SourceChanged

KEY = "SHA256E-s4096--0a1b.edf"
EDF = "sub-01/eeg/sub-01_task-x_eeg.edf"
TSV = "sub-01/eeg/sub-01_task-x_channels.tsv"


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write(tmp_path / "ds", {"dataset_description.json": b"{}", EDF: b"edf" * 1000, TSV: b"name\nA\n"})


def annexed(dataset: Path, path: str, content: bytes | None, key: str = KEY) -> None:
    """Put a locked git-annex file in the place of ``path``."""
    objects = f".git/annex/objects/aa/bb/{key}/{key}"
    if content is not None:
        write(dataset, {objects: content})
    (dataset / path).unlink(missing_ok=True)
    (dataset / path).parent.mkdir(parents=True, exist_ok=True)
    (dataset / path).symlink_to(Path("../" * path.count("/")) / objects)


def test_the_tree_is_every_file_by_its_path_sorted(dataset: Path) -> None:
    write(dataset, {"README": b"x", ".bidsignore": b"", "sub-é/eeg/ü_eeg.edf": b"1", ".datalad/config": b""})
    write(
        dataset, {".git/HEAD": b"x", "sub/.git": b"gitdir: x", "derivatives/x_eeg.edf": b"x", "sub-01/code/a.edf": b"x"}
    )
    write(dataset, {"x_meg.ds/code/inner": b"x", "mycode/y.edf": b"y"})
    tree = open_source(str(dataset)).tree()
    assert list(tree) == sorted(
        [
            "dataset_description.json",
            EDF,
            TSV,
            "README",
            ".bidsignore",
            "sub-é/eeg/ü_eeg.edf",
            ".datalad/config",
            "x_meg.ds/code/inner",
            "mycode/y.edf",
        ]
    )
    assert tree[EDF].size_bytes == 3000


def test_sidecars_have_the_id_of_their_bytes_and_signals_that_of_their_times(dataset: Path, tmp_path: Path) -> None:
    first = open_source(str(dataset)).tree()
    twin = open_source(str(write(tmp_path / "twin", {EDF: b"edf" * 1000, TSV: b"name\nA\n"}))).tree()
    assert first[TSV] == twin[TSV]
    assert first[EDF].content_id != twin[EDF].content_id
    os.utime(dataset / TSV, ns=(1, 1))
    os.utime(dataset / EDF, ns=(1, 1))
    touched = open_source(str(dataset)).tree()
    assert touched[TSV] == first[TSV]
    assert touched[EDF].content_id != first[EDF].content_id
    assert open_source(str(dataset)).tree() == touched


def test_hashed_signals_have_one_id_wherever_they_are(dataset: Path, tmp_path: Path) -> None:
    twin = write(tmp_path / "twin", {EDF: b"edf" * 1000, TSV: b"name\nA\n"})
    ids = {open_source(str(folder), hash_signals=True).tree()[EDF].content_id for folder in (dataset, twin)}
    assert len(ids) == 1
    (twin / EDF).write_bytes(b"edg" * 1000)
    assert open_source(str(twin), hash_signals=True).tree()[EDF].content_id not in ids


def test_a_locked_annex_file_is_its_key_whether_or_not_its_content_is_here(dataset: Path) -> None:
    annexed(dataset, EDF, None)
    without = open_source(str(dataset)).tree()[EDF]
    assert (without.size_bytes, without.content_id, without.absent) == (4096, f"annex:{KEY}", Absence.NOT_FETCHED)
    annexed(dataset, EDF, b"e" * 4096)
    within = open_source(str(dataset)).tree()[EDF]
    assert (within.size_bytes, within.content_id, within.absent) == (4096, f"annex:{KEY}", None)


def test_an_object_store_behind_a_link_holds_content_and_any_other_file_called_so_does_not(
    dataset: Path, tmp_path: Path
) -> None:
    annexed(dataset, EDF, b"e" * 4096)
    (dataset / ".git/annex/objects").rename(tmp_path / "store")
    (dataset / ".git/annex/objects").symlink_to(tmp_path / "store")
    assert open_source(str(dataset)).tree()[EDF].absent is None
    write(tmp_path / "etc", {"passwd": b"secret"})
    (dataset / "annex/objects").mkdir(parents=True)
    (dataset / "annex/objects/passwd").symlink_to(tmp_path / "etc")
    (dataset / EDF).unlink()
    (dataset / EDF).symlink_to("../../annex/objects/passwd/passwd")
    assert open_source(str(dataset)).tree()[EDF].absent is Absence.OUTSIDE


def test_an_unlocked_annex_pointer_is_never_read_as_content(dataset: Path) -> None:
    write(dataset, {EDF: f"/annex/objects/{KEY}\n".encode(), TSV: f"/annex/objects/{KEY}\n".encode()})
    source = open_source(str(dataset))
    for path in (EDF, TSV):
        assert source.tree()[path].content_id == f"annex:{KEY}"
        assert source.tree()[path].absent is Absence.NOT_FETCHED
        with pytest.raises(FileNotFoundError, match="git-annex"):
            source.read(path)
        with pytest.raises(RecordingFailed) as failed:
            source.fetch({path: f"annex:{KEY}"}, dataset.parent / "scratch")
        assert failed.value.failure is FailureCode.ANNEX_OBJECT_MISSING
        assert path in str(failed.value.detail)


def test_links_inside_are_followed_and_links_to_nothing_or_outside_have_no_content(
    dataset: Path, tmp_path: Path
) -> None:
    secret = write(tmp_path, {"secret.tsv": b"password\n"}) / "secret.tsv"
    meg = dataset / "sub-01/meg"
    meg.mkdir()
    (meg / "inside_eeg.edf").symlink_to(dataset / EDF)
    (meg / "nothing_eeg.edf").symlink_to("gone.edf")
    (meg / "loop_eeg.edf").symlink_to("loop_eeg.edf")
    (meg / "outside_channels.tsv").symlink_to(secret)
    source = open_source(str(dataset))
    tree = source.tree()
    assert tree["sub-01/meg/inside_eeg.edf"] == tree[EDF]
    assert tree["sub-01/meg/nothing_eeg.edf"].absent is Absence.DANGLING
    assert tree["sub-01/meg/loop_eeg.edf"].absent is Absence.DANGLING
    assert tree["sub-01/meg/outside_channels.tsv"].absent is Absence.OUTSIDE
    with pytest.raises(FileNotFoundError, match="leads out"):
        source.read("sub-01/meg/outside_channels.tsv")
    with pytest.raises(RecordingFailed) as failed:
        source.fetch({"sub-01/meg/nothing_eeg.edf": "link:gone.edf"}, tmp_path / "scratch")
    assert failed.value.failure is FailureCode.FILE_READ_ERROR


def test_linked_folders_devices_and_empty_folder_recordings_are_told_and_not_taken(
    dataset: Path, tmp_path: Path
) -> None:
    write(tmp_path / "other", {"x_eeg.edf": b"x"})
    (dataset / "linked").symlink_to(tmp_path / "other")
    (dataset / "sub-01/meg_meg.ds").mkdir()
    os.mkfifo(dataset / "pipe_eeg.edf")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(dataset / "s"))
        discovery = discover_source(open_source(str(dataset)))
    assert [problem.path for problem in discovery.problems] == ["linked", "pipe_eeg.edf", "s", "sub-01/meg_meg.ds"]
    assert [recording.path for recording in discovery.recordings] == [EDF]


def test_a_name_that_is_no_utf8_is_told(dataset: Path) -> None:
    (dataset / os.fsdecode(b"sub-01/x\xff_eeg.edf")).write_bytes(b"x")
    discovery = discover_source(open_source(str(dataset)))
    assert [problem.path for problem in discovery.problems] == ["sub-01/x\\udcff_eeg.edf"]
    assert [recording.path for recording in discovery.recordings] == [EDF]


def test_a_folder_that_cannot_be_listed_refuses_the_run(dataset: Path) -> None:
    # Opening a name that is too long fails for root too, as a folder without permission does for others.
    source = FolderSource(dataset)
    deep = dataset
    descriptor = os.open(dataset, os.O_RDONLY)
    try:
        for _ in range(25):
            name = "d" * 200
            os.mkdir(name, dir_fd=descriptor)
            inner = os.open(name, os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
            deep = deep / name
    finally:
        os.close(descriptor)
    with pytest.raises(Refused, match="cannot be listed"):
        source.tree()


def test_fetching_makes_files_readable_under_their_own_names(dataset: Path, tmp_path: Path) -> None:
    annexed(dataset, "sub-01/eeg/a_eeg.edf", b"annexed")
    source = open_source(str(dataset))
    scratch = tmp_path / "scratch"
    paths = [EDF, TSV, "sub-01/eeg/a_eeg.edf"]
    for _ in range(2):
        source.fetch(dict.fromkeys(paths, ""), scratch)
    assert [(scratch / path).read_bytes() for path in paths] == [b"edf" * 1000, b"name\nA\n", b"annexed"]
    assert sorted(str(path.relative_to(scratch)) for path in scratch.rglob("*") if not path.is_dir()) == sorted(paths)
    with pytest.raises(SourceChanged):
        source.fetch({"sub-01/eeg/gone_eeg.edf": ""}, scratch)


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "", "a//b", "a\\b"])
def test_no_path_leads_out_of_the_dataset(dataset: Path, tmp_path: Path, path: str) -> None:
    source = open_source(str(dataset))
    for act in (
        lambda: source.read(path),
        lambda: source.fetch({path: ""}, tmp_path / "s"),
        lambda: source.unchanged({path: "x"}),
    ):
        with pytest.raises(Refused):
            act()


@pytest.mark.parametrize("hash_signals", [False, True])
def test_a_file_that_changes_under_us_is_noticed(dataset: Path, hash_signals: bool) -> None:
    tree = open_source(str(dataset), hash_signals=hash_signals).tree()
    inputs = {path: tree[path].content_id for path in (EDF, TSV)}
    later = open_source(str(dataset))
    assert later.unchanged(inputs)
    for path in (EDF, TSV):
        before = (dataset / path).read_bytes()
        (dataset / path).write_bytes(before[:-1] + b"X")
        assert not later.unchanged(inputs)
        (dataset / path).write_bytes(before)
        assert later.unchanged({path: inputs[path]}) is (path == TSV or hash_signals)
        (dataset / path).unlink()
        assert not later.unchanged(inputs)
        (dataset / path).write_bytes(before)


def test_dropping_and_getting_annex_content_changes_nothing(dataset: Path) -> None:
    annexed(dataset, EDF, b"e" * 4096)
    source = open_source(str(dataset))
    inputs = {EDF: source.tree()[EDF].content_id}
    (dataset / EDF).resolve().unlink()
    assert source.unchanged(inputs)


@pytest.mark.parametrize("kind", ["missing", "file", "empty", "web", "nothing", "nul"])
def test_a_source_that_is_no_dataset_folder_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    url = {"web": "https://example.org/ds", "nothing": "", "nul": "a\0b"}.get(kind, str(tmp_path / kind))
    with pytest.raises(Refused, match="SOURCE"):
        open_source(url)


def test_a_source_is_one_whichever_way_it_is_written(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(dataset.parent)
    assert open_source("ds").url == open_source(f"{dataset}/").url == open_source(dataset.as_uri()).url == str(dataset)
    (dataset.parent / "link").symlink_to("ds")
    linked = open_source("link")
    assert linked.url == open_source(f"{dataset}/../ds").url == str(dataset)
    assert linked.tree() == open_source("ds").tree()
