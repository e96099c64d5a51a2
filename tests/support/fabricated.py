"""Small stores and documents that look like the real ones, for tests of what comes after conversion."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path


def write_store(folder: Path, version: str, *, chunks: int = 3) -> dict[str, str]:
    """Write a folder with a root zarr.json and some chunks that all carry ``version``; SHA-256 by object name."""
    objects = {"zarr.json": json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {"version": version}})}
    objects |= {f"eeg_250hz/0/c/{number}/0": f"{version}:{number}" for number in range(chunks)}
    for name, text in objects.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in objects.items()}


def tree_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by its relative name."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
