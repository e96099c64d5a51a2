"""Suggested commands are spelled so that the shell of the person finds this zarrmill."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from cli.called import program, spelled


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A zarrmill in a virtual environment below the current folder."""
    made = tmp_path / ".venv" / "bin" / "zarrmill"
    made.parent.mkdir(parents=True)
    made.write_text("#!/bin/sh\necho this one\n")
    made.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return made


def test_on_the_path_the_bare_name_is_enough(script: Path) -> None:
    assert spelled(script, found=str(script)) == "zarrmill"


def test_elsewhere_it_is_the_shorter_path(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert spelled(script, found=None) == ".venv/bin/zarrmill"
    far = tmp_path.joinpath(*(["deep"] * 40))
    far.mkdir(parents=True)
    monkeypatch.chdir(far)
    assert spelled(script, found=None) == str(script)


def test_another_zarrmill_on_the_path_is_not_suggested(script: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "zarrmill"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    assert spelled(script, found=str(other)) == ".venv/bin/zarrmill"


def test_what_is_suggested_runs_in_a_shell(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = tmp_path / "my tools"
    odd.mkdir()
    odd.joinpath("zarrmill").symlink_to(script)
    for where in (tmp_path, odd, script.parent):
        monkeypatch.chdir(where)
        words = spelled(odd / "zarrmill", found=None)
        done = subprocess.run(["/bin/sh", "-c", words], capture_output=True, text=True, check=True)
        assert done.stdout == "this one\n", words


def test_this_installation_has_a_name() -> None:
    assert shlex.split(program())[0].endswith("zarrmill")
