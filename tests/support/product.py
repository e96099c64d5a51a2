"""The project's own files, for tests about the whole of it."""

from __future__ import annotations

import ast
import io
import subprocess
import tokenize
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FLOORS", "ROOT", "comments", "files_of_tests", "module_name", "product_files", "syntax", "text_files"]

ROOT = Path(__file__).resolve().parents[2]
FLOORS = ("contract", "infra", "db", "tasks", "flows", "api", "cli")
_TEXT = {
    ".py",
    ".md",
    ".toml",
    ".json",
    ".lock",
    ".txt",
    ".yaml",
    ".yml",
    ".sql",
    ".mako",
    ".html",
    ".js",
    ".css",
    ".sh",
    ".cfg",
    ".ini",
    ".tsv",
    "",
}


def product_files() -> list[Path]:
    """Every Python file of the product, sorted."""
    return sorted(path for floor in FLOORS for path in (ROOT / floor).rglob("*.py"))


def files_of_tests() -> list[Path]:
    """Every Python file of the tests, sorted."""
    return sorted((ROOT / "tests").rglob("*.py"))


@cache
def text_files() -> tuple[Path, ...]:
    """Every text file that is, or is about to be, under version control; outside a checkout, every file of the project."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, capture_output=True, check=False)
    if listed.returncode == 0:
        paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    else:
        kept = (
            path
            for path in ROOT.rglob("*")
            if not any(part.startswith(".") for part in path.relative_to(ROOT).parts[:-1])
        )
        paths = [path for path in kept if "__pycache__" not in path.parts]
    return tuple(sorted(path for path in paths if path.is_file() and path.suffix in _TEXT))


@cache
def syntax(path: Path) -> ast.Module:
    """The parsed module, parsed once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def comments(path: Path) -> dict[int, str]:
    """The comment on each line that has one, by line number."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}


def listed(found: Mapping[str, object]) -> str:
    """What a failing check has found, a line each, uncut."""
    return "\n".join(["", *(f"{name}: {what}" for name, what in sorted(found.items()))])


def module_name(path: Path) -> str:
    """``tasks.bids.tsv`` for ``tasks/bids/tsv.py``."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
