"""Operators' commands as a person types them: dry first, then done, then told by the history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import Zarrmill
from several_commands import run_all
from small_dataset import write_recording, write_root


@pytest.fixture
def zarrmill(home: Path, database_url: str, tmp_path: Path) -> Zarrmill:
    return Zarrmill(home, tmp_path, {"ZARRMILL_DATABASE_URL": database_url})


def test_a_dataset_is_registered_looked_after_and_withdrawn(zarrmill: Zarrmill, tmp_path: Path) -> None:
    source = tmp_path / "source"
    write_root(source)
    write_recording(source, "01")
    said = {
        ("register", str(source)): "xx000001",
        ("pause", "xx000001", "--by", "ana", "--why", "the disk is full"): "would be paused; do it with --execute",
        ("pause", "xx000001", "--execute", "--by", "ana", "--json"): '"changed": true, "executed": true',
        ("resume", "xx000001", "--execute"): "xx000001 is resumed",
        ("requeue", "--all", "--execute"): "nothing to requeue",
        ("dataset", "set", "xx000001", "--visibility", "private", "--active", "no"): "private and takes no part",
        ("engine", "preview"): "everything was made with the present converter",
        ("engine", "approve"): "would approve options, engine; do it with --execute",
        ("catalog",): "would list 0 datasets; publish it with --execute",
        ("withdraw", "xx000001"): "would be withdrawn",
        ("drain",): "every worker",
        ("drain", "--undo"): "1 no longer drained",
        ("history",): "drain undo  [ended 1]",
        ("history", "xx000001", "--json"): "history",
    }
    told = run_all(zarrmill, *said)
    for one, (command, expected) in zip(told, said.items(), strict=True):
        assert one.code == 0, (command, one)
        assert expected in one.stdout, (command, one)
    history = json.loads(told[-1].stdout)["history"]
    assert [(one["verb"], one["executed"]) for one in reversed(history)] == [
        ("register", True),
        ("pause", False),
        ("pause", True),
        ("resume", True),
        ("dataset set", True),
        ("withdraw", False),
    ]
    assert (history[-2]["acted_by"], history[-2]["why"]) == ("ana", "the disk is full")


MISUSE = {
    ("requeue",): "name what is to be requeued",
    ("requeue", "--code", "tired"): "--code knows not_continuous",
    ("pause", "xx000009"): "xx000009 at ",
    ("dataset", "set", "xx000001"): "--visibility public|private",
    ("engine", "approve", "--on", "mood"): "--on knows options",
    ("resume", "--by", " "): "--by must name somebody",
    ("register", "x", "--catalog", "http://a", "--upstream", "http://b"): "leave --dataset-id",
}


def test_misuse_is_named_with_the_way_out(zarrmill: Zarrmill) -> None:
    for one, (command, expected) in zip(run_all(zarrmill, *MISUSE), MISUSE.items(), strict=True):
        assert (one.code, one.stderr.count("\n")) == (2, 1), (command, one)
        assert expected in one.stderr, (command, one)


def test_where_there_is_no_state_none_is_made(home: Path, tmp_path: Path) -> None:
    (done,) = run_all(Zarrmill(home, tmp_path), ["history"])
    assert done.code == 2
    assert "there is no state here yet" in done.stderr
    assert not any(home.iterdir())


def test_the_database_is_upgraded_when_told_to(home: Path, tmp_path: Path, servers: Any) -> None:
    server = servers.get(18)
    server.create_database("upgraded")
    upgrade = ["db", "upgrade"]
    try:
        dry, still_dry, done, again, history = run_all(
            Zarrmill(home, tmp_path, {"ZARRMILL_DATABASE_URL": server.url("upgraded")}),
            upgrade,
            [*upgrade, "--json"],
            [*upgrade, "--execute"],
            upgrade,
            ["history"],
        )
    finally:
        server.drop_database("upgraded")
    assert "would be brought from nothing to " in dry.stdout
    assert json.loads(still_dry.stdout)["from"] is None, "nothing was done"
    assert "were brought from nothing to " in done.stdout
    assert "are those of this version" in again.stdout
    assert "db upgrade" in history.stdout
