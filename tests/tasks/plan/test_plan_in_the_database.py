"""Plans against a real database: what is carried out is what the next plan finds."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import Engine
from state_bench import VERSIONS, Bench

from contract.codes import FailureCode, WhyDue
from db import recordings
from db.apply import PlannedAction
from tasks.bids.discovery import discover_source
from tasks.plan.planned import Plan
from tasks.plan.worklist import plan
from tasks.sources import open_source

FOLDER = "sub-01/eeg"


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "ds"
    (folder / FOLDER).mkdir(parents=True)
    (folder / "dataset_description.json").write_text("{}")
    for run in (1, 2, 3):
        (folder / FOLDER / f"sub-01_run-{run}_eeg.edf").write_bytes(b"edf")
    (folder / FOLDER / "sub-01_run-1_channels.tsv").write_text("name\nA\n")
    return folder


class Planning:
    """Plans of one folder against one dataset of the database, carried out or not."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.bench = Bench(engine)
        self.folder = folder

    def plan(self) -> Plan:
        source = open_source(str(self.folder))
        with self.bench.begin() as c:
            states = recordings.snapshot(c, dataset=self.bench.dataset)
        now: datetime = self.bench.now
        made = plan(
            discover_source(source).recordings,
            source.tree(),
            states,
            now=now,
            options=VERSIONS.options,
            engine=VERSIONS.engine,
            biosigio=VERSIONS.biosigio,
        )
        with self.bench.begin() as c:
            return made.with_changes(recordings.inputs(c, recording_ids=made.source_changed_ids()))

    def carry_out(self, made: Plan) -> None:
        """Apply the plan; every conversion succeeds."""
        run = self.bench.start()
        self.bench.apply(run, *made.rows())
        for one in made.of(PlannedAction.CONVERT):
            self._convert(run, one.recording.path, one.fingerprint)
        self.bench.end(run)

    def _convert(self, run: object, path: str, fingerprint: str) -> None:
        from uuid import uuid4

        from state_bench import store_row

        attempt = uuid4()
        with self.bench.begin() as c:
            recordings.claim(
                c,
                run=run,
                recording_id=self.bench.states()[path].id,
                attempt_id=attempt,
                worker="w",
                route="memory",
                projected_bytes=1,
                permitted_bytes=1,
            )
        with self.bench.begin() as c:
            recordings.done(c, attempt_id=attempt, run_number=run.number, store=store_row(source_fingerprint=fingerprint))
