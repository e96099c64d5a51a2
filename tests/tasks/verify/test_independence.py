"""The sweep is a witness only while it shares no code with what it judges."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[3]
FORBIDDEN = ("biosigio", "tasks.convert", "tasks.formats", "tasks.events", "tasks.publish", "tasks.plan")


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return named | {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


def test_nothing_of_the_conversion_is_imported() -> None:
    modules = list((ROOT / "tasks" / "verify").rglob("*.py"))
    assert len(modules) > 15
    found = {(path.name, name) for path in modules for name in imported(path) if name.startswith(FORBIDDEN)}
    assert found == set()
