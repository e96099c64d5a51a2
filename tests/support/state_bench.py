"""A dataset, its runs and a clock that stands still, for tests of state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from uuid import UUID, uuid4

from sqlalchemy import Connection, Engine, text

from contract.codes import WhyDue
from db import datasets, leases, recordings, stores
from db.coverage import Coverage, coverage
from db.datasets import Dataset
from db.leases import Owner
from db.recordings import PlannedAction, PlannedRow, RecordingState
from db.runs import Run, Versions
from db.stores import StoreRow

__all__ = ["VERSIONS", "Bench", "fingerprint", "path_of", "planned", "store_row"]

VERSIONS = Versions(zarrmill="0.1.0", options="o1", engine="3", biosigio="1.2.13")


def fingerprint(word: str) -> str:
    return sha256(word.encode()).hexdigest()


def path_of(name: str) -> str:
    return f"sub-{name}/eeg/sub-{name}_task-rest_eeg.edf"


def planned(
    name: str,
    action: PlannedAction = PlannedAction.CONVERT,
    *,
    source: str = "s1",
    zarr: str | None = None,
    **more: object,
) -> PlannedRow:
    """A planned recording; a conversion is due because it is new unless said otherwise."""
    path = path_of(name)
    values: dict[str, object] = {
        "path": path,
        "zarr": zarr or path.removesuffix(".edf") + ".zarr",
        "format": "edf",
        "modality": "eeg",
        "size_bytes": 1000,
        "source": fingerprint(source),
        "inputs": ((path, f"id-{source}"), ("participants.tsv", "id")),
        "action": action,
    }
    if action is PlannedAction.CONVERT:
        values["why"] = WhyDue.NEW
    return PlannedRow(**(values | more))  # type: ignore[arg-type]  # tests name what differs


def store_row(name: str = "01", *, source: str = "s1", **more: object) -> StoreRow:
    values: dict[str, object] = {
        "entry": f'{{"path":"{path_of(name)}"}}'.encode(),
        "source": fingerprint(source),
        "options": VERSIONS.options,
        "engine": VERSIONS.engine,
        "biosigio": VERSIONS.biosigio,
        "digests": stores.pack_digests({"zarr.json": (2, fingerprint("zarr.json"))}),
        "etags": None,
        "events": b"arrow",
        "events_row_count": 3,
        "source_key": None,
        "size_bytes": 1000,
        "duration_s": 60.0,
        "updated_utc": "2026-03-01T00:00:00Z",
    }
    return StoreRow(**(values | more))  # type: ignore[arg-type]  # tests name what differs


class Bench:
    """One dataset at one target. Every transaction sees the bench's clock, which moves only by ``wait``."""

    def __init__(self, engine: Engine, *, target: str = "/served") -> None:
        self.engine = engine
        self.now = datetime(2026, 3, 1, tzinfo=UTC)
        with self.begin() as c:
            dataset_id = datasets.next_free_id(c, target=target)
            self.dataset: Dataset = datasets.register(c, dataset_id=dataset_id, target=target, source="/source")

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        with self.engine.begin() as c:
            c.execute(text("SELECT set_config('zarrmill.clock', :now, true)"), {"now": self.now.isoformat()})
            yield c

    def wait(self, **much: float) -> None:
        self.now += timedelta(**much)

    def start(self, *, owner_is_gone: bool = False, versions: Versions = VERSIONS, pid: int = 1) -> Run:
        owner = Owner(host="here", pid=pid, lock_path=f"/home/locks/{pid}")
        with self.begin() as c:
            return leases.acquire(
                c,
                dataset=self.dataset,
                owner=owner,
                mode="auto",
                versions=versions,
                owner_is_gone=lambda _owner: owner_is_gone,
            )

    def end(self, run: Run) -> None:
        with self.begin() as c:
            leases.release(c, run=run)

    def apply(self, run: Run, *rows: PlannedRow) -> recordings.Applied:
        with self.begin() as c:
            return recordings.apply_plan(c, dataset=self.dataset, run=run, rows=rows)

    def claim(
        self,
        run: Run,
        name: str = "01",
        *,
        worker: str = "w1",
        attempt_id: UUID | None = None,
        is_shared: bool = False,
        **more: int,
    ) -> UUID:
        """Claim a recording for a worker of this test alone, or for one that other datasets share."""
        attempt = attempt_id or uuid4()
        recording = self.state(name).id
        with self.begin() as c:
            recordings.claim(
                c,
                run=run,
                recording_id=recording,
                attempt_id=attempt,
                worker=worker if is_shared else f"{worker}/{self.dataset.pk}",
                route="memory",
                **({"projected_bytes": 10, "permitted_bytes": 20} | more),
            )
        return attempt

    def convert(
        self,
        run: Run,
        name: str = "01",
        *,
        source: str = "s1",
        worker: str = "w1",
        notes: tuple[str, ...] = (),
        quantisation: bytes | None = None,
        **more: object,
    ) -> UUID:
        attempt = self.claim(run, name, worker=worker)
        with self.begin() as c:
            row = store_row(name, source=source, **more)
            report = recordings.Measured(notes=notes, quantisation=quantisation)
            recordings.done(c, attempt_id=attempt, run_number=run.number, store=row, report=report)
        return attempt

    def states(self) -> dict[str, RecordingState]:
        with self.begin() as c:
            return {state.path: state for state in recordings.snapshot(c, dataset=self.dataset)}

    def state(self, name: str = "01") -> RecordingState:
        return self.states()[path_of(name)]

    def history(self, name: str = "01") -> recordings.RecordingHistory:
        with self.begin() as c:
            history = recordings.why(c, dataset=self.dataset, path=path_of(name))
        assert history is not None
        return history

    def coverage(self) -> Coverage:
        with self.begin() as c:
            return coverage(c, dataset=self.dataset)
