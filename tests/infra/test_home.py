from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from contract.errors import Refused
from infra.home import Home, private_folder
from infra.locks import holding, is_held, take, try_take
from infra.postgres_place import folders_outside, socket_folder


def test_folders_are_made_private(tmp_path: Path) -> None:
    home = Home(tmp_path / "a" / "home")
    for folder in (home.postgres, home.prefect, home.run, home.logs, home.scratch, home.leases):
        assert folder.parent == home.path
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700


def test_a_home_that_others_could_read_is_closed(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o755)
    _ = Home(tmp_path / "home").run
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


def test_a_file_in_the_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(Refused, match="home"):
        _ = Home(tmp_path / "home").run


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 65534, 65534)
    with pytest.raises(Refused, match="belongs to user 65534"):
        private_folder(tmp_path / "theirs")


@pytest.mark.parametrize("name", ["h" * 90, 'comma,colon:quote"', "ünïcode"])
def test_a_home_that_no_socket_fits_below_gets_a_short_private_folder(tmp_path: Path, name: str) -> None:
    home = Home(tmp_path / name)
    folder = socket_folder(home)
    try:
        assert not folder.is_relative_to(home.path)
        assert len(os.fsencode(folder / ".s.PGSQL.5432")) <= 107
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert socket_folder(home) == folder
        assert folders_outside(home) == (folder,)
    finally:
        folder.rmdir()
    assert folders_outside(home) == ()


def test_a_short_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / ("h" * 90))
    folder = socket_folder(home)
    folder.rmdir()
    folder.symlink_to(tmp_path)
    try:
        with pytest.raises(Refused):
            socket_folder(home)
    finally:
        folder.unlink()


def test_shared_holders_keep_the_exclusive_one_out_and_death_frees_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holding(path, shared=True):
        assert not is_held(path)
        assert try_take(path) is None
        os.close(take(path, shared=True))
    program = "import sys, infra.locks, pathlib; infra.locks.take(pathlib.Path(sys.argv[1])); print(flush=True); sys.stdin.read()"
    holder = subprocess.Popen([sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdin is not None
    assert holder.stdout is not None
    with holder, holder.stdin, holder.stdout:
        holder.stdout.readline()
        assert is_held(path)
        holder.kill()
        holder.wait()
    assert not is_held(path)


def test_a_lock_whose_file_was_removed_while_it_was_waited_for_is_taken_anew(tmp_path: Path) -> None:
    path = tmp_path / "run" / "lock"
    first = take(path)
    taken: list[int] = []
    waiting = threading.Thread(target=lambda: taken.append(take(path)))
    waiting.start()
    time.sleep(0.2)
    shutil.rmtree(path.parent)
    os.close(first)
    waiting.join(90)
    assert is_held(path), "what the other holds is what everybody finds"
    os.close(taken[0])
    assert not is_held(path)
