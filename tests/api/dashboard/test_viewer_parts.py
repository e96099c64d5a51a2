"""The arithmetic of the viewer, in node beside its sources."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
from numcodecs import Blosc
from product import ROOT

TESTS = ROOT / "tests" / "node" / "viewer.test.mjs"


def packed_cases() -> list[dict[str, str]]:
    """Arrays of several kinds and sizes, packed by c-blosc."""
    rng = np.random.default_rng(1)
    made = []
    for method in ("zstd", "lz4"):
        for shuffle in (Blosc.NOSHUFFLE, Blosc.SHUFFLE):
            for kind, count in (("i2", 300_000), ("i2", 70_001), ("i2", 5), ("f8", 30_001), ("i4", 9_000)):
                for step in (1, 2**14):
                    values = np.cumsum(rng.integers(-step, step, count)).astype(kind)
                    packed = Blosc(cname=method, clevel=5, shuffle=shuffle).encode(values)
                    made.append(
                        {
                            "name": f"{method} {shuffle} {kind} {count} {step}",
                            "packed": base64.b64encode(packed).decode(),
                            "plain": base64.b64encode(values.tobytes()).decode(),
                        }
                    )
    return made


def test_the_parts_of_the_viewer_do_what_their_words_say(front: Path) -> None:
    shutil.copy(TESTS, front / TESTS.name)
    (front / "packed.json").write_text(json.dumps(packed_cases()))
    ran = subprocess.run(
        ["node", "--test", TESTS.name], cwd=front, capture_output=True, text=True, timeout=240, check=False
    )
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert "# fail 0" in ran.stdout
