"""A server that was started before anything was converted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from loopback import ask, running
from sqlalchemy import Engine

from api.app import create_app
from cli.serve import _taking_state
from infra.processes import ServerFailed
from infra.settings import Settings
from infra.storage.folder import FolderTarget


def test_a_state_that_begins_later_is_taken_once_it_can_be_used(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = 0

    @contextmanager
    def opened() -> Iterator[Engine | None]:
        nonlocal asked
        asked += 1
        if asked == 2:
            raise ServerFailed("it is being made")
        yield engine if asked > 2 else None

    app = create_app(FolderTarget(tmp_path, port=8321), Settings(), None)
    with running(app) as port:
        assert ask(port, "/dashboard").status == 503
        assert b"zarrmill_datasets" not in ask(port, "/metrics").body
        with _taking_state(app.state.service, opened, "http://here"):
            deadline = time.monotonic() + 60
            while ask(port, "/dashboard").status != 200:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            assert asked == 3
            assert b"zarrmill_converting" in ask(port, "/metrics").body
    assert "http://here/dashboard" in capsys.readouterr().out
