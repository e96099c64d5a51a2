"""Clean names before it removes, and removes nothing that is not zarrmill's."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import Engine
from state_bench import VERSIONS, Bench

from cli.clean import clean_home
from contract.errors import Busy
from db import leases
from db.leases import Owner
from infra.locks import holding


def plant(path: Path, size: int = 10) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    return path


@pytest.fixture
def lived_in(home: Path) -> Path:
    """A home that was used, in a folder where somebody also keeps other things."""
    plant(home / "logs" / "postgres.log", 1000)
    plant(home / "leases" / "a.lock")
    plant(home / "scratch" / str(uuid4()) / "source" / "x.edf", 5000)
    plant(home / "scratch" / "notes.txt")
    plant(home / "scratch" / "dask" / "worker" / "x")
    plant(home / "thesis" / "chapter1.tex")
    return home


def test_without_execute_it_only_names(lived_in: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(lived_in.rglob("*"))
    assert clean_home(execute=False, scratch_only=False, as_json=False) == 0
    said = capsys.readouterr().out
    assert "4.9KiB  scratch: of attempts" in said
    assert f"{lived_in / 'logs'}  1000B" in said
    assert said.endswith("would be removed; do it with --execute\n")
    assert "thesis" not in said
    assert sorted(lived_in.rglob("*")) == before


def test_with_execute_what_was_named_is_gone_and_the_rest_stays(
    lived_in: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert clean_home(execute=True, scratch_only=False, as_json=True) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["executed"] is True
    assert {Path(row["path"]).name for row in said["remove"]} >= {"logs", "leases"}
    assert not (lived_in / "leases").exists()
    assert not (lived_in / "scratch" / "dask").exists()
    assert not any(path.suffix == ".edf" for path in lived_in.rglob("*"))
    assert (lived_in / "thesis" / "chapter1.tex").exists()
    assert (lived_in / "scratch" / "notes.txt").exists()


def test_scratch_alone_can_be_removed_from_a_folder_shared_with_others(
    lived_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    ours, theirs = plant(shared / str(uuid4()) / "x.edf"), plant(shared / "their-work" / "y.edf")
    plant(shared / "dask" / "theirs")
    monkeypatch.setenv("ZARRMILL_SCRATCH", str(shared))
    clean_home(execute=True, scratch_only=True, as_json=False)
    assert (ours.parent.exists(), theirs.exists(), (shared / "dask").exists()) == (False, True, True)
    assert (lived_in / "logs" / "postgres.log").exists()


def test_while_a_run_holds_a_dataset_nothing_is_removed_and_nothing_said_to_be(
    lived_in: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with holding(lived_in / "leases" / "a.lock"), pytest.raises(Busy, match=r"a\.lock"):
        clean_home(execute=True, scratch_only=False, as_json=False)
    assert "remov" not in capsys.readouterr().out
    assert any(lived_in.rglob("x.edf"))


def test_the_refusal_names_the_dataset_that_is_held(
    lived_in: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(engine)
    workers_lock = lived_in / "leases" / "b.workers"
    owner = Owner(host="here", pid=77, lock_path=str(workers_lock.with_suffix(".lock")))
    with bench.begin() as c:
        leases.acquire(
            c, dataset=bench.dataset, owner=owner, mode="auto", versions=VERSIONS, owner_is_gone=lambda _: False
        )
    monkeypatch.setenv("ZARRMILL_DATABASE_URL", engine.url.render_as_string(hide_password=False))
    with holding(workers_lock), pytest.raises(Busy) as caught:
        clean_home(execute=True, scratch_only=False, as_json=False)
    assert caught.value.sentence.startswith("a run holds xx000001 at /served, process 77; ")


def test_a_fresh_home_has_nothing_to_remove(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert clean_home(execute=True, scratch_only=False, as_json=False) == 0
    assert capsys.readouterr().out == "nothing to remove\n"
    assert not any(home.iterdir())


def test_while_the_service_is_up_down_is_named_and_nothing_removed(lived_in: Path) -> None:
    with holding(lived_in / "run" / "keeper.lock"), pytest.raises(Busy, match="zarrmill down"):
        clean_home(execute=True, scratch_only=False, as_json=True)
    assert (lived_in / "leases").exists()
