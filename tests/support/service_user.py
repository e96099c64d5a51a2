"""A command that needs the embedded Postgres: says its address, stays until its standard input ends."""

from __future__ import annotations

import sys

from infra.services import database
from infra.settings import load_settings

with database(load_settings(home=sys.argv[1])) as url:
    print(url, flush=True)
    sys.stdin.read()
