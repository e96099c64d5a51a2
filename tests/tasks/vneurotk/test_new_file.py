from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from contract.errors import NotNow, Refused
from tasks.vneurotk.new_file import FileIdentity, writing
from tasks.vneurotk.typed_scalars import TypedScalars


def anything(_file: Any) -> None:
    return None


def put(path: Path, value: int) -> None:
    with writing(path, anything) as file:
        file["value"] = value


def value_of(path: Path) -> int:
    with h5py.File(path) as file:
        return int(file["value"][()])


def test_a_new_file_appears_when_the_block_ends_and_nothing_is_left_beside(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with writing(path, anything) as file:
        file["value"] = 1
        assert not path.exists()
    assert value_of(path) == 1
    assert list(tmp_path.iterdir()) == [path]


class Stopped(BaseException):
    """As a KeyboardInterrupt: no Exception."""


def half(path: Path, error: type[BaseException]) -> None:
    with writing(path, anything) as file:
        file["value"] = 2
        raise error


@pytest.mark.parametrize("error", [RuntimeError, Stopped, OSError])
def test_whatever_goes_wrong_leaves_the_old_file_whole(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "a.h5"
    put(path, 1)
    before = path.read_bytes()
    with pytest.raises(error):
        half(path, error)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_not_what_it_should_be_does_not_replace_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    put(path, 1)

    def want(file: Any) -> None:
        assert file.mode == "r"
        if int(file["value"][()]) != 1:
            raise ValueError("the value is another")

    with (
        pytest.raises(OSError, match=r"what was written for a\.h5 .* the value is another"),
        writing(path, want) as file,
    ):
        file["value"] = 2
    with pytest.raises(OSError, match=r"a\.h5"), writing(path, want):
        pass  # nothing written, so the validation does not find its value
    assert value_of(path) == 1
    assert list(tmp_path.iterdir()) == [path]


def test_an_identifier_that_cannot_be_kept_fails_before_the_target_is_touched(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    put(path, 1)
    before = path.stat()
    with pytest.raises(Refused, match="finite"), writing(path, anything) as file:
        TypedScalars.encode([1, float("inf")]).write(file, "ids")
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o444, 0o664])
def test_a_replaced_file_keeps_its_permission_bits(tmp_path: Path, bits: int) -> None:
    path = tmp_path / "a.h5"
    put(path, 1)
    path.chmod(bits)
    with writing(path, anything) as file:
        file["value"] = 2
        (beside,) = (one for one in tmp_path.iterdir() if one != path)
        assert stat.S_IMODE(beside.stat().st_mode) == 0o600, "nobody sees the new one before it has its bits"
    assert stat.S_IMODE(path.stat().st_mode) == bits
    assert value_of(path) == 2


def test_a_new_file_has_the_bits_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        put(tmp_path / "a.h5", 1)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.h5").stat().st_mode) == 0o640


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    put(tmp_path / "real" / "a.h5", 1)
    link = tmp_path / "link.h5"
    link.symlink_to(Path("real") / "a.h5")
    put(link, 2)
    assert link.is_symlink()
    assert value_of(tmp_path / "real" / "a.h5") == 2


def test_a_place_that_cannot_be_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is no file"), writing(tmp_path, anything):
        pass
    with pytest.raises(Refused, match="make it"), writing(tmp_path / "none" / "a.h5", anything):
        pass


HALF = """
import sys, time
from pathlib import Path
import numpy as np
from tasks.vneurotk.new_file import writing
with writing(Path(sys.argv[1]), lambda file: None) as file:
    file["value"] = 2
    file["neuro"] = np.zeros((100_000, 8))
    file.flush()
    print("half", flush=True)
    time.sleep(600)
"""


def test_a_kill_while_it_is_written_leaves_the_old_file_and_the_next_one_tidies_up(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    put(path, 1)
    before = path.read_bytes()
    command = [sys.executable, "-c", HALF, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half\n"
        put(tmp_path / "b.h5", 3)
        put(path, 4)
        assert len(list(tmp_path.iterdir())) == 3, "what a living process writes is left alone"
        path.write_bytes(before)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert path.read_bytes() == before
    assert value_of(path) == 1
    put(tmp_path / "b.h5", 5)
    assert len(list(tmp_path.iterdir())) == 3, "what was left belongs to the other file"
    put(path, 6)
    assert {one.name for one in tmp_path.iterdir()} == {"a.h5", "b.h5"}


def test_whoever_reads_is_told_that_the_file_was_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    put(path, 1)
    identity = FileIdentity.of(path)
    with h5py.File(path) as file:
        identity.require()
        put(path, 2)
        assert int(file["value"][()]) == 1
        with pytest.raises(NotNow) as raised:
            identity.require()
        assert raised.value.detail == "a.h5 was replaced while it was read; open it again"
        path.unlink()
        with pytest.raises(NotNow) as raised:
            identity.require()
        assert raised.value.detail is not None
        assert "removed" in raised.value.detail


def test_equal_contents_are_equal_bytes(tmp_path: Path) -> None:
    for name in ("a.h5", "b.h5"):
        with writing(tmp_path / name, anything) as file:
            file.create_dataset("neuro", data=np.arange(100.0), chunks=(10,), compression="gzip", shuffle=True)
            TypedScalars.encode(["x", 1]).write(file, "ids")
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()
