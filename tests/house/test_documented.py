from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import typer
from product import FLOORS, ROOT
from pydantic import BaseModel

from cli.main import app
from contract import callback as callback_contract
from contract import catalog, closed, events, index, manifest, store
from contract.codes import FAILURE_SENTENCES, PENDING_SENTENCES, WHY_DUE_SENTENCES, FailureCode, PendingReason, WhyDue
from contract.schemas import DOCUMENTS, PAGE_FOLDER, SCHEMA_FOLDER, pages, schema_text
from infra.settings import Settings

DOCS = ROOT / "docs"
ROW_OR_HEADING = re.compile(r"^(?:#+ |\|)")


def sections(page: Path) -> dict[str, list[str]]:
    """Headings of a page with the rows and headings below each."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            current = found.setdefault(line.lstrip("# "), [])
        if ROW_OR_HEADING.match(line):
            current.append(line)
    return found


def explained(page: Path) -> set[str]:
    """Every word in code marks that stands in a heading or in the first cell of a table row."""
    words: set[str] = set()
    for lines in sections(page).values():
        for line in lines:
            cell = line.split("|")[1] if line.startswith("|") else line
            words.update(re.findall(r"`([^`]+)`", cell))
    return words


@pytest.mark.parametrize("name", list(DOCUMENTS))
def test_what_is_checked_in_is_what_the_models_say(name: str) -> None:
    assert (SCHEMA_FOLDER / f"{name}.json").read_text(encoding="utf-8") == schema_text(name)


def test_no_schema_is_checked_in_without_its_model() -> None:
    assert {path.stem for path in SCHEMA_FOLDER.iterdir()} == set(DOCUMENTS)


@pytest.mark.parametrize("name", ["contract.md", "codes.md"])
def test_a_generated_page_is_what_the_models_say(name: str) -> None:
    assert (PAGE_FOLDER / name).read_text(encoding="utf-8") == pages()[name]


def published_models() -> Iterator[type[BaseModel]]:
    for module in (index, manifest, catalog, callback_contract, store):
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, type) and issubclass(value, BaseModel):
                yield value


@pytest.mark.parametrize("model", list(published_models()), ids=lambda model: model.__name__)
def test_every_field_of_every_document_is_explained(model: type[BaseModel]) -> None:
    words = explained(DOCS / "contract.md")
    assert {name for name in model.model_fields if name not in words} == set()
    assert all(field.description for field in model.model_fields.values())
    assert issubclass(model, closed.Closed) == (model.model_config.get("extra") == "forbid")


def test_every_fixed_column_of_the_events_file_is_explained() -> None:
    assert set(events.FIXED_COLUMNS) <= explained(DOCS / "contract.md")


@pytest.mark.parametrize(
    ("words", "sentences"),
    [(FailureCode, FAILURE_SENTENCES), (PendingReason, PENDING_SENTENCES), (WhyDue, WHY_DUE_SENTENCES)],
    ids=["failure codes", "pending reasons", "why due"],
)
def test_every_word_of_state_has_a_row_with_its_sentence(words: type[StrEnum], sentences: dict[str, str]) -> None:
    rows = [line for lines in sections(DOCS / "codes.md").values() for line in lines]
    missing = [word for word in words if not any(row.startswith(f"| `{word}` | {sentences[word]}") for row in rows)]
    assert missing == []


def environment_names() -> set[str]:
    prefix = str(Settings.model_config.get("env_prefix", ""))
    return {str(field.validation_alias or f"{prefix}{name}").upper() for name, field in Settings.model_fields.items()}


def test_every_setting_is_explained() -> None:
    assert environment_names() - explained(DOCS / "configuration.md") == set()


def commands() -> dict[str, list[str]]:
    """Every command with its long options, as typer makes them (it brings its own click, which has no public name)."""
    root: Any = typer.main.get_command(app)
    shown = {f"zarrmill {name}": command for name, command in root.commands.items() if not command.hidden}
    return {
        name: [option for one in parts_of(command) for parameter in one.params for option in long_options(parameter)]
        for name, command in shown.items()
    }


def parts_of(command: Any) -> list[Any]:
    """A command, or all commands of a group."""
    return [command, *getattr(command, "commands", {}).values()]


def long_options(parameter: Any) -> list[str]:
    if parameter.param_type_name != "option" or parameter.hidden:
        return []
    return [option for option in parameter.opts if option.startswith("--") and option != "--help"]


@pytest.mark.parametrize("name", list(commands()))
def test_every_command_and_option_is_explained(name: str) -> None:
    page = DOCS / "commands.md"
    below = {
        heading: lines
        for heading, lines in sections(page).items()
        if name in re.findall(r"`(zarrmill [\w-]+)", heading)
    }
    assert below, f"{name} has no heading of its own in {page.name}"
    words = set(re.findall(r"`([^`]+)`", " ".join(line for lines in below.values() for line in lines)))
    said = {word.split()[0].split("=")[0] for word in words}
    assert [option for option in commands()[name] if option not in said] == []


def test_the_commands_are_found() -> None:
    assert {"zarrmill plan", "zarrmill convert", "zarrmill status", "zarrmill why"} <= set(commands())
    assert "--to" in commands()["zarrmill convert"]
    assert "--visibility" in commands()["zarrmill dataset"]


def test_a_word_in_a_sentence_only_is_not_explained(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# About\n\nUse `ZARRMILL_X` with care.\n\n| `--to` | see `--from` |\n", encoding="utf-8")
    assert explained(page) == {"--to"}


def linked(start: Path) -> set[Path]:
    """Every file that links lead to from a page, the page itself among them."""
    found: set[Path] = set()
    waiting = [start]
    while waiting:
        page = waiting.pop()
        if page in found or not page.is_file():
            continue
        found.add(page)
        if page.suffix == ".md":
            links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
            waiting += [(page.parent / link).resolve() for link in links if "://" not in link]
    return found


def test_every_page_is_found_from_the_readme() -> None:
    readme = ROOT / "README.md"
    pages = set(DOCS.rglob("*.md"))
    assert len(pages) > 20
    assert pages - linked(readme) == set()
    table = readme.read_text(encoding="utf-8").partition("## Where things are")[2].partition("\n## ")[0]
    named = {(ROOT / link).resolve() for link in re.findall(r"\]\((docs/[^)#]+\.md)\)", table)}
    assert pages - named == set(), "the table of pages has a link to each"


def test_a_page_without_a_link_is_not_found(tmp_path: Path) -> None:
    for name, body in {"a": "[b](b.md#x)", "b": "[a](a.md) `c.md`", "c": ""}.items():
        (tmp_path / f"{name}.md").write_text(body, encoding="utf-8")
    assert linked(tmp_path / "a.md") == {tmp_path / "a.md", tmp_path / "b.md"}


def test_the_rooms_of_what_is_done_are_drawn() -> None:
    drawn = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("```")[2].partition("```")[0]
    rooms = {
        path.stem for path in (ROOT / "tasks").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert {room for room in rooms - {"__init__"} if not re.search(rf"\b{room}\b", drawn)} == set()


def test_the_architecture_names_what_is_there() -> None:
    named = re.findall(r"`([\w./-]+/[\w./-]*)`", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    own = [name for name in named if name.split("/")[0] in {*FLOORS, "docs", "tests"}]
    assert len(own) > 20
    assert [name for name in own if not (ROOT / name).exists()] == []
