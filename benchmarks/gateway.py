"""Concurrent readers of a store through the gateway: errors, bytes that differ from what is stored, and the server's memory.

Fifty readers on loopback ask for whole shards, for ranges, for suffixes and for metadata, of a server that is a process of its
own, for 60 seconds. What they get is compared with the stored objects byte for byte. The memory is the server's resident set
after a warm-up and at the end.

    python benchmarks/gateway.py [--json] [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator

READERS = 50
SECONDS, QUICK_SECONDS = 60.0, 10.0
SHARDS, SHARD_BYTES = 8, 4 << 20
STORE = "xx000001/zarr/sub-01/eeg/sub-01_eeg.zarr"
_SERVE = """
import sys, socket
from pathlib import Path
import uvicorn
from api.app import create_app
from infra.settings import Settings
from infra.storage.folder import FolderTarget
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
given = Settings(object_requests_per_minute=100_000_000)
app = create_app(FolderTarget(Path(sys.argv[1]), port=8321), given)
uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, lifespan="off")).run(sockets=[listener])
"""


@dataclass(frozen=True)
class Measured:
    """What a run gave. MB are 10**6 bytes."""

    readers: int
    seconds: float
    requests: int
    errors: int
    differing: int
    megabytes: float
    warm_mb: float
    end_mb: float


def fill(target: Path) -> dict[str, bytes]:
    """A store of random shards below ``target``; its objects by path."""
    generator = random.Random(1)
    objects = {f"{STORE}/eeg_250hz/0/c/0/{number}": generator.randbytes(SHARD_BYTES) for number in range(SHARDS)}
    objects[f"{STORE}/zarr.json"] = b'{"zarr_format":3,"node_type":"group"}'
    for key, data in objects.items():
        (target / key).parent.mkdir(parents=True, exist_ok=True)
        (target / key).write_bytes(data)
    return objects


@contextmanager
def server(target: Path) -> Iterator[tuple[int, psutil.Process]]:
    """The gateway as a process: its port and the process."""
    process = subprocess.Popen([sys.executable, "-c", _SERVE, str(target)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline()), psutil.Process(process.pid)
    finally:
        process.terminate()
        process.communicate(timeout=30)


async def _reader(seed: int, base: str, objects: dict[str, bytes], until: float, tally: dict[str, int]) -> None:
    chooser, keys = random.Random(seed), list(objects)
    async with httpx.AsyncClient(base_url=base, timeout=60) as client:
        while time.monotonic() < until:
            key = chooser.choice(keys)
            whole = objects[key]
            start = chooser.randrange(len(whole))
            length = chooser.randrange(1, 1 << 16)
            asked, expected = chooser.choice(
                (
                    (None, whole),
                    (f"bytes={start}-{start + length - 1}", whole[start : start + length]),
                    (f"bytes=-{length}", whole[-length:]),
                )
            )
            try:
                answer = await client.get(f"/{key}", headers={} if asked is None else {"Range": asked})
            except httpx.HTTPError:
                tally["errors"] += 1
                continue
            tally["requests"] += 1
            tally["bytes"] += len(answer.content)
            tally["errors"] += answer.status_code != (200 if asked is None else 206)
            tally["differing"] += answer.content != expected


async def _all(base: str, objects: dict[str, bytes], seconds: float, readers: int, tally: dict[str, int]) -> None:
    until = time.monotonic() + seconds
    await asyncio.gather(*(_reader(seed, base, objects, until, tally) for seed in range(readers)))


def measure(seconds: float, readers: int = READERS) -> Measured:
    """Run ``readers`` for ``seconds`` after a warm-up of a fifth of that."""
    with tempfile.TemporaryDirectory(prefix="zarrmill-gateway-") as folder:
        objects = fill(Path(folder))
        with server(Path(folder)) as (port, process):
            base, tally = f"http://127.0.0.1:{port}", {"requests": 0, "errors": 0, "differing": 0, "bytes": 0}
            asyncio.run(_all(base, objects, seconds / 5, readers, dict(tally)))
            warm = process.memory_info().rss
            began = time.monotonic()
            asyncio.run(_all(base, objects, seconds, readers, tally))
            took, end = time.monotonic() - began, process.memory_info().rss
    return Measured(
        readers=readers,
        seconds=round(took, 1),
        requests=tally["requests"],
        errors=tally["errors"],
        differing=tally["differing"],
        megabytes=round(tally["bytes"] / 1e6, 1),
        warm_mb=round(warm / 1e6, 1),
        end_mb=round(end / 1e6, 1),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_SECONDS:g} seconds")
    asked = parser.parse_args()
    found = measure(QUICK_SECONDS if asked.quick else SECONDS)
    if asked.json:
        print(json.dumps({"cpus": os.cpu_count(), **asdict(found)}, indent=1))
    else:
        print("readers  seconds  requests  errors  differing      MB  warm MB  end MB")
        print(
            f"{found.readers:>7}  {found.seconds:>7}  {found.requests:>8}  {found.errors:>6}  {found.differing:>9}"
            f"  {found.megabytes:>6.0f}  {found.warm_mb:>7}  {found.end_mb:>6}"
        )
    sys.exit(1 if found.errors or found.differing else 0)


if __name__ == "__main__":
    main()
