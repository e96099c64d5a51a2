"""Every object of a store is, byte for byte, what biosigIO's in-memory route writes of the same recording."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from biosigio import Recording
from biosigio.bids import apply_channels_tsv
from ctf_files import continuous_ctf
from format_samples import bdf_bytes
from small_files import brainvision, edf_bytes, eeglab, eeglab_v73, fif, mefd
from written_store import write_engine_store

from tasks.convert.pieces import EngineInput, Rates
from tasks.formats import load
from tasks.formats.protocol import Header, RecordingFormat, Route

Written = Callable[[Path, Path], Path]

CHANNELS = pd.DataFrame(
    {
        # the last two name one channel: x * 1e-3 * 1e6 is not x * 1e3
        "name": ["A", "E2", "MEG0001", "ch01", "B-0", "Fp1", "EEG 001", "E1", "E1"],
        "type": ["EEG", "EOG", "MISC", "SEEG", "TRIG", "EEG", "EEG", "EEG", "EEG"],
        "units": ["mV", "nV", "fT", "mV", "V", "V", "nV", "mV", "nV"],
    }
)
EVENTS = pd.DataFrame({"onset": [1.5, 0.5], "duration": [0.0, 1.0], "description": ["b", "a"]})
ROUTES = {"held": (Route.IN_MEMORY, 2**30), "streamed": (Route.STREAMED, 2**30), "mapped": (Route.STREAMED, 0)}
OURS = ("note", "created_utc", "modality_rates", "recording_metadata")
WITHOUT_MEANING = ("filetype", "datarecord_duration", "file_duration", "number_of_signals", "source_file")


def noise(n_channels: int, n_samples: int, spread: float) -> np.ndarray:
    """Noise on constants that are 100,000 times as large: single precision would show."""
    rng = np.random.default_rng(0)
    return spread * (rng.normal(size=(n_channels, n_samples)) + 1e4 * np.arange(n_channels)[:, None])


def an_edf(folder: Path, **more: Any) -> Path:
    path = folder / "x.edf"
    data = np.random.default_rng(1).integers(-32768, 32768, size=(3, 8000))
    path.write_bytes(edf_bytes(["A", "B", "B"], per_record=[400] * 3, n_records=20, data=data, **more))
    return path


def a_bdf(folder: Path, _recordings: Path) -> Path:
    path = folder / "x.bdf"
    path.write_bytes(bdf_bytes())
    return path


def a_vhdr(folder: Path, *changes: tuple[str, str], kind: str = "<i2") -> Path:
    path = brainvision(folder, "x", noise(3, 8000, 0.3) % 3000, 400.0)
    text = path.read_text()
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path.write_text(text)
    samples = np.fromfile(folder / "x.eeg", "<i2").reshape(8000, 3)
    if kind != "<i2":
        wide = samples.astype("f8") * 40_000.0 + 0.3
        samples = wide.astype(kind)
    (samples.T if "VECTORIZED" in text else samples).tofile(folder / "x.eeg")
    return path


def a_gz(folder: Path, _recordings: Path) -> Path:
    path = folder / "x_meg.fif.gz"
    path.write_bytes(gzip.compress(fif(folder / "y_meg.fif", noise(3, 4000, 1e-12), 400.0).read_bytes()))
    return path


def a_split_fif(folder: Path, _recordings: Path) -> Path:
    fif(folder / "x_meg.fif", noise(80, 16000, 1e-12), 400.0, split_bytes="4MB")
    return folder / "x_split-01_meg.fif"


def a_fif(folder: Path, kind: str) -> Path:
    import mne

    info = mne.create_info(["MEG0001", "MEG0002"], 400.0, "mag")
    path = folder / "x_meg.fif"
    mne.io.RawArray(noise(2, 4000, 1e-12), info, verbose="ERROR").save(path, fmt=kind, verbose="ERROR")
    return path


def a_set(folder: Path, dtype: str, *, channels: int = 3, nested: bool = True, **more: Any) -> Path:
    """An uncompressed .set whose samples MATLAB keeps in ``dtype``, among fields that nobody looks at."""
    from scipy.io import savemat

    samples = (noise(channels, 8000, 0.3) % 3000).astype(dtype)
    fields = {
        "setname": "x",
        "icaact": samples * 2,
        "nbchan": float(channels),
        "trials": 1.0,
        "pnts": 8000.0,
        "srate": 400.0,
    }
    chanlocs = np.array([(f"E{i + 1}",) for i in range(channels)], dtype=[("labels", object)])
    events = np.array([(5.0, "go")] * 900, dtype=[("latency", object), ("type", object)])
    fields |= {
        "times": np.arange(80_000.0),
        "data": samples,
        "chanlocs": chanlocs,
        "event": events,
        "urevent": np.ones((9, 9000)),
    }
    savemat(folder / "x.set", {"EEG": fields} if nested else fields, **more)
    return folder / "x.set"


def a_v73_with_fdt(folder: Path, _recordings: Path) -> Path:
    import h5py

    path = eeglab_v73(folder / "x.set", noise(3, 8000, 0.3), 400.0)
    with h5py.File(path, "r+") as file:
        file["EEG"]["data"][...].astype("<f4").tofile(folder / "x.fdt")
        del file["EEG"]["data"]
        file["EEG"]["data"] = np.array([[ord(letter)] for letter in "old name.fdt"], np.uint16)
    return path


def a_renamed_vhdr(folder: Path, _recordings: Path) -> Path:
    path = brainvision(folder, "x", noise(3, 8000, 0.3) % 3000, 400.0, data_file="y.eeg")
    assert not (folder / "y.eeg").exists()
    return path


WRITTEN: dict[str, Written] = {
    "edf": lambda folder, _: an_edf(folder),
    "edf annotations": lambda _, recordings: recordings / "edf/test_utf8_annotations.edf",
    "edf many types": lambda _, recordings: recordings / "edf/chtypes_edf.edf",
    "edf unfinished": lambda folder, _: an_edf(folder, declared=-1),
    "edf flat": lambda folder, _: an_edf(folder, flat=["A"]),
    "bdf": a_bdf,
    "bdf annotations": lambda _, recordings: recordings / "bdf/multiple_annotation_chans.bdf",
    "brainvision": lambda folder, _: a_vhdr(folder),
    "brainvision renamed": a_renamed_vhdr,
    "brainvision vectorized": lambda folder, _: a_vhdr(folder, ("MULTIPLEXED", "VECTORIZED")),
    "brainvision int32": lambda folder, _: a_vhdr(folder, ("INT_16", "INT_32"), kind="<i4"),
    "brainvision float32": lambda folder, _: a_vhdr(folder, ("INT_16", "IEEE_FLOAT_32"), kind="<f4"),
    "brainvision real": lambda _, recordings: recordings / "brainvision/test_CA_208.vhdr",
    "eeglab": lambda folder, _: eeglab(folder / "x.set", noise(3, 8000, 0.3), 400.0),
    "eeglab fdt": lambda folder, _: eeglab(folder / "x.set", noise(3, 8000, 0.3), 400.0, fdt=True),
    "eeglab fdt flat": lambda folder, _: eeglab(
        folder / "x.set", noise(1, 8000, 0.3), 400.0, fdt=True, nested=False, compressed=False
    ),
    "eeglab fdt 7.3": a_v73_with_fdt,
    "eeglab single": lambda folder, _: a_set(folder, "f4"),
    "eeglab double": lambda folder, _: a_set(folder, "f8", channels=5),
    "eeglab int16": lambda folder, _: a_set(folder, "i2", channels=1),
    "eeglab flat": lambda folder, _: a_set(folder, "f4", nested=False),
    "eeglab flat compressed": lambda folder, _: a_set(folder, "f8", nested=False, do_compression=True),
    "eeglab 7.3": lambda folder, _: eeglab_v73(folder / "x.set", noise(3, 8000, 0.3), 400.0),
    "eeglab real": lambda _, recordings: recordings / "eeglab/test_raw.set",
    "fif": lambda folder, _: fif(folder / "x_meg.fif", noise(4, 8000, 1e-12), 400.0),
    "fif split": a_split_fif,
    "fif doubles": lambda folder, _: a_fif(folder, "double"),
    "fif int16": lambda folder, _: a_fif(folder, "short"),
    "fif compressed": a_gz,
    "fif real": lambda _, recordings: recordings / "fif/mgh70_raw.fif",
    "ctf": lambda folder, recordings: continuous_ctf(recordings, folder / "x.ds"),
    "kit": lambda _, recordings: recordings / "kit/MQKIT_125_2sec.con",
    "bti": lambda _, recordings: recordings / "bti/4Dsim",
    "mef3": lambda folder, _: mefd(folder / "x.mefd", noise(2, 8000, 20.0), 1600.0),
}


def objects(store: Path) -> dict[str, bytes]:
    return {p.relative_to(store).as_posix(): p.read_bytes() for p in store.rglob("*") if p.is_file()}


def told(content: bytes, name: str) -> dict[str, Any]:
    """What an object of metadata says, less what is listed in docs/fidelity.md as ours."""
    document: dict[str, Any] = json.loads(content)
    values = document.get("attributes", {})
    if name == "zarr.json":
        metadata = {k: v for k, v in values["recording_metadata"].items() if k not in WITHOUT_MEANING}
        document["attributes"] = {k: v for k, v in values.items() if k not in OURS} | {"metadata": metadata}
    return document


def theirs(target: Path, one: RecordingFormat, header: Header, modality: str, store: Path) -> dict[str, bytes]:
    """What the in-memory route of biosigIO writes, its rates in the terms of the exact ratio where they are not whole."""
    recording = Recording.from_file(str(target), importer=one.source_format, bids_channels="off")
    apply_channels_tsv(recording, CHANNELS)
    rates = Rates(header.rate_hz or 0.0, modality)
    exact = not float(rates.native_hz).is_integer()
    for channel in recording.channels.values():
        channel["modality"] = modality.upper()
        if exact:
            channel["sample_frequency"] = rates.ratio.denominator
    more = rates.options() if exact else {"exclude_subject_info": True}
    recording.to_zarr(str(store), events_df=EVENTS, **more)
    return objects(store)


@pytest.mark.parametrize("name", WRITTEN)
def test_every_object_is_biosigios_own(name: str, tmp_path: Path, recordings: Path) -> None:
    source = WRITTEN[name](tmp_path, recordings)
    one = load()[name.split(" ", 1)[0]]
    header = one.header(source)
    (tmp_path / "readable").mkdir()
    modality = "ieeg" if one.name == "mef3" else "eeg"
    target = one.read_target(source, header, tmp_path / "readable")
    wanted = theirs(target, one, header, modality, tmp_path / "theirs.zarr")
    whole = float(header.rate_hz or 0.0).is_integer()
    for way, (route, held_bytes) in ROUTES.items():
        if one.route(header) is Route.IN_MEMORY and way == "streamed":
            continue  # nothing streams it
        (tmp_path / way).mkdir()
        given = EngineInput(
            target=target,
            source_format=one.source_format,
            route=Route.IN_MEMORY if one.route(header) is Route.IN_MEMORY else route,
            header=header,
            modality=modality,
            channels=CHANNELS,
            events=EVENTS,
            scratch=tmp_path / way,
            held_bytes=held_bytes,
        )
        write_engine_store(given, tmp_path / f"{way}.zarr")
        assert sorted(p.name for p in given.scratch.iterdir()) == []
        ours = objects(tmp_path / f"{way}.zarr")
        expected = {_renamed(key, wanted, ours): content for key, content in wanted.items()}
        assert sorted(ours) == sorted(expected)
        for key, content in expected.items():
            if not key.endswith("zarr.json"):
                assert ours[key] == content, (way, key)
            elif whole:
                assert told(ours[key], key) == told(content, key), (way, key)


def _renamed(name: str, wanted: dict[str, bytes], ours: dict[str, bytes]) -> str:
    """The name of an object under the group that we name by its true rate."""
    (own,), (other,) = (json.loads(found["zarr.json"])["attributes"]["channel_groups"] for found in (ours, wanted))
    return name.replace(other, own, 1) if name.startswith(f"{other}/") else name
