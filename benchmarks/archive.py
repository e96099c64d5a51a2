"""Made-up archives for benchmarks: a dataset on disk, and the database as if a run had converted all of it.

Nothing here is measured; ``scale.py`` and others measure what stands on it.
"""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqlalchemy import text

from contract.documents import dump
from contract.index import GroupEntry, StoreEntry, UnitsReport
from contract.times import utc_stamp
from db import datasets, leases, recordings, runs
from db.apply import apply_plan
from db.leases import Owner
from db.stores import StoreRow, pack_digests
from flows.request import ReconvertRequest
from flows.survey import current_versions, make_plan, survey
from infra.host import host_key
from tasks.catalog import publish_catalog
from tasks.events.parse import parse_events
from tasks.events.rows import event_rows
from tasks.publish.dataset import publish
from tasks.publish.edition import Edition

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Engine

    from db.runs import Run
    from flows.survey import Survey
    from infra.settings import Settings
    from tasks.plan.planned import PlannedRecording

__all__ = ["DATASET_ID", "EVENTS", "began_run", "fill", "publish_now", "request_of", "write_dataset"]

DATASET_ID = "nm000001"
EVENTS = 50
_STAMP = "2026-03-01T00:00:00Z"
_CHANNELS = b"name\ttype\tunits\nFz\tEEG\tuV\nCz\tEEG\tuV\n"
_BATCH = 200


def _edf(number: int) -> bytes:
    """A header of two channels and one record, whose samples tell recordings apart."""

    def field(value: object, width: int) -> bytes:
        return str(value).encode().ljust(width)

    head = b"0       " + field("X X X X", 80) + field("Startdate X X X X", 80) + b"01.01.2001.01.01"
    head += field(768, 8) + field("", 44) + field(1, 8) + field(1, 8) + field(2, 4)
    columns = [("Fz", 16), ("Cz", 16)]
    for value, width in (
        ("", 80),
        ("uV", 8),
        (-3276.8, 8),
        (3276.7, 8),
        (-32768, 8),
        (32767, 8),
        ("", 80),
        (8, 8),
        ("", 32),
    ):
        columns += [(value, width)] * 2
    return head + b"".join(field(*one) for one in columns) + number.to_bytes(4, "little") * 8


def _events_tsv(number: int) -> bytes:
    lines = ["onset\tduration\ttrial_type\tvalue\tresponse_time"]
    for at in range(EVENTS):
        word = "go" if (at + number) % 3 else "stop"
        lines.append(f"{at * 0.5}\t0.1\t{word}\t{at % 5}\t{at * 0.01:.3f}")
    return ("\n".join(lines) + "\n").encode()


def write_dataset(folder: Path, count: int) -> None:
    """A dataset of ``count`` recordings of four files each: ten runs in each of ten sessions of a subject."""
    folder.mkdir(parents=True)
    (folder / "dataset_description.json").write_text(json.dumps({"Name": "scale", "BIDSVersion": "1.10.0"}))
    for number in range(count):
        sub, ses, run = f"sub-{number // 100:04}", f"ses-{number // 10 % 10:02}", f"run-{number % 10:02}"
        place = folder / sub / ses / "eeg"
        place.mkdir(parents=True, exist_ok=True)
        stem = f"{sub}_{ses}_task-rest_{run}"
        (place / f"{stem}_eeg.edf").write_bytes(_edf(number))
        (place / f"{stem}_channels.tsv").write_bytes(_CHANNELS)
        (place / f"{stem}_events.tsv").write_bytes(_events_tsv(number))
        (place / f"{stem}_eeg.json").write_bytes(b'{"SamplingFrequency": 8, "PowerLineFrequency": 50}')


def request_of(source: Path, target: Path | str) -> ReconvertRequest:
    """The request that brings this dataset to this target."""
    return ReconvertRequest(source=str(source), target=str(target), dataset_id=DATASET_ID)


def began_run(engine: Engine, surveyed: Survey) -> Run:
    """A new run that holds the dataset."""
    owner = Owner(host=host_key(), pid=os.getpid(), lock_path="")
    with engine.begin() as c:
        dataset = datasets.register(c, dataset_id=DATASET_ID, target=surveyed.target.url, source=surveyed.source.url)
        datasets.set_facts(c, dataset=dataset, facts=surveyed.facts)
        return leases.acquire(
            c, dataset=dataset, owner=owner, mode="auto", versions=current_versions(), owner_is_gone=lambda _owner: True
        )


def fill(
    settings: Settings,
    engine: Engine,
    source: Path,
    target: Path | str,
    *,
    put_root: Callable[[str], None] | None = None,
) -> None:
    """Bring the database to where a run has converted every recording, and put a root zarr.json where each store would be.

    ``put_root`` puts the one of a store path; needed for a target that is no folder.
    """
    put_root = put_root or partial(_put_root, Path(target) / DATASET_ID / "zarr")
    request = request_of(source, target)
    surveyed = survey(settings, engine, request)
    planned = make_plan(engine, surveyed, None, request, settings)
    run = began_run(engine, surveyed)
    dataset = survey(settings, engine, request).choice.registered
    assert dataset is not None
    with engine.begin() as c:
        apply_plan(c, dataset=dataset, run=run, rows=planned.rows())
        ids = {state.path: state.id for state in recordings.due(c, dataset=dataset)}
    for start in range(0, len(planned.recordings), _BATCH):
        with engine.begin() as c:
            leases.renew(c, run=run)
            for one in planned.recordings[start : start + _BATCH]:
                _converted(c, run, one, ids[one.recording.path])
                put_root(one.recording.zarr)
    publish_now(settings, engine, surveyed, run)


def _put_root(place: Path, zarr: str) -> None:
    store = place / zarr
    store.mkdir(parents=True)
    (store / "zarr.json").write_bytes(b"{}")


def publish_now(settings: Settings, engine: Engine, surveyed: Survey, run: Run) -> None:
    """Publish the dataset as the database has it, and end the run."""
    with engine.connect() as c:
        dataset = datasets.find(c, dataset_id=DATASET_ID, target=surveyed.target.url)
    assert dataset is not None
    edition = Edition(dataset=dataset, source_commit=surveyed.commit, updated_utc=utc_stamp(run.started_at))
    settings.scratch.mkdir(parents=True, exist_ok=True)
    publish(engine, surveyed.target, run, edition, scratch=settings.scratch)
    publish_catalog(engine, surveyed.target)
    with engine.begin() as c:
        runs.finish(c, run=run, state="completed", counts={})
        leases.release(c, run=run)
        # what autovacuum sees to in an archive that grows over months
        c.execute(text("ANALYZE"))


def _converted(c: Any, run: Run, one: PlannedRecording, recording_id: int) -> None:
    recording, attempt = one.recording, uuid4()
    rows, count = event_rows(
        parse_events(_events_tsv(recording_id)),
        zarr=recording.zarr,
        entities=recording.entities,
        groups=[("eeg_8hz", 8.0)],
    )
    store = StoreRow(
        entry=dump(_entry(recording.path, recording.zarr)),
        source=one.fingerprint,
        options=run.versions.options,
        engine=run.versions.engine,
        biosigio=run.versions.biosigio,
        etags=None,
        digests=pack_digests({f"eeg_8hz/{number}/zarr.json": (700, f"{number:064x}") for number in range(12)}),
        events=rows,
        events_row_count=count,
        source_key=None,
        size_bytes=recording.size_bytes,
        duration_s=1.0,
        updated_utc=_STAMP,
    )
    recordings.claim(
        c,
        run=run,
        recording_id=recording_id,
        attempt_id=attempt,
        worker="made-up",
        route="memory",
        projected_bytes=1,
        permitted_bytes=1,
    )
    recordings.done(c, attempt_id=attempt, run_number=run.number, store=store)


def _entry(path: str, zarr: str) -> StoreEntry:
    group = GroupEntry(
        name="eeg_8hz",
        modality="EEG",
        rate=8.0,
        n_channels=2,
        n_samples=8,
        duration_s=1.0,
        source_rate_hz=8.0,
        n_view_levels=1,
        view_chunk_columns=1024,
        chunk_samples=32,
        shard_samples=480,
    )
    units = UnitsReport(
        converted=2,
        relabelled=0,
        kept_importer_unit=0,
        units_column_present=True,
        sidecar=path.replace("_eeg.edf", "_channels.tsv"),
        sidecar_supplied=False,
    )
    return StoreEntry(
        path=path,
        zarr=zarr,
        derived=False,
        updated_utc=_STAMP,
        modalities=("eeg",),
        groups=(group,),
        power_line_frequency=50.0,
        n_events=EVENTS,
        trial_types={"go": 33, "stop": 17},
        units_report=units,
    )
