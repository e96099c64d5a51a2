from __future__ import annotations

import ast
import re
import tomllib

import pytest
from product import ROOT, comments, files_of_tests, listed, product_files, syntax, text_files

# Put together from pieces, so that this file does not say what it forbids.
HOSTS = ["pypi" + ".org", "python" + "hosted.org", "npm" + "js.org", "deb." + "debian.org", "crates" + ".io"]
MACHINE_PATHS = ["/" + "work/", str(ROOT)] if len(ROOT.parts) > 2 else ["/" + "work/"]
UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
SETTINGS = ROOT / "infra" / "settings.py"


def files_with(words: list[str]) -> dict[str, str]:
    found = {}
    for path in text_files():
        text = path.read_text(encoding="utf-8", errors="replace")
        found.update({str(path.relative_to(ROOT)): word for word in words if word in text})
    return found


def test_the_files_of_the_project_are_found() -> None:
    names = {str(path.relative_to(ROOT)) for path in text_files()}
    assert {"pyproject.toml", "Makefile", "contract/codes.py", "requirements.lock"} <= names


def test_no_file_names_a_package_registry() -> None:
    assert not files_with(HOSTS), listed(files_with(HOSTS))


def test_no_file_names_a_path_of_the_machine_it_was_written_on() -> None:
    assert not files_with(MACHINE_PATHS), listed(files_with(MACHINE_PATHS))


def test_nothing_is_left_for_later() -> None:
    texts = {
        path: path.read_text(encoding="utf-8", errors="replace") for path in text_files() if path.suffix != ".lock"
    }
    assert [str(path.relative_to(ROOT)) for path, text in texts.items() if UNFINISHED.search(text)] == []


def mocks(tree: ast.Module) -> list[int]:
    """Lines that import a mock library or replace an attribute of our code."""
    lines = []
    for node in ast.walk(tree):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
        if any("mock" in module.split(".") for module in modules):
            lines.append(node.lineno)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("monkeypatch.setattr", "monkeypatch.delattr"):
            lines.append(node.lineno)
    return lines


def test_tests_use_real_parts() -> None:
    found = {str(path): mocks(syntax(path)) for path in files_of_tests() if mocks(syntax(path))}
    assert not found, listed(found)


def test_a_mock_would_be_found() -> None:
    for text in (
        "from unittest import mock",
        "import unittest.mock",
        "from unittest.mock import patch",
        "monkeypatch.setattr(x, 'y', 1)",
    ):
        assert mocks(ast.parse(text)), text
    assert not mocks(ast.parse("monkeypatch.setenv('HOME', '/')"))


def environment_reads(tree: ast.Module) -> list[int]:
    names = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}
    lines = []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in names
            and isinstance(node.value, ast.Name)
            and node.value.id == "os"
        ):
            lines.append(node.lineno)
        if isinstance(node, ast.ImportFrom) and node.module == "os" and {alias.name for alias in node.names} & names:
            lines.append(node.lineno)
    return lines


def test_the_environment_is_read_in_one_file() -> None:
    reads = {str(path.relative_to(ROOT)): environment_reads(syntax(path)) for path in product_files()}
    found = {name: lines for name, lines in reads.items() if lines and ROOT / name != SETTINGS}
    assert not found, listed(found)


def test_a_look_at_the_environment_would_be_found() -> None:
    for text in ("import os\nos.environ['X']", "import os\nos.getenv('X')", "from os import environ"):
        assert environment_reads(ast.parse(text)), text


REASON = re.compile(r"#\s*(?:noqa:\s*[A-Z0-9, ]+\b|type:\s*ignore\[[\w, -]+\])?\s*#?\s*(?P<why>.*)", re.DOTALL)


def is_broad(node: ast.AST | None) -> bool:
    if isinstance(node, ast.Tuple):
        return any(is_broad(element) for element in node.elts)
    return node is None or (isinstance(node, ast.Name) and node.id in ("Exception", "BaseException"))


def raises_again(handler: ast.ExceptHandler) -> bool:
    """Whether the handler only tidies up: it ends with a bare raise."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def unexplained(tree: ast.Module, said: dict[int, str]) -> list[int]:
    """Lines that catch everything without a comment of at least three words that says why."""
    handlers = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and is_broad(node.type)]
    lines = [handler.lineno for handler in handlers if not raises_again(handler)]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and "suppress" in ast.unparse(node.func)]
    lines += [call.lineno for call in calls if any(map(is_broad, call.args))]
    return [line for line in lines if len(reason(said.get(line, "")).split()) < 3]


def reason(comment: str) -> str:
    match = REASON.match(comment)
    return match["why"] if match else ""


def test_whoever_catches_everything_says_why() -> None:
    lines = {str(path.relative_to(ROOT)): unexplained(syntax(path), comments(path)) for path in product_files()}
    found = {name: at for name, at in lines.items() if at}
    assert not found, listed(found)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("except Exception:", True),
        ("except:", True),
        ("except (ValueError, BaseException):", True),
        ("except Exception:  # noqa: BLE001", True),
        ("except Exception:  # noqa: BLE001 the border of the process", False),
        ("except ValueError:", False),
    ],
)
def test_a_silent_catch_would_be_found(line: str, found: bool) -> None:
    tree = ast.parse(f"try:\n    pass\n{line}\n    pass")
    _, mark, comment = line.partition("#")
    assert bool(unexplained(tree, {3: mark + comment})) is found


def test_an_exception_to_a_rule_gives_its_reason() -> None:
    silent: dict[str, object] = {}
    for path in [*product_files(), *files_of_tests()]:
        for line, comment in comments(path).items():
            if re.match(r"#\s*(?:noqa|type:\s*ignore)", comment) and len(reason(comment).split()) < 2:
                silent[f"{path.relative_to(ROOT)}:{line}"] = comment
    assert not silent, listed(silent)


def test_the_changelog_and_the_project_name_the_same_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    newest = re.search(r"^## \[?v?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == version


def test_every_link_between_pages_leads_somewhere() -> None:
    pages = [*(ROOT / "docs").glob("**/*.md"), *ROOT.glob("*.md")]
    links = [
        (page, target)
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if "://" not in target
    ]
    broken = {f"{page.name}: {target}": "is not there" for page, target in links if not (page.parent / target).exists()}
    assert not broken, listed(broken)
