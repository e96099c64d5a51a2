"""Plans against a real database: what is carried out is what the next plan finds."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import Engine
from state_bench import VERSIONS, Bench, store_row

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
        states = self.bench.states()
        for one in made.of(PlannedAction.CONVERT):
            attempt = uuid4()
            with self.bench.begin() as c:
                recordings.claim(
                    c,
                    run=run,
                    recording_id=states[one.recording.path].id,
                    attempt_id=attempt,
                    worker="w",
                    route="memory",
                    projected_bytes=1,
                    permitted_bytes=1,
                )
                store = replace(store_row(), source=one.fingerprint)
                recordings.done(c, attempt_id=attempt, run_number=run.number, store=store)
        self.bench.end(run)

    def published_as(self) -> dict[str, str | None]:
        return {path.rpartition("/")[2]: state.published_as for path, state in self.bench.states().items()}


@pytest.fixture
def planning(engine: Engine, dataset: Path) -> Planning:
    made = Planning(engine, dataset)
    first = made.plan()
    assert {one.why for one in first.recordings} == {WhyDue.NEW}
    made.carry_out(first)
    return made


def test_what_was_carried_out_leaves_nothing_to_do(planning: Planning) -> None:
    again = planning.plan()
    assert again.nothing_to_do
    assert len(again.of(PlannedAction.CARRY)) == 3


def test_one_edited_sidecar_rebuilds_what_it_applies_to_and_is_named(planning: Planning) -> None:
    (planning.folder / FOLDER / "sub-01_run-1_channels.tsv").write_text("name\nB\n")
    (one,) = planning.plan().of(PlannedAction.CONVERT)
    assert one.recording.path == f"{FOLDER}/sub-01_run-1_eeg.edf"
    assert [str(change) for change in one.changed] == ["sub-01_run-1_channels.tsv changed"]
    (planning.folder / "events.json").write_text("{}")
    everyone = planning.plan()
    assert len(everyone.of(PlannedAction.CONVERT)) == 3
    assert all("events.json added" in map(str, one.changed) for one in everyone.recordings)
    planning.carry_out(everyone)
    assert planning.plan().nothing_to_do


def test_removed_and_renamed_recordings_are_dropped_and_new(planning: Planning) -> None:
    folder = planning.folder / FOLDER
    (folder / "sub-01_run-2_eeg.edf").unlink()
    (folder / "sub-01_run-3_eeg.edf").rename(folder / "sub-01_run-4_eeg.edf")
    made = planning.plan()
    assert made.dropped == (f"{FOLDER}/sub-01_run-2_eeg.edf", f"{FOLDER}/sub-01_run-3_eeg.edf")
    assert [one.recording.path for one in made.of(PlannedAction.CONVERT)] == [f"{FOLDER}/sub-01_run-4_eeg.edf"]
    planning.carry_out(made)
    assert planning.plan().nothing_to_do


def test_a_twin_that_comes_and_goes_is_a_verdict_and_then_a_recording(planning: Planning) -> None:
    twin = planning.folder / FOLDER / "sub-01_run-1_eeg.set"
    twin.write_bytes(b"set")
    planning.carry_out(planning.plan())
    assert planning.plan().nothing_to_do
    assert planning.published_as()["sub-01_run-1_eeg.set"] == "failures"
    (planning.folder / FOLDER / "sub-01_run-1_eeg.edf").unlink()
    made = planning.plan()
    assert [(one.recording.path, one.why) for one in made.of(PlannedAction.CONVERT)] == [
        (f"{FOLDER}/sub-01_run-1_eeg.set", WhyDue.NEW)
    ]
    planning.carry_out(made)
    assert planning.published_as()["sub-01_run-1_eeg.set"] == "stores"
    assert planning.plan().nothing_to_do


def test_a_preferred_twin_takes_the_place_of_the_one_served(planning: Planning) -> None:
    (planning.folder / FOLDER / "sub-01_run-1_eeg.vhdr").write_bytes(b"vhdr")
    planning.carry_out(planning.plan())
    assert planning.published_as()["sub-01_run-1_eeg.vhdr"] == "stores"
    assert planning.published_as()["sub-01_run-1_eeg.edf"] == "failures"
    assert planning.plan().nothing_to_do


def test_missing_content_is_a_verdict_until_it_comes(planning: Planning) -> None:
    path = planning.folder / FOLDER / "sub-01_run-5_eeg.edf"
    key = "MD5E-s3--0.edf"
    content = planning.folder / f".git/annex/objects/a/b/{key}/{key}"
    path.symlink_to(f"../../.git/annex/objects/a/b/{key}/{key}")
    planning.carry_out(planning.plan())
    assert planning.bench.states()[f"{FOLDER}/{path.name}"].code is FailureCode.ANNEX_OBJECT_MISSING
    assert planning.plan().nothing_to_do
    content.parent.mkdir(parents=True)
    content.write_bytes(b"edf")
    made = planning.plan()
    assert [one.why for one in made.of(PlannedAction.CONVERT)] == [WhyDue.RETRY]
    planning.carry_out(made)
    content.unlink()
    assert planning.plan().nothing_to_do
    assert planning.published_as()[path.name] == "stores"
