"""Datasets of recordings that misbehave on purpose, converted by a real cluster into a folder."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from distributed import Client
from small_files import edf_bytes
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from contract.codes import WhyDue
from contract.errors import LostLease
from contract.store import Provenance
from db import datasets, leases, recordings
from db.datasets import Dataset
from db.leases import Owner
from db.recordings import PlannedAction, PlannedRow, RecordingState
from db.runs import Run, Versions
from flows.fan_out import fan_out
from infra.cluster import cluster
from infra.settings import Settings
from tasks.bids.recording import DiscoveredRecording
from tasks.convert.order import AttemptReport, ConversionOrder, Fingerprint
from tasks.formats.protocol import Route
from tasks.sources import SourceAddress, open_source

MB = 1 << 20
SUPPORT = Path(__file__).resolve().parent
FORMAT = SUPPORT / "fault_format"
VERSIONS = Versions(zarrmill="0.1.0", options="o1", engine="3", biosigio="1.2.13")

ROOT = SUPPORT.parents[1]

Steps = Sequence[dict[str, Any]]


@dataclass
class Shop:
    """One dataset: its folder, its rows, its runs."""

    engine: Engine
    folder: Path
    dataset: Dataset
    owner: Owner
    steps: dict[str, Steps] = field(default_factory=dict)
    events: list[Any] = field(default_factory=list)

    @classmethod
    def open(cls, engine: Engine, folder: Path) -> Shop:
        source, target = folder / "source", folder / "served"
        source.mkdir(parents=True)
        (source / "dataset_description.json").write_text('{"Name": "faults", "BIDSVersion": "1.8.0"}')
        lock = folder / "owner.lock"
        lock.touch()
        with engine.begin() as c:
            name = datasets.next_free_id(c, target=str(target))
            dataset = datasets.register(c, dataset_id=name, target=str(target), source=str(source))
        return cls(engine, folder, dataset, Owner(host="test", pid=os.getpid(), lock_path=str(lock)))

    def put(self, name: str, *steps: dict[str, Any]) -> str:
        """Add a recording that takes these steps; its path."""
        path = self.path(name)
        file = self.folder / "source" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(edf_bytes())
        file.with_suffix(".fault").write_text(json.dumps(list(steps)))
        self.steps[name] = steps
        return path

    @staticmethod
    def path(name: str) -> str:
        return f"sub-{name}/eeg/sub-{name}_task-rest_eeg.edf"

    def recording(self, name: str) -> DiscoveredRecording:
        path = self.path(name)
        stem = path.removesuffix(".edf")
        return DiscoveredRecording(
            path=path,
            zarr=f"{stem}.zarr",
            format="fault",
            modality="eeg",
            entities={"sub": name, "task": "rest"},
            members=(path,),
            companions=(f"{stem}.fault",),
            size_bytes=1000,
        )

    def begin(self) -> Run:
        """A run with everything that was put due."""
        with self.engine.begin() as c:
            run = leases.acquire(
                c,
                dataset=self.dataset,
                owner=self.owner,
                mode="auto",
                versions=VERSIONS,
                owner_is_gone=lambda _owner: True,
            )
            rows = [
                PlannedRow(
                    path=self.path(name),
                    zarr=self.recording(name).zarr,
                    format="fault",
                    modality="eeg",
                    size_bytes=1000,
                    source="0" * 64,
                    inputs=self._inputs(name),
                    action=PlannedAction.CONVERT,
                    why=WhyDue.NEW,
                )
                for name in self.steps
            ]
            recordings.apply_plan(c, dataset=self.dataset, run=run, rows=rows)
        return run

    def end(self, run: Run) -> None:
        with self.engine.begin() as c:
            leases.release(c, run=run)

    def _inputs(self, name: str) -> tuple[tuple[str, str], ...]:
        tree = open_source(str(self.folder / "source")).tree()
        return tuple((path, tree[path].content_id) for path in self.recording(name).inputs())

    def order(self, run: Run, name: str, **more: Any) -> ConversionOrder:
        recording = self.recording(name)
        values: dict[str, Any] = {
            "attempt_id": uuid4(),
            "recording_id": self.states()[recording.path].id,
            "run_number": run.number,
            "dataset_id": self.dataset.dataset_id,
            "recording": recording,
            "source": SourceAddress(url=str(self.folder / "source")),
            "inputs": self._inputs(name),
            "fingerprint": Fingerprint(source="0" * 64, options="o1", engine="3", biosigio="1.2.13"),
            "provenance": Provenance(
                dataset_id=self.dataset.dataset_id,
                source_commit="0" * 40,
                contract_url=f"http://127.0.0.1:8321/{self.dataset.dataset_id}/zarr/{recording.zarr}/",
            ),
            "target": self.dataset.target,
            "route": Route.STREAMED,
            "projected_bytes": 64 * MB,
            "permitted_bytes": 96 * MB,
            "scratch_bytes": 1 * MB,
            "timeout_s": 200.0,
            "updated_utc": "2026-01-01T00:00:00Z",
        }
        return ConversionOrder(**(values | more))

    def convert(
        self,
        client: Client,
        run: Run,
        *,
        should_stop: Callable[[], str | None] = lambda: None,
        on_report: Callable[[AttemptReport], None] = lambda _report: None,
        **orders: dict[str, Any],
    ) -> dict[str, AttemptReport]:
        """Run the fan-out; the report of each recording by its name. ``orders`` change the order of one recording."""
        names = {self.path(name): name for name in self.steps}
        made = [self.order(run, name, **orders.get(name, {})) for name in self.steps]
        reports: dict[str, AttemptReport] = {}
        with self.renewed(run):
            for report in fan_out(
                client,
                self.engine,
                run,
                made,
                on_progress=self.events.append,
                should_stop=should_stop,
                owner=self.owner,
                owner_is_gone=lambda _owner: False,
                largest_worker_bytes=None,
            ):
                assert names[report.path] not in reports, "one report a recording"
                reports[names[report.path]] = report
                on_report(report)
        return reports

    @contextmanager
    def renewed(self, run: Run) -> Iterator[None]:
        """Keep hold of the dataset beside the work, as a run does, however slow the machine."""
        left = threading.Event()

        def renew() -> None:
            while not left.wait(5):
                with contextlib.suppress(DBAPIError, LostLease), self.engine.begin() as c:
                    leases.renew(c, run=run)

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            left.set()
            thread.join()

    def states(self) -> dict[str, RecordingState]:
        with self.engine.begin() as c:
            return {state.path: state for state in recordings.snapshot(c, dataset=self.dataset)}

    def state(self, name: str) -> RecordingState:
        return self.states()[self.path(name)]

    def attempts(self, name: str) -> list[Any]:
        with self.engine.begin() as c:
            history = recordings.why(c, dataset=self.dataset, path=self.path(name))
        assert history is not None
        return list(history.attempts)

    def converting(self) -> int:
        with self.engine.begin() as c:
            return sum(state.due == "converting" for state in recordings.snapshot(c, dataset=self.dataset))

    def is_served(self, name: str) -> bool:
        store = Path(self.dataset.target) / self.dataset.dataset_id / "zarr" / self.recording(name).zarr
        return (store / "zarr.json").is_file()

    def reserved(self) -> int:
        with self.engine.begin() as c:
            return int(c.scalar(text("SELECT count(*) FROM reservations")) or 0)


@contextmanager
def bench_cluster(settings: Settings, database: str, *, slots: int, memory_bytes: int) -> Iterator[Client]:
    """A cluster of our own whose worker knows the format that misbehaves."""
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", f"{ROOT}:{SUPPORT}:{FORMAT}")
    with patch.context(), cluster(settings, database_url=database, workers=slots, memory_bytes=memory_bytes) as client:
        patch.undo()
        client.wait_for_workers(1, timeout=120)
        yield client


def wait_until(true: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)
