"""A command that needs the embedded Postgres: says its address, stays until its standard input ends."""

from __future__ import annotations

import sys
from pathlib import Path

from infra.home import Home
from infra.services import in_use

with in_use(Home(Path(sys.argv[1])), "postgres") as url:
    print(url, flush=True)
    sys.stdin.read()
