"""Scratch is removed on every path: by its attempt, by its worker, and by another worker when that one was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from uuid import UUID, uuid4

from fan_out_bench import wait_until

from tasks.convert.scratch import WorkerScratch, is_in_use, is_left_behind

ROOT = Path(__file__).resolve().parents[3]

ANOTHER = """
import sys, time
from pathlib import Path
from uuid import uuid4
from tasks.convert.scratch import WorkerScratch
scratch = WorkerScratch(Path(sys.argv[1]))
(scratch.make(uuid4()) / "source" / "signal.edf").write_bytes(b"x" * 1000)
Path(sys.argv[2]).write_text(str(scratch.folder))
time.sleep(600)
"""


def everybody(_attempt_id: UUID) -> bool:
    return True


def nobody(_attempt_id: UUID) -> bool:
    return False


def test_an_attempt_has_an_empty_folder_that_goes_with_it(tmp_path: Path) -> None:
    scratch = WorkerScratch(tmp_path)
    attempt_id = uuid4()
    folder = scratch.make(attempt_id)
    assert [path.name for path in folder.iterdir()] == ["source"]
    assert scratch.of(attempt_id) == folder
    (folder / "source" / "x").write_text("x")
    scratch.remove(attempt_id)
    assert not folder.exists()
    scratch.close()
    assert list(tmp_path.iterdir()) == []


def test_what_is_left_of_an_attempt_that_nobody_holds_is_removed_when_looked_after(tmp_path: Path) -> None:
    scratch = WorkerScratch(tmp_path)
    held, left = uuid4(), uuid4()
    for attempt_id in (held, left):
        (scratch.make(attempt_id) / "file").write_text("x")
    scratch.tend(lambda attempt_id: attempt_id == held)
    assert scratch.of(held).is_dir()
    assert not scratch.of(left).exists()
    scratch.close()


def test_a_folder_that_was_written_to_while_it_was_removed_is_removed_at_the_next_look(tmp_path: Path) -> None:
    scratch = WorkerScratch(tmp_path)
    attempt_id = uuid4()
    folder = scratch.make(attempt_id)
    scratch.remove(attempt_id)
    (folder / "store").mkdir(parents=True)  # by a child on its way out
    (folder / "store" / "zarr.json").write_text("{}")
    scratch.tend(nobody)
    assert not folder.exists()
    scratch.close()


def test_a_folder_that_forbids_writing_is_removed(tmp_path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from uuid import uuid4
from tasks.convert.scratch import WorkerScratch
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)  # root may write anywhere
scratch = WorkerScratch(Path(sys.argv[1]))
attempt_id = uuid4()
annex = scratch.make(attempt_id) / "source" / "annex"
annex.mkdir()
(annex / "key").write_text("x")
annex.chmod(0o500)
scratch.remove(attempt_id)
sys.exit(scratch.of(attempt_id).exists())
"""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # another user cannot look into tmp_path
        os.chmod(folder, 0o777)  # noqa: PTH101 - for the user that the program becomes
        assert subprocess.run([sys.executable, "-c", program, folder], cwd=ROOT, check=False).returncode == 0


def test_the_scratch_of_a_killed_worker_is_removed_by_another_and_that_of_a_live_one_never(tmp_path: Path) -> None:
    said = tmp_path / "said"
    root = tmp_path / "scratch"
    root.mkdir()
    mine = WorkerScratch(root)
    with subprocess.Popen([sys.executable, "-c", ANOTHER, str(root), str(said)], cwd=ROOT) as another:
        wait_until(lambda: said.exists() and said.read_text() != "", 60)
        theirs = Path(said.read_text())
        assert is_in_use(theirs)
        mine.tend(everybody)
        assert list(theirs.rglob("signal.edf"))
        another.send_signal(signal.SIGKILL)
    assert is_left_behind(theirs)
    mine.tend(everybody)
    assert not theirs.exists()
    assert is_in_use(mine.folder)
    mine.close()


def test_a_removal_that_did_not_get_to_its_end_is_taken_up_again(tmp_path: Path) -> None:
    scratch = WorkerScratch(tmp_path)
    half = tmp_path / f"worker-{uuid4()}"
    (half / "left").mkdir(parents=True)
    foreign = tmp_path / "dask"
    foreign.mkdir()
    scratch.tend(everybody)
    assert not half.exists()
    assert foreign.is_dir()
    scratch.close()


def test_a_full_disk_is_others_doing_when_an_attempt_took_no_more_than_it_was_given(tmp_path: Path) -> None:
    scratch = WorkerScratch(tmp_path)
    modest, greedy, later = uuid4(), uuid4(), uuid4()
    for attempt_id, size in ((modest, 1000), (greedy, 3_000_000), (later, 1000)):
        (scratch.make(attempt_id) / "file").write_bytes(b"x" * size)
    assert not scratch.was_filled_by_others(modest, 1_000_000, was_full=False), "there is room on this disk"
    assert not scratch.was_filled_by_others(greedy, 1_000_000, was_full=True)
    assert scratch.was_filled_by_others(modest, 1_000_000, was_full=True)
    assert scratch.was_filled_by_others(later, 1_000_000, was_full=False), "another has just met a full disk"
    assert not scratch.was_filled_by_others(greedy, 1_000_000, was_full=False)
    scratch.close()


def test_a_promise_that_the_disk_cannot_keep_is_no_fault_of_the_attempt(tmp_path: Path) -> None:
    scratch = WorkerScratch(tmp_path)
    attempt_id = uuid4()
    scratch.make(attempt_id)
    assert scratch.was_filled_by_others(attempt_id, 1 << 60, was_full=False)
    scratch.close()
