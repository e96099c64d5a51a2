"""An uploader killed at any request leaves the old store, none, or the new one, and the next upload makes it whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fabricated import write_store
from fault_proxy import Fault
from s3_server import S3Place

from infra.storage import open_target

KEY = "xx000001/zarr/sub-01/eeg/sub-01_eeg.zarr"
BELOW = f"{KEY}/"
UPLOADER = Path(__file__).parents[2] / "support" / "s3_uploader.py"
ROOT = Path(__file__).parents[3]


@pytest.fixture
def uploader(s3: S3Place) -> Iterator[subprocess.Popen[str]]:
    # one request at a time, so that the n-th request is the n-th step
    environment = {**os.environ, **s3.environment(ZARRMILL_S3_CONCURRENCY="1"), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, str(UPLOADER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        yield process
        process.stdin.close()
        process.wait(60)


def kill_at(uploader: subprocess.Popen[str], s3: S3Place, order: dict[str, object], number: int, *, done: bool) -> bool:
    """Put a store by a process that is killed at its request ``number``, before or after the service did it; whether it was."""
    assert uploader.stdin is not None
    assert uploader.stdout is not None
    hold = Fault(kind="hold", at=number, times=1, hold_answer=done)
    s3.proxy.faults = [hold]
    uploader.stdin.write(json.dumps(order) + "\n")
    uploader.stdin.flush()
    pid = int(uploader.stdout.readline())
    held = hold.held.wait(120)
    if held:
        os.kill(pid, signal.SIGKILL)
    assert uploader.stdout.readline() == "ended\n"
    hold.go.set()
    s3.proxy.settle()
    s3.proxy.forget()
    return held


def versions_at(s3: S3Place) -> tuple[str | None, set[str]]:
    found = {key.removeprefix(BELOW): data for key, data in s3.objects(BELOW).items()}
    root = found.pop("zarr.json", None)
    version = None if root is None else str(json.loads(root)["attributes"]["version"])
    return version, {data.decode().split(":")[0] for data in found.values()}


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_a_process_killed_at_any_request_leaves_no_root_over_a_mixture(
    s3: S3Place, uploader: subprocess.Popen[str], tmp_path: Path, done: bool
) -> None:
    target = open_target(f"s3://{s3.name}", s3.settings())
    old = write_store(tmp_path / "old", "old", chunks=4)
    new = write_store(tmp_path / "new", "new", chunks=3)
    order = {"target": target.url, "key": KEY, "folder": str(tmp_path / "new"), "objects": new}
    # the listing, the root away, a stale chunk away, three chunks, the root, the listing, the root read back
    steps = 9
    for number in range(1, steps + 1):
        target.put_store(KEY, tmp_path / "old", old, token="t", may_write=lambda: None)
        s3.proxy.forget()
        assert kill_at(uploader, s3, order, number, done=done), f"there is no request {number}"
        root, chunks = versions_at(s3)
        assert root is None or chunks == {root}, f"killed at request {number}"
        gone = 2 if done else 3
        expected = "old" if number < gone else "new" if number > (6 if done else 7) else None
        assert root == expected, f"killed at request {number}"
        target.put_store(KEY, tmp_path / "new", new, token="t", may_write=lambda: None)
        assert versions_at(s3) == ("new", {"new"})
        assert len(s3.keys(BELOW)) == 4
