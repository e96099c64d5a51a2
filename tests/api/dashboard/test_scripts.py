"""The scripts that are checked in are what their sources give, with the licences of everything in them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from product import ROOT

STATIC = ROOT / "api" / "dashboard" / "static"
FRONT = ROOT / "api" / "dashboard" / "front"


def test_the_scripts_that_are_checked_in_are_what_their_sources_give(front: Path, tmp_path: Path) -> None:
    built = subprocess.run(
        ["node", "build.mjs", str(tmp_path)], cwd=front, capture_output=True, text=True, timeout=120, check=False
    )
    assert built.returncode == 0, built.stderr
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    kept = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in {".js", ".txt"}}
    assert sorted(made) == sorted(kept)
    assert [name for name in made if made[name] != kept[name]] == [], "run `make front`"
    licences = made["licences.txt"].decode()
    assert "@observablehq/plot" in licences
    assert "esbuild" not in licences, "what builds is not what is built"


def test_the_packages_are_pinned_to_their_content_and_to_no_registry() -> None:
    lock = json.loads((FRONT / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: one for name, one in lock["packages"].items() if name}
    assert len(packages) > 10
    assert all(one["integrity"].startswith("sha512-") and "resolved" not in one for one in packages.values())
