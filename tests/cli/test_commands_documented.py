"""docs/commands.md names every command and every option, and nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

from typer.main import get_command

from cli.main import app

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
EVERYWHERE = {"--help", "-h"}


def sections() -> dict[str, str]:
    parts = re.split(r"^## `zarrmill ([a-z]+)`$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def options(command: object) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts if name.startswith("-")}  # type: ignore[attr-defined]  # a click command


def test_every_command_has_its_heading_in_the_order_of_help() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]  # an app with several commands is a group
    assert list(sections()) == list(commands)


def test_every_option_has_a_heading_and_no_heading_is_of_no_option() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]  # as above
    real = set().union(*(options(command) for command in commands.values())) - EVERYWHERE
    headings = " ".join(re.findall(r"^### (.*)$", PAGE, re.MULTILINE))
    assert set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", headings)) == real


def test_every_synopsis_names_the_options_of_its_command() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]  # as above
    for name, section in sections().items():
        synopsis = "".join(re.findall(r"^    .*\n", section, re.MULTILINE))
        missing = options(commands[name]) - EVERYWHERE - {"--verbose", "-v", "--yes"}
        assert {option for option in missing if option not in synopsis} == set(), name
