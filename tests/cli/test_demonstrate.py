"""What the demonstration suggests changes the dataset, each time."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cli.demo.dataset import COLLIDING
from cli.demonstrate import change_line


def test_the_suggested_change_changes_the_sidecar_there_and_back(tmp_path: Path) -> None:
    sidecar = tmp_path / COLLIDING[0].replace("_eeg.edf", "_channels.tsv")
    sidecar.parent.mkdir(parents=True)
    sidecar.write_text("name\ttype\tunits\nFz\tEEG\tuV\nVEOG\tVEOG\tuV\n")
    first = sidecar.read_bytes()
    seen = [first]
    for _ in range(3):
        subprocess.run(["/bin/sh", "-c", change_line(tmp_path) or "exit 1"], check=True)
        seen.append(sidecar.read_bytes())
    assert seen[1] != first
    assert seen == [first, seen[1], first, seen[1]]
    sidecar.unlink()
    assert change_line(tmp_path) is None
