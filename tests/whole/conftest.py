"""Fixtures for tests of the whole path: one Prefect for the session, a database for each, commands as processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import Zarrmill


@pytest.fixture
def zarrmill(home: Path, tmp_path: Path, database_url: str, prefect_url: str) -> Zarrmill:
    """The command line with this test's database and the session's Prefect; it is called in ``tmp_path``."""
    return Zarrmill(home, tmp_path, {"ZARRMILL_DATABASE_URL": database_url, "PREFECT_API_URL": prefect_url})
