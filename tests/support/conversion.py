"""Puts one recording below a scratch folder under its BIDS name and converts it in this process."""

from __future__ import annotations

import resource
import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from uuid import UUID

from contract.store import Provenance
from tasks.bids.recording import DiscoveredRecording, Sidecars
from tasks.convert.order import ConversionOrder, ConvertedStore, Fingerprint
from tasks.convert.recording import SOURCE_FOLDER, STORE_FOLDER, convert
from tasks.convert.verdict import Verdict, classify
from tasks.formats.protocol import Route
from tasks.sources import SourceAddress

DATASET = "xx000001"


def recording_at(
    path: str, format_name: str, modality: str | None, *, members: tuple[str, ...] = (), **more: object
) -> DiscoveredRecording:
    """A discovered recording with this path; ``more`` are other fields."""
    stem = path.rsplit("/", 1)[-1]
    entities = dict(part.split("-", 1) for part in stem.split(".", 1)[0].split("_") if "-" in part)
    zarr = path.rsplit(".", 1)[0] + ".zarr"
    plain = DiscoveredRecording(
        path=path, zarr=zarr, format=format_name, modality=modality, entities=entities, members=members or (path,)
    )
    return replace(plain, **more)  # type: ignore[arg-type]  # the caller names fields


def order_for(recording: DiscoveredRecording) -> ConversionOrder:
    return ConversionOrder(
        attempt_id=UUID(int=1),
        recording_id=1,
        run_number=1,
        dataset_id=DATASET,
        recording=recording,
        source=SourceAddress(url="/source"),
        inputs=(),
        fingerprint=Fingerprint(source="s", options="o", engine="3", biosigio="1"),
        provenance=Provenance(
            dataset_id=DATASET,
            source_commit="0" * 40,
            contract_url=f"http://127.0.0.1:8321/{DATASET}/zarr/{recording.zarr}/",
        ),
        target="/served",
        route=Route.STREAMED,
        projected_bytes=1,
        permitted_bytes=1,
        scratch_bytes=1,
        timeout_s=60.0,
        updated_utc="2026-01-01T00:00:00Z",
    )


class Bench:
    """One scratch folder; files are put into it, then the recording is converted."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.source = scratch / SOURCE_FOLDER
        self.store = scratch / STORE_FOLDER

    def put(self, path: str, content: Path | bytes | str) -> Path:
        """Write ``content`` at a BIDS path; a folder is copied whole."""
        target = self.source / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            if content.is_dir():
                shutil.copytree(content, target)
            else:
                shutil.copyfile(content, target)
        else:
            target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target

    def convert(self, recording: DiscoveredRecording) -> ConvertedStore:
        return convert(order_for(recording), self.scratch)


def with_sidecars(recording: DiscoveredRecording, **paths: object) -> DiscoveredRecording:
    return replace(recording, sidecars=Sidecars(**paths))  # type: ignore[arg-type]  # the caller names fields


def verdict_within(
    bench: Bench, small: DiscoveredRecording, recording: DiscoveredRecording, *, spare_bytes: int
) -> Verdict | None:
    """What converting ``recording`` with so little memory to spare ends in, after ``small`` with all it wants; None: it succeeds.

    In a process of its own: one that has run other tests holds freed memory, as much as a conversion needs.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_convert_within, bench, small, recording, spare_bytes).result()


def _convert_within(
    bench: Bench, small: DiscoveredRecording, recording: DiscoveredRecording, spare_bytes: int
) -> Verdict | None:
    # The first conversion loads and warms what later ones use: BLAS without room for its buffers ends the process.
    bench.convert(small)
    held = next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmData" in line).split()[1]
    limit = int(held) * 1024 + spare_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    try:
        bench.convert(recording)
    except Exception as error:  # noqa: BLE001 - the process boundary, as in a conversion's own child
        return classify(error)
    return None
