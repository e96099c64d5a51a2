from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from git_dataset import commit_all, counting_git, git, planting, raw_tree, repository, write

from contract.codes import FailureCode
from contract.errors import NotNow, RecordingFailed, Refused
from tasks.bids.discovery import discover_source
from tasks.plan.fingerprint import source_fingerprint
from tasks.sources import SourceAddress, open_source
from tasks.sources.git_repository import GitSource
from tasks.sources.protocol import Absence, SourceChanged

EDF = "sub-01/eeg/sub-01_task-x_eeg.edf"
TSV = "sub-01/eeg/sub-01_task-x_channels.tsv"
KEY = "SHA256E-s4096--0a1b.edf"
FILES = {"dataset_description.json": b"{}", EDF: b"edf" * 1000, TSV: b"name\nA\n", "README": b"r"}


def at(folder: Path, commit: str | None = "HEAD") -> GitSource:
    source = open_source(SourceAddress(url=str(folder), commit=commit))
    assert isinstance(source, GitSource)
    return source


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "ds"
    repository(folder, FILES)
    return folder


def test_a_commit_is_read_as_it_is_whatever_lies_in_the_working_tree(dataset: Path) -> None:
    first = git(dataset, "rev-parse", "HEAD")
    write(dataset, {TSV: b"name\nB\n", "new_eeg.edf": b"n"})
    second = commit_all(dataset)
    write(dataset, {TSV: b"name\nnever committed\n"})
    old, new = at(dataset, first), at(dataset, "main")
    assert (old.commit(()), new.commit(())) == (first, second)
    assert (old.read(TSV), new.read(TSV)) == (b"name\nA\n", b"name\nB\n")
    assert set(old.tree()) == set(FILES)
    assert set(new.tree()) == {*FILES, "new_eeg.edf"}
    assert new.address == SourceAddress(url=str(dataset), commit=second)


def test_content_ids_are_the_blobs(dataset: Path, tmp_path: Path) -> None:
    tree = at(dataset).tree()
    assert {path: entry.content_id for path, entry in tree.items()} == {
        path: f"git:{git(dataset, 'rev-parse', f'HEAD:{path}')}" for path in FILES
    }
    assert tree[EDF].size_bytes == 3000
    git(tmp_path, "clone", "-q", "--bare", str(dataset), "bare.git")
    assert at(tmp_path / "bare.git").tree() == tree


@pytest.mark.parametrize("shape", ["checkout", "bare", "dot-git", "worktree", "detached", "tag", "packed"])
def test_every_shape_of_repository_is_read(dataset: Path, tmp_path: Path, shape: str) -> None:
    place, commit = dataset, "HEAD"
    if shape == "bare":
        git(tmp_path, "clone", "-q", "--bare", str(dataset), "bare.git")
        place = tmp_path / "bare.git"
    elif shape == "dot-git":
        place = dataset / ".git"
    elif shape == "worktree":
        place = tmp_path / "tree"
        git(dataset, "worktree", "add", "-q", str(place))
    elif shape == "tag":
        git(dataset, "tag", "-a", "1.0.0", "-m", "x")
        commit = "1.0.0"
    elif shape == "packed":
        git(dataset, "gc", "-q")
    source = at(place, commit)
    assert source.commit(()) == git(dataset, "rev-parse", "HEAD")
    assert source.read(TSV) == FILES[TSV]


def test_a_bare_repository_is_read_at_its_head_when_no_commit_is_named(dataset: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(dataset), "bare.git")
    assert at(tmp_path / "bare.git", None).commit(()) == git(dataset, "rev-parse", "HEAD")


def test_names_are_taken_as_they_are(dataset: Path) -> None:
    odd = [
        "sub-é/eeg/ü ö_eeg.edf",
        "a\nb_eeg.edf",
        'quo"te\t_eeg.edf',
        os.fsdecode(b"x\xff_eeg.edf"),
        "back\\slash_eeg.edf",
    ]
    write(dataset, dict.fromkeys(odd, b"x"))
    commit_all(dataset)
    source = at(dataset)
    assert set(source.tree()) == {*FILES, *odd}
    discovery = discover_source(source)
    assert {recording.path for recording in discovery.recordings} == {EDF, "sub-é/eeg/ü ö_eeg.edf"}
    assert len(discovery.problems) == 4


def test_what_is_not_raw_is_not_looked_at(dataset: Path) -> None:
    more = {"derivatives/x_eeg.edf": b"x", "sub-01/code/a.edf": b"x", "x_meg.ds/code/inner": b"x", "mycode/y.edf": b"y"}
    write(dataset, more)
    commit_all(dataset)
    assert set(at(dataset).tree()) == {*FILES, "x_meg.ds/code/inner", "mycode/y.edf"}


def test_links_are_followed_within_the_commit_and_nowhere_else(dataset: Path, tmp_path: Path) -> None:
    secret = write(tmp_path, {"secret": b"password"}) / "secret"
    meg = dataset / "sub-01/meg"
    meg.mkdir()
    targets = {
        "inside_eeg.edf": "../eeg/sub-01_task-x_eeg.edf",
        "twice_eeg.edf": "inside_eeg.edf",
        "nothing_eeg.edf": "gone.edf",
        "loop_eeg.edf": "loop_eeg.edf",
        "outside.tsv": "../../../secret",
        "absolute.tsv": str(secret),
        "folder": "../eeg",
        "top": "../..",
    }
    for name, target in targets.items():
        (meg / name).symlink_to(target)
    commit_all(dataset)
    source = at(dataset)
    tree = {path.removeprefix("sub-01/meg/"): entry for path, entry in source.tree().items()}
    assert tree["inside_eeg.edf"] == tree["twice_eeg.edf"] == tree[EDF]
    assert [tree[name].absent for name in ("nothing_eeg.edf", "loop_eeg.edf")] == [Absence.DANGLING] * 2
    assert [tree[name].absent for name in ("outside.tsv", "absolute.tsv")] == [Absence.OUTSIDE] * 2
    assert [problem.path for problem in source.left_out()] == ["sub-01/meg/folder", "sub-01/meg/top"]
    with pytest.raises(FileNotFoundError, match="leads out"):
        source.read("sub-01/meg/outside.tsv")
    outside = {"sub-01/meg/outside.tsv": tree["outside.tsv"].content_id}
    with pytest.raises(RecordingFailed) as failed:
        source.fetch(outside, tmp_path / "scratch")
    assert failed.value.failure is FailureCode.FILE_READ_ERROR


def test_names_that_lead_out_are_left_out(dataset: Path, tmp_path: Path) -> None:
    blob = git(dataset, "rev-parse", f"HEAD:{TSV}")
    evil = git(dataset, "mktree", "-z", stdin=f"100644 blob {blob}\tescaped_eeg.edf\0".encode())
    names = [b"..", b".", b".git", b".GIT"]
    commit = raw_tree(
        dataset, [("040000", "tree", evil, name) for name in names] + [("100644", "blob", blob, b"a_eeg.edf")]
    )
    source = at(dataset, commit)
    assert set(source.tree()) == {"a_eeg.edf"}
    assert len(source.left_out()) == 4
    for path in ("../escaped_eeg.edf", "/etc/passwd", "a/../../x", "", "a\\b"):
        for act in (
            lambda path=path: source.read(path),
            lambda path=path: source.fetch({path: f"git:{blob}"}, tmp_path),
        ):
            with pytest.raises(Refused):
                act()


@pytest.mark.parametrize(
    "content_id", ["git:../../x", "git:HEAD", f"git:{'0' * 39}", "annex:../../../../etc/passwd", "annex:"]
)
def test_an_id_that_is_none_is_neither_asked_for_nor_joined(dataset: Path, tmp_path: Path, content_id: str) -> None:
    with pytest.raises((ValueError, RecordingFailed)):
        at(dataset).fetch({"x": content_id}, tmp_path / "scratch")
    assert not (tmp_path / "scratch" / "x").exists() or (tmp_path / "scratch" / "x").stat().st_size == 0


def test_a_submodule_is_told_and_not_read(dataset: Path, tmp_path: Path) -> None:
    repository(tmp_path / "inner", FILES)
    git(dataset, "submodule", "--quiet", "add", str(tmp_path / "inner"), "inner")
    commit_all(dataset)
    assert [problem.path for problem in at(dataset).left_out()] == ["inner"]


def test_fetching_writes_blobs_under_their_own_names(dataset: Path, tmp_path: Path) -> None:
    source = at(dataset)
    inputs = {path: source.tree()[path].content_id for path in (EDF, TSV)}
    for _ in range(2):
        source.fetch(inputs, tmp_path / "scratch")
    assert {path: (tmp_path / "scratch" / path).read_bytes() for path in inputs} == {EDF: FILES[EDF], TSV: FILES[TSV]}
    assert source.copied_bytes(inputs) == 3000 + 7
    with pytest.raises(SourceChanged):
        source.fetch({EDF: "stat:1-2-3"}, tmp_path / "scratch")


def test_a_worker_needs_no_tree_to_fetch(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = at(dataset, "main")
    inputs = {path: planned.tree()[path].content_id for path in (EDF, TSV)}
    write(dataset, {EDF: b"other"})
    commit_all(dataset)
    git(dataset, "branch", "-q", "-f", "side")
    programs, notes = counting_git(tmp_path)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    worker = open_source(planned.address)
    worker.fetch(inputs, tmp_path / "scratch")
    assert (tmp_path / "scratch" / EDF).read_bytes() == FILES[EDF]
    assert worker.unchanged(inputs)
    assert "ls-tree" not in notes.read_text()


def test_two_thousand_files_take_as_many_processes_as_two(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = tmp_path / "many"
    pointer = f"/annex/objects/{KEY}\n".encode()
    files = {f"sub-{n:04d}/eeg/sub-{n:04d}_task-x_channels.tsv": f"name\n{n}\n".encode() for n in range(1000)}
    files |= {f"sub-{n:04d}/eeg/sub-{n:04d}_task-x_eeg.edf": pointer for n in range(1000)}
    repository(many, files)
    programs, notes = counting_git(tmp_path)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    def started(folder: Path) -> int:
        notes.write_text("")
        source = at(folder)
        tree = source.tree()
        inputs = {path: entry.content_id for path, entry in tree.items() if entry.absent is None}
        source.fetch(inputs, tmp_path / f"scratch-{folder.name}")
        for path in inputs:
            source.read(path)
        return len(notes.read_text().splitlines())

    few = started(dataset)
    assert started(many) == few
    assert 0 < few <= 6


def test_one_process_serves_many_threads_and_is_started_again_when_it_dies(dataset: Path, tmp_path: Path) -> None:
    source = at(dataset)
    inputs = {path: source.tree()[path].content_id for path in (EDF, TSV)}
    troubles: list[BaseException] = []

    def fetch(number: int) -> None:
        try:
            for turn in range(10):
                source.fetch(inputs, tmp_path / f"{number}-{turn}")
        except BaseException as error:
            troubles.append(error)
            raise

    threads = [threading.Thread(target=fetch, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not troubles
    assert all((place / EDF).read_bytes() == FILES[EDF] for place in tmp_path.glob("[0-9]-*"))
    running = source._objects._process
    assert running is not None
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert source.read(TSV) == FILES[TSV]
    source.close()


def test_an_object_that_the_repository_lacks_is_no_verdict(dataset: Path, tmp_path: Path) -> None:
    source = at(dataset)
    entry = source.tree()[EDF]
    blob = entry.content_id.removeprefix("git:")
    (dataset / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(NotNow) as pending:
        source.fetch({EDF: entry.content_id}, tmp_path / "scratch")
    assert not pending.value.counted
    assert blob in str(pending.value.detail)
    with pytest.raises(OSError, match="does not hold"):
        source.read(EDF)


def test_a_partial_clone_fetches_nothing_and_is_refused_with_a_reason(dataset: Path, tmp_path: Path) -> None:
    git(dataset, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--bare", "--filter=blob:none", dataset.as_uri(), "partial.git")
    with pytest.raises(Refused, match="partial clone"):
        at(tmp_path / "partial.git").tree()


def test_nothing_that_a_repository_brings_along_runs(dataset: Path, tmp_path: Path) -> None:
    program, mark = planting(tmp_path, "planted")
    for name in ("core.fsmonitor", "core.sshCommand", "core.alternateRefsCommand", "core.pager", "core.editor"):
        git(dataset, "config", name, str(program))
    for what in ("clean", "smudge", "process"):
        git(dataset, "config", f"filter.evil.{what}", str(program))
    git(dataset, "config", "filter.evil.required", "true")
    git(dataset, "config", "diff.evil.textconv", str(program))
    git(dataset, "config", "core.hooksPath", str(tmp_path / "hooks"))
    write(tmp_path, {"hooks/post-index-change": program.read_bytes()})
    (tmp_path / "hooks/post-index-change").chmod(0o755)
    write(dataset, {".git/info/attributes": b"* filter=evil diff=evil\n"})
    mark.unlink(missing_ok=True)
    os.utime(dataset / TSV, ns=(1, 1))
    source = at(dataset)
    assert source.read(TSV) == FILES[TSV]
    source.fetch({EDF: source.tree()[EDF].content_id}, tmp_path / "scratch")
    folder = open_source(str(dataset))
    assert folder.commit(discover_source(folder).matters()) == git(dataset, "rev-parse", "HEAD")
    assert not mark.exists()
    # the plant itself works: git as everybody runs it does run it
    subprocess.run(["git", "status"], cwd=dataset, check=False, capture_output=True)
    assert mark.exists()


def test_replaced_objects_are_read_as_they_were_committed(dataset: Path) -> None:
    blob = git(dataset, "rev-parse", f"HEAD:{TSV}")
    other = git(dataset, "hash-object", "-w", "--stdin", stdin=b"name\nEVIL\n")
    git(dataset, "replace", blob, other)
    assert at(dataset).read(TSV) == FILES[TSV]


def test_a_callers_git_variables_do_not_lead_elsewhere(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(tmp_path / "other", {"x": b"x"})
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "other/.git/objects"))
    assert set(at(dataset).tree()) == set(FILES)


@pytest.mark.parametrize("commit", ["nothing", "--all", "", f"HEAD:{TSV}", "0" * 40, "HEAD\nHEAD"])
def test_what_is_no_commit_is_refused_by_name(dataset: Path, commit: str) -> None:
    with pytest.raises(Refused, match="--commit"):
        at(dataset, commit)


def test_a_folder_that_is_no_repository_has_no_commit(dataset: Path, tmp_path: Path) -> None:
    for place in (write(tmp_path / "plain", FILES), dataset / "sub-01"):
        with pytest.raises(Refused, match="toplevel of a git repository"):
            at(place)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_a_repository_of_another_user_is_refused_as_git_refuses_it(dataset: Path) -> None:
    os.chown(dataset, 1234, 1234)
    os.chown(dataset / ".git", 1234, 1234)
    with pytest.raises(Refused, match="dubious ownership"):
        at(dataset)


def test_pointers_name_their_keys_and_hostile_ones_none(dataset: Path) -> None:
    locked = {
        "l_eeg.edf": f".git/annex/objects/aa/bb/{KEY}/{KEY}",
        "up_eeg.edf": "../../etc/annex/objects/passwd/passwd",
        "dots_eeg.edf": ".git/annex/objects/x/..--../..--..",
    }
    for name, target in locked.items():
        (dataset / name).symlink_to(target)
    write(
        dataset,
        {
            "u_eeg.edf": f"/annex/objects/{KEY}\n".encode(),
            "u_channels.tsv": f"/annex/objects/{KEY}\n".encode(),
            "long_eeg.edf": b"/annex/objects/MD5E-s1--" + b"a" * 400 + b"\n",
            "chunk_eeg.edf": b"/annex/objects/MD5E-s9-S4-C1--0a\n",
            "path_eeg.edf": b"/annex/objects/MD5E-s1--../../x\n",
        },
    )
    commit_all(dataset)
    tree = at(dataset).tree()
    for name in ("l_eeg.edf", "u_eeg.edf", "u_channels.tsv"):
        assert (tree[name].content_id, tree[name].size_bytes) == (f"annex:{KEY}", 4096)
        assert tree[name].absent is Absence.NOT_FETCHED
    assert [tree[name].content_id.partition(":")[0] for name in ("long_eeg.edf", "chunk_eeg.edf", "path_eeg.edf")] == [
        "git"
    ] * 3
    assert not tree["up_eeg.edf"].content_id.startswith("annex:")


def test_one_content_has_its_own_identity_in_each_kind_of_source(dataset: Path) -> None:
    (dataset / "a_eeg.edf").symlink_to(f".git/annex/objects/aa/bb/{KEY}/{KEY}")
    commit_all(dataset)
    lying, committed = open_source(str(dataset)).tree(), at(dataset).tree()
    assert lying[TSV].content_id != committed[TSV].content_id
    assert lying["a_eeg.edf"].content_id == committed["a_eeg.edf"].content_id
    assert source_fingerprint({TSV: lying[TSV].content_id}) != source_fingerprint({TSV: committed[TSV].content_id})
