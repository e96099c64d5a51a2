"""docs/commands.md names every command and every option, and nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

from typer.main import get_command

from cli.main import app

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
EVERYWHERE = {"--help", "-h"}


def sections() -> dict[str, str]:
    parts = re.split(r"^## `zarrmill ([a-z -]+)`$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def options(command: object) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts if name.startswith("-")}  # type: ignore[attr-defined]  # a click command


def leaves() -> dict[str, list[object]]:
    """What a heading stands for: a command, one of a group's commands, or a group as a whole."""
    found: dict[str, list[object]] = {}
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]  # an app with several commands is a group
        inner = getattr(command, "commands", {})
        found |= {f"{name} {each}": [one] for each, one in inner.items()}
        found[name] = list(inner.values()) or [command]
    return found


def test_every_command_has_its_heading_in_the_order_of_help() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]  # as above
    plain = [name for name, command in commands.items() if not hasattr(command, "commands")]
    assert [name for name in sections() if name in plain] == plain
    groups = [name for name in commands if name not in plain]
    assert [name for name in groups if not any(each.split()[0] == name for each in sections())] == []
    assert set(sections()) <= set(leaves())


def test_the_table_of_each_command_has_its_options_and_no_other() -> None:
    known = leaves()
    for name, section in sections().items():
        rows = re.findall(r"^\| (`-.*?) \| \S", section, re.MULTILINE)
        told = {word for row in rows for word in re.findall(r"`(--?[a-z-]+)", row)}
        assert told == set().union(*map(options, known[name])) - EVERYWHERE, name


def test_every_exit_code_has_a_row() -> None:
    table = PAGE.partition("## Exit codes")[2].partition("## `")[0]
    codes = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for code in row.split(",")}
    assert codes == {0, 1, 2, 3, 4, 5, 130, 141, 143}
