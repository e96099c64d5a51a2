"""Git repositories of datasets, made with the real git and, where it is installed, the real git-annex."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

_WHO = (
    "-c",
    "user.name=n",
    "-c",
    "user.email=e@example.org",
    "-c",
    "commit.gpgsign=false",
    "-c",
    "protocol.file.allow=always",
)


def git(folder: Path, *arguments: str, stdin: bytes | None = None) -> str:
    done = subprocess.run(["git", *_WHO, *arguments], cwd=folder, check=True, capture_output=True, input=stdin)
    return os.fsdecode(done.stdout).strip()


def commit_all(folder: Path) -> str:
    """Commit everything in the folder; the commit."""
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    return git(folder, "rev-parse", "HEAD")


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def repository(folder: Path, files: dict[str, bytes]) -> str:
    """A repository in ``folder`` with these files committed; the commit."""
    write(folder, files)
    git(folder, "init", "-q", "-b", "main")
    return commit_all(folder)


def annex_repository(folder: Path, *, backend: str = "SHA256E") -> Path:
    """An empty git-annex repository that takes every .edf and .fdt into its annex, and .tsv files only when told to."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "annex", "init", "-q", "here")
    git(folder, "config", "annex.backend", backend)
    git(folder, "config", "annex.largefiles", "include=*.edf or include=*.fdt or include=*.big.tsv")
    return folder


def key_of(folder: Path, path: str) -> str:
    """The key of an annexed file as git-annex tells it, written as it names files."""
    told = git(folder, "annex", "lookupkey", path)
    for meant, written in (("&", "&a"), ("%", "&s"), (":", "&c"), ("/", "%")):
        told = told.replace(meant, written)
    return told


def raw_tree(folder: Path, entries: list[tuple[str, str, str, bytes]]) -> str:
    """A commit of a tree made byte by byte, as a stranger may push one: (mode, kind, object, name)."""
    listed = b"".join(f"{mode} {kind} {name}\t".encode() + path + b"\0" for mode, kind, name, path in entries)
    tree = git(folder, "mktree", "-z", stdin=listed)
    return git(folder, "commit-tree", tree, "-m", "x")


def counting_git(folder: Path) -> tuple[Path, Path]:
    """A folder for the head of PATH whose git notes each start before it becomes the real one, and the file of notes."""
    real = shutil.which("git")
    assert real is not None
    notes = folder / "started"
    notes.write_text("")
    program = write(folder, {"bin/git": b""}) / "bin/git"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> "{notes}"\nexec "{real}" "$@"\n')
    program.chmod(0o755)
    return program.parent, notes


def planting(folder: Path, name: str) -> tuple[Path, Path]:
    """A program that leaves a mark when anything runs it, and the mark."""
    mark = folder / f"{name}-ran"
    program = folder / name
    program.write_text(f"#!{sys.executable}\nimport pathlib\npathlib.Path({str(mark)!r}).write_text('')\n")
    program.chmod(0o755)
    return program, mark
