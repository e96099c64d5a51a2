"""docs/commands.md names every command and every option, and nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

from typer.main import get_command

from cli.main import app

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
EVERYWHERE = {"--help", "-h"}


def sections() -> dict[str, str]:
    parts = re.split(r"^## `zarrmill ([a-z-]+)`$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def options(command: object) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts if name.startswith("-")}  # type: ignore[attr-defined]  # a click command


def test_every_command_has_its_heading_in_the_order_of_help() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]  # an app with several commands is a group
    assert list(sections()) == list(commands)


def test_the_table_of_each_command_has_its_options_and_no_other() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]  # as above
    for name, section in sections().items():
        rows = re.findall(r"^\| (`-.*?) \| \S", section, re.MULTILINE)
        told = {word for row in rows for word in re.findall(r"`(--?[a-z-]+)", row)}
        assert told == options(commands[name]) - EVERYWHERE, name


def test_every_exit_code_has_a_row() -> None:
    table = PAGE.partition("## Exit codes")[2].partition("## `")[0]
    codes = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for code in row.split(",")}
    assert codes == {0, 1, 2, 3, 4, 5, 130, 143}
