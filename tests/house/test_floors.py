from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest
from product import FLOORS, ROOT, files_of_tests, listed, module_name, product_files, syntax

MODULE_LINES = 400
FUNCTION_LINES = 50


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """Every module of the product with the modules that it imports."""
    first, *rest = FLOORS
    graph = grimp.build_graph(first, *rest, cache_dir=None)
    return {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}


def circle(graph: dict[str, set[str]]) -> list[str]:
    """One circle of imports, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_imports_go_down_only() -> None:
    command = Path(sys.executable).with_name("lint-imports")
    checked = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_no_modules_import_each_other_in_a_circle(imports: dict[str, set[str]]) -> None:
    assert len(imports) > 50
    assert not circle(imports), " -> ".join(circle(imports))


def test_a_circle_would_be_found(imports: dict[str, set[str]]) -> None:
    assert circle({**imports, "contract.codes": {"contract.errors"}})


def test_the_contract_is_pure(imports: dict[str, set[str]]) -> None:
    allowed = {"contract", "pydantic"}
    for path in product_files():
        if path.parent == ROOT / "contract":
            roots = imported_roots(syntax(path))
            assert roots <= allowed | sys.stdlib_module_names, module_name(path)
            if path.name != "schemas.py":
                assert not roots & {"pathlib", "os", "io", "socket", "subprocess", "logging"}, module_name(path)


def imported_roots(tree: ast.Module) -> set[str]:
    named = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    named += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in named}


def functions(tree: ast.Module) -> list[tuple[str, int]]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        (node.name, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    ]


def test_a_module_does_one_thing() -> None:
    files = [*product_files(), *files_of_tests(), *(ROOT / "benchmarks").glob("*.py")]
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    long = {name: count for name, count in lines.items() if count > MODULE_LINES}
    assert not long, listed(long)


def test_a_function_does_one_thing() -> None:
    long = {
        f"{path.relative_to(ROOT)}:{name}": count
        for path in product_files()
        for name, count in functions(syntax(path))
        if count > FUNCTION_LINES
    }
    assert not long, listed(long)


def test_a_long_function_would_be_found() -> None:
    body = "\n".join(f"    x = {line}" for line in range(FUNCTION_LINES))
    assert functions(ast.parse(f"async def f():\n{body}")) == [("f", FUNCTION_LINES + 1)]


def test_every_folder_of_the_product_is_a_package() -> None:
    folders = {path.parent for path in product_files()}
    assert {str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").exists()} == set()
