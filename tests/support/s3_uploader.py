"""Uploaders that can be killed: for each line of stdin a fork puts the store of that line, and its pid is printed.

The imports are paid once; the fork comes before any connection is made.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from infra.settings import load_settings
from infra.storage.opening import open_target


def put(order: dict[str, object]) -> None:
    target = open_target(str(order["target"]), load_settings())
    objects = dict(order["objects"])  # type: ignore[call-overload] # it was a mapping before it was JSON
    target.put_store(str(order["key"]), Path(str(order["folder"])), objects, token="t", may_write=lambda: None)


def main() -> None:
    import infra.storage.s3_target  # noqa: F401 - what the forks need is here when they begin

    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            try:
                put(json.loads(line))
            finally:
                os._exit(0)
        print(pid, flush=True)
        os.waitpid(pid, 0)
        print("ended", flush=True)


if __name__ == "__main__":
    main()
