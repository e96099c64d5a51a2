"""The command as a person or a script meets it: help, misuse, exit codes, what it imports."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from cli.boundary import boundary
from cli.main import app
from cli.stand import parts_lines
from cli.worker import run_worker
from contract.codes import PendingReason
from contract.errors import Busy, LostLease, NothingPublished, NotNow, Refused
from infra.standing_health import PartHealth

COMMANDS = (
    "plan",
    "convert",
    "adopt",
    "republish",
    "reconcile-objects",
    "verify",
    "export",
    "register",
    "requeue",
    "pause",
    "resume",
    "catalog",
    "history",
    "withdraw",
    "status",
    "why",
    "memory",
    "report",
    "up",
    "down",
    "logs",
    "trigger",
    "runner",
    "serve",
    "mcp",
    "demo",
    "drain",
    "clean",
    "worker",
    "init",
    "doctor",
    "scheduler",
    "version",
)
GROUPS = {"dataset": ("set",), "engine": ("preview", "approve"), "db": ("upgrade",)}
HEAVY = (
    "alembic", "biosigio", "dask", "distributed", "fastapi", "h5py", "matplotlib", "mne", "numpy", "pandas", "prefect", "psycopg", "pyarrow",
    "pydantic", "pyedflib", "rich", "scipy", "sqlalchemy", "uvicorn", "zarr",
)  # fmt: skip


def zarrmill(
    *arguments: str, home: Path, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = (
        os.environ | {"ZARRMILL_HOME": str(home), "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"} | variables
    )
    command = [sys.executable, "-c", "from cli.main import main; main()", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, cwd=cwd, env=environment)


def test_importing_the_command_line_imports_nothing_heavy() -> None:
    code = "import sys, cli.main; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.partition(".")[0] for name in done.stdout.split()} & set(HEAVY) == set()


def test_help_lists_every_command_whole_and_leaves_nothing_behind(home: Path) -> None:
    done = zarrmill("--help", home=home)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.partition("Commands:")[2].splitlines()
    assert [line.split()[0] for line in lines if line.strip()] == [*COMMANDS, *GROUPS]
    assert not any("..." in line for line in lines), "no sentence is cut off"
    assert not any(home.iterdir())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_each_option(command: str) -> None:
    done = CliRunner().invoke(app, [command, "-h"])
    assert done.exit_code == 0
    (found,) = [
        each for each in app.registered_commands if each.callback and (each.name or each.callback.__name__) == command
    ]
    assert found.callback is not None
    assert (found.callback.__doc__ or "").splitlines()[0] in done.output
    options = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", done.output, re.MULTILINE)
    assert len(options) >= len(inspect.signature(found.callback).parameters) - 2
    if command == "convert":
        wanted = {
            "--to",
            "--dataset-id",
            "--mode",
            "--workers",
            "--memory",
            "--rebuild-on",
            "--hash",
            "--allow-dirty",
            "--strict",
            "--json",
        }
        assert wanted <= set(options)


def test_every_group_lists_its_commands_whole() -> None:
    found = {group.name: group.typer_instance for group in app.registered_groups if group.typer_instance}
    assert {name: tuple(each.name for each in group.registered_commands) for name, group in found.items()} == GROUPS
    for name in GROUPS:
        done = CliRunner().invoke(app, [name, "-h"], terminal_width=200)
        assert done.exit_code == 0
        assert "..." not in done.output.partition("Commands:")[2]


def test_every_command_of_the_app_is_listed_here() -> None:
    names = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]
    assert sorted(names) == sorted(COMMANDS)


def test_version_is_said_in_both_ways(home: Path) -> None:
    flag, command = zarrmill("--version", home=home), CliRunner().invoke(app, ["version"])
    assert re.fullmatch(r"zarrmill \d+\.\d+\.\d+\n", flag.stdout)
    assert command.stdout == flag.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["convert"], "Missing argument 'SOURCE'"),
        (["convert", "x", "--mode", "sometimes"], "sometimes"),
        (["convert", "x", "--workers", "0"], "'--workers'"),
        (["convert", "x", "--no-such-option"], "--no-such-option"),
        (["no-such-command"], "no-such-command"),
    ],
)
def test_a_wrong_command_line_exits_2_and_says_what_is_wrong(arguments: list[str], said: str, home: Path) -> None:
    done = zarrmill(*arguments, home=home)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["convert", "x", "--memory", "lots"], "zarrmill: --memory: 'lots' is not a size"),
        (
            ["convert", "x", "--priority", "0"],
            "zarrmill: --priority 0 is none: a whole number from 1 to 100",
        ),
        (
            ["convert", "x", "--priority", "101"],
            "zarrmill: --priority 101 is none: a whole number from 1 to 100",
        ),
        (
            ["convert", "x", "--rebuild-on", "engine,weather"],
            "zarrmill: --rebuild-on knows options, engine, biosigio and none, not 'weather'",
        ),
        (["plan", "x", "--dataset-id", "DS1"], "zarrmill: --dataset-id 'DS1' is none"),
    ],
)
def test_an_option_that_cannot_be_read_exits_2_with_one_line(arguments: list[str], said: str, home: Path) -> None:
    done = zarrmill(*arguments, home=home)
    assert done.returncode == 2
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1
    assert not any(home.iterdir())


def test_with_json_the_error_also_stands_on_stdout(home: Path) -> None:
    done = zarrmill("convert", "x", "--memory", "lots", "--json", home=home)
    value = json.loads(done.stdout)
    assert (value["event"], value["code"], value["exit_code"]) == ("error", "refused", 2)
    assert done.returncode == 2


def test_a_wrong_setting_is_named_and_its_value_is_not_shown(home: Path) -> None:
    done = zarrmill("status", home=home, ZARRMILL_DATABASE_URL="mysql://me:hunter2@db/x")
    assert done.returncode == 2
    assert "ZARRMILL_DATABASE_URL" in done.stderr
    assert "hunter2" not in done.stderr + done.stdout


def test_a_home_that_is_a_file_is_refused_by_the_name_of_its_variable(home: Path, tmp_path: Path) -> None:
    a_file = tmp_path / "file"
    a_file.touch()
    for place in (a_file, a_file / "below"):
        done = zarrmill("status", home=place)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"zarrmill: ZARRMILL_HOME: {a_file} is no folder; ")
    assert a_file.read_bytes() == b""


def test_a_home_where_nothing_can_be_kept_is_refused() -> None:
    done = zarrmill("status", home=Path("/proc/zarrmill"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("zarrmill: ZARRMILL_HOME: /proc holds no files; ")


def test_a_home_that_is_not_there_yet_is_not_made_by_a_question(tmp_path: Path) -> None:
    done = zarrmill("status", home=tmp_path / "a" / "b", cwd=tmp_path)
    assert done.returncode == 0
    assert not any(tmp_path.iterdir())


def test_a_target_that_serves_what_is_not_known_here_is_to_be_adopted(home: Path, tmp_path: Path) -> None:
    assert "convert SOURCE makes the first" in zarrmill("status", "--to", str(tmp_path), home=home).stdout
    (tmp_path / "zarr-catalog.json").write_text("{}")
    assert "adopt DATASET SOURCE takes one over" in zarrmill("status", "--to", str(tmp_path), home=home).stdout


@pytest.mark.parametrize("arguments", [["status", "DS1"], ["why", "xx1", "a.edf"]])
def test_an_id_that_can_be_none_is_told_so(arguments: list[str], home: Path) -> None:
    done = zarrmill(*arguments, home=home)
    assert done.returncode == 2
    assert done.stderr.startswith(f"zarrmill: {arguments[1]!r} is no dataset's id: two small letters and six digits")


def test_a_misspelt_variable_is_named(home: Path, tmp_path: Path) -> None:
    done = zarrmill("clean", home=home, ZARRMILL_SCRACH="/tmp")
    assert "ZARRMILL_SCRACH is no setting of ours" in done.stderr
    assert done.returncode == 0


def test_a_home_without_logs_says_so(home: Path) -> None:
    done = zarrmill("logs", home=home)
    assert (done.returncode, done.stdout.startswith("there is no log here yet; ")) == (0, True)


@pytest.mark.parametrize(("restarts", "told"), [(0, "it answers"), (1, "started again 1 time"), (2, "again 2 times")])
def test_how_often_a_part_was_started_again_is_told_in_words(restarts: int, told: str) -> None:
    [line] = parts_lines([PartHealth(name="api", health="healthy", told="it answers", restarts=restarts)])
    assert line.endswith(told)


def test_status_and_why_of_a_fresh_home_start_no_server(home: Path, tmp_path: Path) -> None:
    there = ["--to", str(tmp_path / "served")]
    as_json = CliRunner().invoke(app, ["status", *there, "--json"])
    assert json.loads(as_json.stdout) == {
        "target": str(tmp_path / "served"),
        "datasets": [],
        "reported": [],
        "drains": [],
        "everything_paused": False,
    }
    done = zarrmill("why", "xx000001", "a.edf", *there, home=home)
    assert done.returncode == 2
    assert done.stderr.startswith("zarrmill: xx000001 is not known at ")
    assert not (home / "postgres").exists()
    assert not (tmp_path / "served").exists()


def test_serve_refuses_a_folder_that_is_not_there_and_a_port_in_use(home: Path, tmp_path: Path) -> None:
    import socket

    missing = CliRunner().invoke(app, ["serve", "--to", str(tmp_path / "none")])
    assert missing.exit_code == 2
    assert "is no folder" in missing.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = CliRunner().invoke(app, ["serve", "--to", str(tmp_path), "--port", str(taken.getsockname()[1])])
    assert done.exit_code == 2
    assert "cannot be used: Address already in use; name another one with --port" in done.stderr


def test_a_worker_needs_a_scheduler_and_a_database_that_it_can_reach(home: Path) -> None:
    alone = CliRunner().invoke(app, ["worker"])
    assert (alone.exit_code, "--scheduler" in alone.stderr) == (2, True)
    with pytest.raises(Refused, match="ZARRMILL_DATABASE_URL"):
        run_worker("tcp://10.0.0.5:8786", name=None, memory=None, scratch=None, slots=None, verbose=False)


def test_the_demo_refuses_a_foreign_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    done = CliRunner().invoke(app, ["demo", str(tmp_path)])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"zarrmill: {tmp_path} holds something else")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def ends(error: BaseException, *, verbose: bool = False) -> int:
    with pytest.raises(typer.Exit) as caught, boundary(verbose=verbose):
        raise error
    return int(caught.value.exit_code)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Refused("no"), 2),
        (Busy("run 3 holds it"), 4),
        (NothingPublished("nothing"), 1),
        (NotNow(PendingReason.MEMORY_BUDGET), 1),
        (LostLease("gone"), 1),
        (ValueError("surprise"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_error_has_its_exit_code(error: BaseException, code: int) -> None:
    assert ends(error) == code


def test_an_error_is_one_line_and_a_traceback_only_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    ends(Busy("another run holds it", detail="run 7, process 12"))
    assert capsys.readouterr().err == "zarrmill: another run holds it (run 7, process 12)\n"
    ends(ValueError("first\nsecond"))
    quiet = capsys.readouterr().err
    assert quiet == "zarrmill: unexpected ValueError: first (--verbose shows where it came from)\n"
    ends(ValueError("first\nsecond"), verbose=True)
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_who_stops_early_sees_no_complaint(home: Path) -> None:
    code = "from cli.boundary import boundary\nimport sys\nwith boundary():\n    print('x' * 200000)"
    environment = os.environ | {"ZARRMILL_HOME": str(home)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert b"BrokenPipe" not in process.stderr.read()


@pytest.mark.parametrize(
    ("shown", "stream"), [("JsonProgress(sys.stdout)", "stdout"), ("PlainProgress(sys.stderr)", "stderr")]
)
def test_a_run_whose_reader_goes_away_goes_on_to_its_own_end(home: Path, shown: str, stream: str) -> None:
    code = f"""
import sys
from pathlib import Path
from cli.boundary import boundary, say
from cli.progress import JsonProgress, PlainProgress
from flows.request import Note
with boundary():
    with {shown} as progress:
        for number in range(20_000):
            progress.show(Note(sentence="x" * 100))
    say(sys.{stream}, "the summary")
    Path(sys.argv[1]).write_text("it went on")
    raise SystemExit(3)
"""
    done = home / "done"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(done)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        read, other = (getattr(process, name) for name in (stream, "stderr" if stream == "stdout" else "stdout"))
        assert read.readline()
        read.close()
        assert other.read() == ""
        assert process.wait(timeout=90) == 3
    assert done.read_text() == "it went on"
