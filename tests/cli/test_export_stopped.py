"""An export of one file that is told to end."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from product import ROOT

WRITER = """
import sys, time
from pathlib import Path
from cli.export import _unwound
from tasks.vneurotk.new_file import writing

with _unwound(), writing(Path(sys.argv[1]), lambda file: None) as file:
    file["half"] = 1
    print("begun", flush=True)
    time.sleep(600)
"""


def test_sigterm_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "trials.h5"
    target.write_bytes(b"the old one")
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(target)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        assert len(list(tmp_path.iterdir())) == 2
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=120)
    assert process.returncode == 143, told
    assert "not kept" in told
    assert [one.name for one in tmp_path.iterdir()] == ["trials.h5"]
    assert target.read_bytes() == b"the old one"
