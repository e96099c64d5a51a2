"""A recording converted in this process and put at a folder target, to be judged by the verify sweep without a database."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from conversion import DATASET, Bench, order_for

from contract.layout import contract_base, store_key
from db.dataset_values import Dataset, DatasetFacts
from db.store_verdicts import ServedStoreRow
from infra.settings import Settings
from infra.storage.folder import FolderTarget
from tasks.bids.discovery import discover_source
from tasks.bids.recording import DiscoveredRecording
from tasks.convert.order import ConvertedStore
from tasks.read.place import target_place
from tasks.sources import SourceAddress, open_source
from tasks.verify.sources import SourceChoice
from tasks.verify.store import Judged, Surroundings, verify_store

HOST = "http://127.0.0.1:8321"


@dataclass(frozen=True)
class Put:
    """A store at a target, beside the source that it was made from."""

    recording: DiscoveredRecording
    converted: ConvertedStore
    source: Path
    target: FolderTarget
    facts: DatasetFacts = field(default_factory=DatasetFacts)

    @property
    def store(self) -> Path:
        return self.target.root / store_key(DATASET, self.recording.zarr)

    def judge(
        self, scratch: Path, *, seed: int = 0, renoted: bool = True, taken_over: bool = False, commit: str | None = None
    ) -> Judged:
        """What the sweep finds. ``renoted``: the digests are those of the objects as they stand now. ``commit``: it was made from one."""
        if taken_over:
            digests = {}
        elif renoted:
            digests = self.target.store_digests(store_key(DATASET, self.recording.zarr)) or {}
        else:
            digests = {name: (one.size_bytes, one.sha256) for name, one in self.converted.objects.items()}
        sources = SourceChoice(SourceAddress(url=str(self.source)), commit or "0" * 40, Settings())
        tree = open_source(SourceAddress(url=str(self.source), commit=commit)).tree()
        around = Surroundings(
            dataset=dataset_of(self.target, self.source, self.facts),
            target=self.target,
            sources=sources,
            contract_base=contract_base(HOST, DATASET),
            entries={self.recording.zarr: self.converted.entry},
            events_file=None,
            place=target_place(self.target),
            seed=seed,
        )
        row = ServedStoreRow(
            recording_id=1,
            path=self.recording.path,
            zarr=self.recording.zarr,
            format=self.recording.format,
            modality=self.recording.modality,
            source="s",
            digest="d",
            entry=b"{}",
            inputs=tuple((path, tree[path].content_id) for path in self.recording.inputs()),
            digests=digests,
            etags=None,
            proved_body=None,
        )
        folder = scratch / uuid4().hex
        folder.mkdir()
        try:
            return verify_store(around, row, folder)
        finally:
            shutil.rmtree(folder)


def dataset_of(target: FolderTarget, source: Path, facts: DatasetFacts) -> Dataset:
    return Dataset(
        pk=1,
        dataset_id=DATASET,
        target=target.url,
        source=str(source),
        visibility="public",
        anonymous=False,
        active=True,
        facts=facts,
        status="ready",
        converting=False,
        published=None,
        errors=0,
        error=None,
    )


def put(bench: Bench, path: str, served: Path) -> Put:
    """Convert the recording at ``path`` of the bench's source, and move its store to a target below ``served``."""
    found = discover_source(open_source(str(bench.source)))
    recording = next(one for one in found.recordings if one.path == path)
    converted = bench.convert(recording)
    assert order_for(recording).recording.zarr == recording.zarr
    made = Put(recording, converted, bench.source, FolderTarget(served, port=8321))
    made.store.parent.mkdir(parents=True)
    shutil.move(bench.store, made.store)
    return made
