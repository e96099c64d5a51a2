"""Migrations are one chain: two that were written side by side and follow the same one are told before a database meets them."""

from __future__ import annotations

import re
from pathlib import Path

from db.migrate import HEAD

VERSIONS = Path(__file__).resolve().parents[2] / "db" / "migrations" / "versions"


def test_each_migration_follows_another_one_and_the_last_is_the_written_head() -> None:
    chain = []
    for path in sorted(VERSIONS.glob("m*.py")):
        text = path.read_text(encoding="utf-8")
        found = re.findall(r'^(?:down_)?revision = (?:"(\d{4})"|None)$', text, re.MULTILINE)
        assert len(found) == 2, path.name
        assert path.name.startswith(f"m{found[0]}_"), path.name
        chain.append((found[1], found[0]))
    numbers = [number for _, number in chain]
    assert chain == list(zip(["", *numbers[:-1]], numbers, strict=True)), "a migration follows the one before it"
    assert numbers[-1] == HEAD
