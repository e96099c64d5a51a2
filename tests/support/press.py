"""A dataset in the database whose stores really stand in a folder target, ready to be published."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from fabricated import write_store
from sqlalchemy import Connection, Engine
from state_bench import Bench, path_of, planned, store_row

from contract.codes import FailureCode, PendingReason, WhyDue
from contract.documents import dump
from contract.index import GroupEntry, StoreEntry
from contract.layout import store_key
from db import datasets, recordings, stores
from db.recordings import PlannedAction, PlannedRow, RecordingState
from db.runs import Run
from infra.storage.folder import FolderTarget
from tasks.events.parse import parse_events
from tasks.events.rows import event_rows
from tasks.publish.dataset import Published, publish
from tasks.publish.edition import Edition

EVENTS = b"onset\tduration\ttrial_type\n0.5\t1\trest\n2\tn/a\tvideo\n"
COMMIT = "ab" * 20


def zarr_of(name: str) -> str:
    return path_of(name).removesuffix(".edf") + ".zarr"


class Press(Bench):
    """Plans, converts and publishes small stores; the clock is the real one."""

    def __init__(self, engine: Engine, folder: Path, dataset_id: str = "xx000001", target: Any = None) -> None:
        self.engine = engine
        self.now = datetime.now(UTC)
        self.folder = folder
        self.scratch = folder / "scratch"
        self.scratch.mkdir(exist_ok=True)
        self.target: Any = target or FolderTarget(folder / "served", port=8321)
        with self.begin() as c:
            self.dataset = datasets.register(c, dataset_id=dataset_id, target=self.target.url, source="/source")
        self.run: Run | None = None
        self.rows: dict[str, PlannedRow] = {}

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        with self.engine.begin() as c:
            yield c

    @property
    def home(self) -> Path:
        """Folder of the dataset at the target."""
        return self.target.root / self.dataset.dataset_id / "zarr"

    def begin_run(self, **rows: PlannedRow) -> Run:
        """End the run before, start one, and plan exactly ``rows``; those not named are carried as they are."""
        if self.run is not None:
            self.end(self.run)
        self.run = self.start()
        states = self.states()
        carried = {
            name: replace(row, action=_as_it_is(states.get(row.path)), why=None, code=None, detail=None)
            for name, row in self.rows.items()
        }
        self.rows = carried | rows
        self.apply(self.run, *[self.rows[name] for name in sorted(self.rows)])
        return self.run

    def plan(self, *names: str, **more: Any) -> Run:
        return self.begin_run(**{name: planned(name, **more) for name in names})

    def drop(self, *names: str) -> Run:
        for name in names:
            del self.rows[name]
        return self.begin_run()

    def entry(self, name: str, events: bytes | None) -> StoreEntry:
        rate, count = 250.0, 1000
        group = GroupEntry(
            name="eeg_250hz", modality="EEG", rate=rate, n_channels=2, n_samples=count, duration_s=count / rate
        )
        told = parse_events(events) if events is not None else None
        return StoreEntry(
            path=path_of(name),
            zarr=zarr_of(name),
            derived=False,
            updated_utc="2026-03-01T00:00:00Z",
            modalities=("eeg",),
            groups=(group,),
            n_events=told.n_events if told else None,
            trial_types=dict(told.trial_types()) if told else None,
        )

    def put(self, name: str, version: str, attempt: UUID) -> tuple[bytes, bytes | None]:
        """Put a store at the target as the uploader does; its packed digests and etags."""
        folder = self.scratch / f"store-{attempt}"
        objects = write_store(folder, version)
        sizes = {key: ((folder / key).stat().st_size, digest) for key, digest in objects.items()}
        key = store_key(self.dataset.dataset_id, zarr_of(name))
        etags = self.target.put_store(key, folder, objects, token=str(attempt), may_write=lambda: None)
        return stores.pack_digests(sizes), stores.pack_etags(etags)

    def convert(  # type: ignore[override]  # writes a real store besides the row
        self, *names: str, source: str = "s1", events: bytes | None = EVENTS, version: str = "v1", **more: Any
    ) -> None:
        assert self.run is not None
        for name in names:
            attempt = self.claim(self.run, name)
            with self.begin() as c:
                stores.open_intent(c, attempt_id=attempt, run_number=self.run.number)
            digests, etags = self.put(name, version, attempt)
            rows, count = (None, 0)
            if events is not None:
                entities = {"sub": name, "task": "rest"}
                rows, count = event_rows(
                    parse_events(events), zarr=zarr_of(name), entities=entities, groups=[("eeg_250hz", 250.0)]
                )
            values = {
                "entry": dump(self.entry(name, events)),
                "digests": digests,
                "etags": etags,
                "events": rows,
                "events_row_count": count,
                "duration_s": 4.0,
            }
            with self.begin() as c:
                row = store_row(name, source=source, **(values | more))
                recordings.done(c, attempt_id=attempt, run_number=self.run.number, store=row)

    def fail(
        self, name: str, code: FailureCode = FailureCode.NOT_CONTINUOUS, detail: str = "ValueError: epochs"
    ) -> None:
        assert self.run is not None
        attempt = self.claim(self.run, name)
        with self.begin() as c:
            recordings.fail(c, attempt_id=attempt, run_number=self.run.number, code=code, detail=detail)

    def postpone(self, name: str, reason: PendingReason = PendingReason.INFRA_FAILURE) -> None:
        assert self.run is not None
        attempt = self.claim(self.run, name)
        with self.begin() as c:
            recordings.postpone(
                c, attempt_id=attempt, run_number=self.run.number, reason=reason, error="OSError: net", counted=True
            )

    def edition(self, **more: Any) -> Edition:
        with self.begin() as c:
            dataset = datasets.find(c, dataset_id=self.dataset.dataset_id, target=self.target.url)
        assert dataset is not None
        values = {"dataset": dataset, "source_commit": COMMIT, "updated_utc": "2026-03-02T00:00:00Z"}
        return Edition(**(values | more))

    def publish(self, target: Any = None, **more: Any) -> Published:
        assert self.run is not None
        return publish(self.engine, target or self.target, self.run, self.edition(**more), scratch=self.scratch)

    def document(self, name: str) -> Any:
        return json.loads((self.home / name).read_bytes())


def _as_it_is(state: RecordingState | None) -> PlannedAction:
    """The action that leaves a recording as it is."""
    if state is None or state.due in ("pending", "converting"):
        return PlannedAction.WAIT
    return PlannedAction.KEEP_FAILED if state.due == "failed" else PlannedAction.CARRY


def requested(name: str, **more: Any) -> PlannedRow:
    """A planned rebuild that somebody asked for."""
    return planned(name, why=WhyDue.REQUESTED, **more)
