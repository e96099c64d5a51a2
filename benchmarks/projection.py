"""Measured over projected memory, by format and route, over recordings of growing size that are converted in real children.

For each kind, recordings are written by the writers of the tests, each is converted by the real conversion in a child of its own, and the
child's peak above its birth is set against the formula of ``tasks/formats``. The fit is what a non-negative least squares over relative
errors would choose for the formula's terms: C channels, N source samples, M served samples, S of a shard. With
``--recordings FOLDER`` (what ZARRMILL_RECORDINGS names) every real recording below it is converted too, and CTF, KIT and 4D/BTi recordings whose samples
stand there many times over; the last lines say what a plan would have learnt. A child is looked at fifty times a second, five times as often as in a
run, so that a peak of short conversions is not missed.

    python benchmarks/projection.py [--json] [--quick] [--only FORMAT] [--recordings FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import small_files
from conversion import order_for, recording_at
from ctf_files import CHANNELS, COUNTS, TRIAL_SAMPLES, clock_row, continuous_ctf
from scipy.optimize import nnls
from vneurotk_files import write_vneurotk

from contract.layout import SHARD_SECONDS
from contract.rates import served_rate
from infra.cluster import child_environment
from tasks.bids.discovery import discover_source
from tasks.convert.child import ChildLostError, ChildPool, ChildRaisedError
from tasks.formats import load
from tasks.formats.protocol import Route
from tasks.plan.learning import learn
from tasks.plan.projection import project
from tasks.sources import open_source

PERMITTED_BYTES = 12 << 30
SIZES = [(c, s, r) for c, s, r in ((4, 10, 250), (16, 60, 500), (32, 300, 500), (64, 60, 1000), (64, 600, 1000), (128, 300, 1000), (256, 120, 1000), (8, 1800, 2000), (32, 10, 30_000))]  # fmt: skip
QUICK = [(4, 10, 250), (16, 60, 500), (64, 60, 1000)]
Writer = Callable[[Path, int, int, int], Path]


@dataclass(frozen=True)
class Point:
    """One conversion."""

    kind: str
    name: str
    route: str
    channels: int
    samples: int
    rate_hz: float
    served_rate_hz: float
    formula_bytes: int
    measured_bytes: int
    seconds: float

    @property
    def ratio(self) -> float:
        """Measured over projected."""
        return self.measured_bytes / self.formula_bytes


def _noise(channels: int, samples: int) -> np.ndarray:
    return np.random.default_rng(channels + samples).normal(0, 40, size=(channels, samples)).astype(np.float32)


def _edf(path: Path, channels: int, seconds: int, rate: int, **more: object) -> Path:
    target = path.with_suffix(".edf")
    data = (_noise(channels, seconds * rate) * 10).astype("<i2")
    labels = [f"E{i}" for i in range(channels)]
    target.write_bytes(
        small_files.edf_bytes(labels, per_record=[rate] * channels, n_records=seconds, data=data, **more)
    )  # type: ignore[arg-type]  # options of the writer
    return target


def _bdf(path: Path, channels: int, seconds: int, rate: int) -> Path:
    import pyedflib

    target = path.with_suffix(".bdf")
    with pyedflib.EdfWriter(str(target), channels, file_type=pyedflib.FILETYPE_BDF) as writer:
        for at in range(channels):
            writer.setSignalHeader(at, {"label": f"E{at}", "dimension": "uV", "sample_frequency": rate, "physical_min": -3000, "physical_max": 3000, "digital_min": -8388608, "digital_max": 8388607, "transducer": "", "prefilter": ""})  # fmt: skip
        writer.writeSamples(list(_noise(channels, seconds * rate).astype(np.float64)))
    return target


def _brainvision(path: Path, channels: int, seconds: int, rate: int) -> Path:
    return small_files.brainvision(path.parent, path.name, _noise(channels, seconds * rate), rate)


def _fif(path: Path, channels: int, seconds: int, rate: int) -> Path:
    return small_files.fif(path.with_suffix(".fif"), _noise(channels, seconds * rate) * 1e-14, rate)


def _fdt(path: Path, channels: int, seconds: int, rate: int) -> Path:
    return small_files.eeglab(path.with_suffix(".set"), _noise(channels, seconds * rate), rate, fdt=True)


def _set(path: Path, channels: int, seconds: int, rate: int) -> Path:
    return small_files.eeglab(path.with_suffix(".set"), _noise(channels, seconds * rate), rate, compressed=False)


def _h5(path: Path, channels: int, seconds: int, rate: int) -> Path:
    return small_files.eeglab_v73(path.with_suffix(".set"), _noise(channels, seconds * rate), rate)


def _mef3(path: Path, channels: int, seconds: int, rate: int) -> Path:
    return small_files.mefd(path.with_suffix(".mefd"), (_noise(channels, seconds * rate) * 10).astype(np.int32), rate)


def _unfinalised(path: Path, channels: int, seconds: int, rate: int) -> Path:
    return _edf(path, channels, seconds, rate, declared=-1)


def _vneurotk(chunk_bytes: int = 1 << 20, *, by_channel: bool = False) -> Writer:
    def write(path: Path, channels: int, seconds: int, rate: int) -> Path:
        data = _noise(channels, seconds * rate)
        rows = data.shape[1] if by_channel else max(1, chunk_bytes // (4 * channels))
        return write_vneurotk(path.with_suffix(".h5"), data, float(rate), chunks=(rows, 1 if by_channel else channels))

    return write


KINDS: dict[str, tuple[str, str, Writer]] = {
    "edf": ("edf", "eeg", _edf),
    "edf, unfinalised": ("edf", "eeg", _unfinalised),
    "vneurotk": ("vneurotk", "eeg", _vneurotk()),
    "vneurotk, a chunk a channel": ("vneurotk", "eeg", _vneurotk(by_channel=True)),
    "vneurotk, one chunk": ("vneurotk", "eeg", _vneurotk(1 << 31)),
    "bdf": ("bdf", "eeg", _bdf),
    "brainvision": ("brainvision", "eeg", _brainvision),
    "fif": ("fif", "meg", _fif),
    "eeglab, .fdt": ("eeglab", "eeg", _fdt),
    "eeglab, embedded": ("eeglab", "eeg", _set),
    "eeglab, 7.3": ("eeglab", "eeg", _h5),
    "mef3": ("mef3", "ieeg", _mef3),
}


def convert(pool: ChildPool, scratch: Path, recording: object, kind: str) -> Point | str:
    """Convert what lies below ``scratch/source``; why not, when it could not be converted."""
    one = load()[recording.format]  # type: ignore[attr-defined]  # a DiscoveredRecording
    primary = scratch / "source" / recording.path  # type: ignore[attr-defined]
    try:
        header = one.header(primary)
        size = sum(p.stat().st_size for p in (scratch / "source").rglob("*") if p.is_file())
        modality = recording.modality  # type: ignore[attr-defined]
        needs = project(one, header, size, modality)
        order = order_for(recording)  # type: ignore[arg-type]
        result = pool.run(
            "tasks.convert.recording:convert",
            order,
            scratch,
            permitted_bytes=PERMITTED_BYTES,
            timeout_s=1800,
            in_memory=needs.route is Route.IN_MEMORY,
            explain="tasks.convert.verdict:classify",
        )
    except (ChildRaisedError, ChildLostError) as error:
        return str(error)[:120]
    except Exception as error:  # noqa: BLE001 - a header that refuses says why
        return f"{type(error).__name__}: {error}"[:120]
    if result.measured_bytes is None or header.rate_hz is None:
        return "not measured"
    return Point(
        kind=kind,
        name=recording.path,  # type: ignore[attr-defined]
        route=needs.route.value,
        channels=header.n_channels or 0,
        samples=header.n_samples or 0,
        rate_hz=header.rate_hz,
        served_rate_hz=served_rate(header.rate_hz, modality),
        formula_bytes=needs.floor_bytes or needs.projected_bytes,
        measured_bytes=result.measured_bytes,
        seconds=sum(result.value.stage_seconds.values()),
    )


def synthetic(pool: ChildPool, folder: Path, only: str | None, sizes: list[tuple[int, int, int]]) -> Iterator[Point]:
    """Every kind at every size."""
    for kind, (name, modality, write) in KINDS.items():
        if only is not None and name != only:
            continue
        for channels, seconds, rate in sizes:
            scratch = folder / uuid4().hex
            parent = scratch / "source" / "sub-01" / modality
            parent.mkdir(parents=True)
            path = write(parent / f"sub-01_task-rest_{modality}", channels, seconds, rate)
            recording = recording_at(path.relative_to(scratch / "source").as_posix(), name, modality)
            point = convert(pool, scratch, recording, kind)
            shutil.rmtree(scratch)
            if isinstance(point, str):
                print(f"{kind} {channels} x {seconds} s at {rate} Hz: {point}", file=sys.stderr)
            else:
                yield point


def real(pool: ChildPool, folder: Path, recordings: Path) -> Iterator[Point]:
    """Every recording that discovery finds when each file or folder is put under a BIDS name."""
    names = {".edf": "eeg", ".bdf": "eeg", ".vhdr": "eeg", ".set": "eeg", ".fif": "meg", ".ds": "meg", ".con": "meg", ".mefd": "ieeg"}  # fmt: skip
    for path in sorted(recordings.rglob("*")):
        modality = names.get(path.suffix.lower(), "meg" if (path / "config").is_file() else None)
        if (
            modality is None
            or any(part.endswith(".ds") for part in path.relative_to(recordings).parts[:-1])
            or "ct_sparse" in path.name
        ):
            continue
        scratch = folder / uuid4().hex
        stem = f"sub-01_task-rest_{modality}"
        parent = scratch / "source" / "sub-01" / modality
        parent.mkdir(parents=True)
        (scratch / "source" / "dataset_description.json").write_text('{"Name": "x", "BIDSVersion": "1.8.0"}')
        if path.is_dir():
            shutil.copytree(path, parent / (stem + path.suffix))
        elif path.suffix == ".vhdr":
            for other in path.parent.glob(path.stem + ".*"):
                shutil.copy(other, parent / other.name)
            (parent / path.name).rename(parent / (stem + ".vhdr"))
        else:
            shutil.copy(path, parent / (stem + path.suffix))
            if path.with_suffix(".fdt").exists():
                shutil.copy(path.with_suffix(".fdt"), parent / (stem + ".fdt"))
        found = discover_source(open_source(str(scratch / "source"))).recordings
        for recording in found[:1]:
            point = convert(pool, scratch, recording, f"real {recording.format}")
            if isinstance(point, str):
                print(f"{path.relative_to(recordings)}: {point}", file=sys.stderr)
            else:
                yield Point(**{**asdict(point), "name": path.relative_to(recordings).as_posix()})
        shutil.rmtree(scratch)


def _long_ctf(recordings: Path, parent: Path, times: int) -> Path:
    folder = continuous_ctf(recordings, parent / "sub-01_task-rest_meg.ds")
    row, path = clock_row(folder / f"{folder.stem}.res4"), folder / f"{folder.stem}.meg4"
    data = path.read_bytes()
    trials = np.frombuffer(data[8:], ">i4").reshape(-1, CHANNELS, TRIAL_SAMPLES)
    many = np.tile(trials, (times, 1, 1))
    many[:, row] = int(trials[0, row, 0]) + COUNTS * np.arange(len(many) * TRIAL_SAMPLES).reshape(-1, TRIAL_SAMPLES)
    path.write_bytes(data[:8] + many.tobytes())
    return folder


def _long_kit(recordings: Path, parent: Path, times: int) -> Path:
    data = bytearray((recordings / "kit" / "MQKIT_125_2sec.con").read_bytes())
    (acquisition,), (raw,) = (struct.unpack_from("<i", data, 16 * entry) for entry in (8, 9))
    (n_samples,) = struct.unpack_from("<i", data, acquisition + 16)
    struct.pack_into("<i", data, acquisition + 16, n_samples * times)
    path = parent / "sub-01_task-rest_meg.con"
    path.write_bytes(data[:raw] + bytes(data[raw:]) * times)
    return path


def _long_bti(recordings: Path, parent: Path, times: int) -> Path:
    folder = parent / "sub-01_task-rest_meg"
    shutil.copytree(recordings / "bti" / "4Dsim", folder, copy_function=shutil.copyfile)
    folder.chmod(0o755)
    path = folder / "c,rfDC"
    data = path.read_bytes()
    (position,) = struct.unpack(">q", data[-8:])
    position &= 2**31 - 1
    position += -position % 8
    head = bytearray(data[position:])
    at = struct.calcsize(">h5sxhhiiiif16sih") + 38
    at += -(position + at) % 8
    (n_samples,) = struct.unpack_from(">i", head, at)
    struct.pack_into(">i", head, at, n_samples * times)
    samples = data[:position] * times
    samples += bytes(-len(samples) % 8)
    path.write_bytes(samples + bytes(head[:-8]) + struct.pack(">q", len(samples)))
    return folder


LONG: dict[str, tuple[Callable[[Path, Path, int], Path], tuple[int, ...]]] = {
    "ctf": (_long_ctf, (1, 6, 30)),
    "kit": (_long_kit, (5, 20, 60)),
    "bti": (_long_bti, (20, 200, 1000)),
}


def lengthened(pool: ChildPool, folder: Path, recordings: Path, only: str | None) -> Iterator[Point]:
    """Real recordings with their samples many times over."""
    for name, (write, all_times) in LONG.items():
        for times in all_times if only in {None, name} else ():
            scratch = folder / uuid4().hex
            parent = scratch / "source" / "sub-01" / "meg"
            parent.mkdir(parents=True)
            path = write(recordings, parent, times)
            (scratch / "source" / "dataset_description.json").write_text('{"Name": "x", "BIDSVersion": "1.8.0"}')
            [recording] = discover_source(open_source(str(scratch / "source"))).recordings
            point = convert(pool, scratch, recording, f"{name}, long")
            shutil.rmtree(scratch)
            if isinstance(point, str):
                print(f"{path.name} {times} times: {point}", file=sys.stderr)
            else:
                yield point


def fit(points: list[Point]) -> dict[str, float]:
    """Coefficients of the formula's terms, none negative, that make the relative errors least."""

    def terms(p: Point) -> list[float]:
        served = p.samples * p.served_rate_hz / p.rate_hz
        if p.route == Route.IN_MEMORY.value:
            return [1.0, p.channels * p.samples, p.channels * served]
        return [1.0, p.channels * min(served, SHARD_SECONDS * p.served_rate_hz), p.samples]

    names = ["fixed", "C N", "C M"] if points[0].route == Route.IN_MEMORY.value else ["fixed", "C S", "N"]
    measured = np.array([p.measured_bytes for p in points], dtype=float)
    matrix = np.array([terms(p) for p in points], dtype=float) / measured[:, None]
    scale = matrix.max(axis=0)
    coefficients, _ = nnls(matrix / scale, np.ones(len(points)))
    return dict(zip(names, (coefficients / scale).tolist(), strict=True))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", metavar="FORMAT")
    parser.add_argument("--recordings", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    pool = ChildPool(child_environment(dict(os.environ)), max_served=1, poll_s=0.02)
    points: list[Point] = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            for point in synthetic(pool, Path(folder), given.only, QUICK if given.quick else SIZES):
                points.append(point)
                _print(point)
            for point in lengthened(pool, Path(folder), given.recordings, given.only) if given.recordings else ():
                points.append(point)
                _print(point)
            for point in real(pool, Path(folder), given.recordings) if given.recordings and not given.only else ():
                points.append(point)
                _print(point)
    finally:
        pool.close()
    kinds: dict[tuple[str, str], list[Point]] = defaultdict(list)
    for point in points:
        kinds[point.kind, point.route].append(point)
    summary = [_summary(kind, route, of_kind) for (kind, route), of_kind in kinds.items()]
    if given.json:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        print(json.dumps({"commit": commit, "points": [asdict(point) for point in points], "kinds": summary}))
        return
    print(f"\n{'kind':20} {'route':10} {'n':>3} {'median':>7} {'largest':>8}  fit")
    for row in summary:
        fitted = ", ".join(
            f"{name} {value / 2**20:.0f} MiB" if name == "fixed" else f"{value:.1f} {name}"
            for name, value in row["fit"].items()
        )
        print(f"{row['kind']:20} {row['route']:10} {row['n']:3} {row['median']:7.2f} {row['largest']:8.2f}  {fitted}")


def _summary(kind: str, route: str, points: list[Point]) -> dict[str, object]:
    ratios = [point.ratio for point in points]
    taught = learn(ratios)
    return {
        "kind": kind,
        "route": route,
        "n": len(points),
        "median": statistics.median(ratios),
        "largest": max(ratios),
        "factor": None if taught is None else taught.factor,
        "fit": fit(points) if len(points) > 3 else {},
    }


def _print(point: Point) -> None:
    print(
        f"{point.kind:20} {point.route:10} {point.channels:4} x {point.samples / point.rate_hz:7.1f} s at {point.rate_hz:7g} Hz "
        f"{point.measured_bytes / 2**20:8.1f} of {point.formula_bytes / 2**20:8.1f} MiB {point.ratio:6.2f}",
        file=sys.stderr,
        flush=True,
    )


if __name__ == "__main__":
    main()
