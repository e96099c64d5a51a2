"""Small recordings in every format that can be written with what is installed, each from plain arrays."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np


def tones(n_channels: int, n_samples: int, rate_hz: float) -> np.ndarray:
    """A different tone and phase in each channel, in about 100 units."""
    t = np.arange(n_samples) / rate_hz
    return np.stack([100 * np.sin(2 * np.pi * (3 + i) * t + i) for i in range(n_channels)])


def edf_bytes(
    labels: Sequence[str] = ("A", "B"),
    *,
    per_record: Sequence[int] | None = None,
    n_records: int = 4,
    declared: int | None = None,
    record_s: str = "1",
    reserved: str = "",
    flat: Sequence[str] = (),
    pad: bytes = b" ",
    data: np.ndarray | None = None,
) -> bytes:
    """An EDF whose samples are ``data`` (channels x all samples, int16); one rate unless ``per_record`` says otherwise."""
    counts = list(per_record or [100] * len(labels))

    def field(text: str, width: int) -> bytes:
        return text.encode("latin-1").ljust(width, pad)

    count = len(labels)
    head = b"".join(
        [
            b"0       ",
            field("X X X X", 80),
            field("Startdate X X X X", 80),
            b"01.01.2001.01.01",
            field(str(256 * (count + 1)), 8),
            field(reserved, 44),
            field(str(n_records if declared is None else declared), 8),
            field(record_s, 8),
            field(str(count), 4),
        ]
    )
    columns = [
        [field(label, 16) for label in labels],
        [field("", 80)] * count,
        [field("uV", 8)] * count,
        [field("0" if label in flat else "-3276.8", 8) for label in labels],
        [field("0" if label in flat else "3276.7", 8) for label in labels],
        [field("-32768", 8)] * count,
        [field("32767", 8)] * count,
        [field("HP:0.1Hz", 80)] * count,
        [field(str(samples), 8) for samples in counts],
        [field("", 32)] * count,
    ]
    header = head + b"".join(b"".join(column) for column in columns)
    records = []
    for record in range(n_records):
        for channel, samples in enumerate(counts):
            if data is None:
                part = np.arange(samples) * (channel + 1) % 997 * 7
            else:
                part = data[channel, record * samples : (record + 1) * samples]
            records.append(part.astype("<i2").tobytes())
    return header + b"".join(records)


def brainvision(folder: Path, stem: str, data_uv: np.ndarray, rate_hz: float, *, data_file: str | None = None) -> Path:
    """A multiplexed INT_16 BrainVision triple with a resolution of 0.1 uV; the .vhdr."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"E{i + 1}" for i in range(len(data_uv))]
    lines = [
        "Brain Vision Data Exchange Header File Version 1.0",
        "[Common Infos]",
        f"DataFile={data_file or stem + '.eeg'}",
        f"MarkerFile={stem}.vmrk",
        "DataFormat=BINARY",
        "DataOrientation=MULTIPLEXED",
        f"NumberOfChannels={len(names)}",
        f"SamplingInterval={1e6 / rate_hz:.6f}",
        "[Binary Infos]",
        "BinaryFormat=INT_16",
        "[Channel Infos]",
        *(f"Ch{i + 1}={name},,0.1,µV" for i, name in enumerate(names)),
    ]
    header = folder / f"{stem}.vhdr"
    header.write_text("\n".join(lines) + "\n", encoding="utf-8")
    marker = (
        "Brain Vision Data Exchange Marker File, Version 1.0\n[Common Infos]\n[Marker Infos]\nMk1=New Segment,,1,1,0\n"
    )
    (folder / f"{stem}.vmrk").write_text(marker, encoding="utf-8")
    np.round(data_uv / 0.1).astype("<i2").T.tofile(folder / f"{stem}.eeg")
    return header


def eeglab(
    path: Path,
    data_uv: np.ndarray,
    rate_hz: float,
    *,
    trials: int = 1,
    fdt: bool = False,
    compressed: bool = True,
    nested: bool = True,
) -> Path:
    """A MATLAB 5 .set; ``trials`` cut the samples into equal epochs, ``fdt`` puts them beside."""
    from scipy.io import savemat

    path.parent.mkdir(parents=True, exist_ok=True)
    channels, samples = data_uv.shape
    points = samples // trials
    single = data_uv[:, : points * trials].astype(np.float32)
    labels = np.array([(f"E{i + 1}",) for i in range(channels)], dtype=[("labels", object)])
    stored: object = single if trials == 1 else single.reshape(channels, points, trials, order="F")
    if fdt:
        single.T.tofile(path.with_suffix(".fdt"))
        stored = path.with_suffix(".fdt").name
    fields = {
        "setname": "x",
        "nbchan": float(channels),
        "trials": float(trials),
        "pnts": float(points),
        "srate": float(rate_hz),
        "xmin": 0.0,
        "xmax": (points - 1) / (rate_hz or 1.0),
        "times": np.arange(points) / (rate_hz or 1.0) * 1000.0,
        "data": stored,
        "chanlocs": labels,
        "event": np.empty((0, 0)),
    }
    savemat(path, {"EEG": fields} if nested else fields, do_compression=compressed)
    return path


def eeglab_v73(path: Path, data_uv: np.ndarray, rate_hz: float, *, trials: int = 1) -> Path:
    """A MATLAB 7.3 (HDF5) .set with embedded samples."""
    import h5py

    path.parent.mkdir(parents=True, exist_ok=True)
    channels, samples = data_uv.shape
    points = samples // trials
    with h5py.File(path, "w", userblock_size=512) as file:
        group = file.create_group("EEG")
        for name, value in (("nbchan", channels), ("pnts", points), ("trials", trials), ("srate", rate_hz)):
            group[name] = np.array([[float(value)]])
        matrix = data_uv.astype(np.float32)[:, : points * trials].T
        group["data"] = matrix if trials == 1 else matrix.reshape(trials, points, channels)
    with path.open("r+b") as file:
        file.write(
            b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Mon Jan 01 00:00:00 2001 HDF5 schema 1.00 .".ljust(
                124
            )
        )
        file.write(b"\x00\x02IM")
    return path


def fif(path: Path, data_t: np.ndarray, rate_hz: float, *, split_bytes: str | None = None, kind: str = "raw") -> Path:
    """A FIF of magnetometers; ``split_bytes`` as MNE's split_size; ``kind`` may be raw, epochs or evoked."""
    import mne

    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        info = mne.create_info([f"MEG{i:04d}" for i in range(len(data_t))], rate_hz, "mag")
        raw = mne.io.RawArray(data_t, info, verbose="ERROR")
        if kind == "raw":
            raw.save(path, split_size=split_bytes or "2GB", split_naming="bids", buffer_size_sec=1.0, verbose="ERROR")
            return path
        epochs = mne.make_fixed_length_epochs(raw, duration=1.0, preload=True, verbose="ERROR")
        if kind == "epochs":
            epochs.save(path, verbose="ERROR")
        else:
            mne.write_evokeds(path, epochs.average(picks="all"), verbose="ERROR")
    return path


def shielded(path: Path) -> Path:
    """The FIF at ``path`` with its raw block renamed to what an actively shielded acquisition writes."""
    data = path.read_bytes()
    for kind in (104, 105):
        tag = struct.pack(">iIii", kind, 3, 4, 0)
        assert data.count(tag + struct.pack(">i", 102)) == 1
        data = data.replace(tag + struct.pack(">i", 102), tag + struct.pack(">i", 119))
    path.write_bytes(data)
    return path


def vectorview(path: Path, calibration: Path, n_samples: int, rate_hz: float, *, sensors: int = 306) -> Path:
    """An empty-room FIF of the first sensors whose places a fine-calibration file gives."""
    import mne

    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [line.split() for line in calibration.read_text().splitlines() if line.strip() and not line.startswith("#")][
        :sensors
    ]
    names = [f"MEG{int(row[0]):04d}" for row in rows]
    kinds = ["mag" if name.endswith("1") else "grad" for name in names]
    info = mne.create_info(names, rate_hz, kinds)
    for channel, row in zip(info["chs"], rows, strict=True):
        channel["loc"] = np.array([float(cell) for cell in row[1:13]])
        channel["coil_type"] = 3024 if channel["ch_name"].endswith("1") else 3012
    noise = np.random.default_rng(0).normal(size=(len(names), n_samples))
    noise *= np.where(np.array(kinds) == "mag", 1e-13, 1e-12)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mne.io.RawArray(noise, info, verbose="ERROR").save(path, buffer_size_sec=1.0, verbose="ERROR")
    return path


def mefd(path: Path, data: np.ndarray, rate_hz: float, *, patient: str = "n") -> Path:
    """An unencrypted MEF3 session of int32 samples in uV; ``patient`` is what every field about one says."""
    from pymef.mef_session import MefSession

    path.mkdir(parents=True)
    start = 1_700_000_000_000_000
    session = MefSession(str(path), "", read_metadata=False)
    zero = dict.fromkeys(
        (
            "acquisition_channel_number",
            "start_sample",
            "number_of_blocks",
            "maximum_block_bytes",
            "maximum_block_samples",
            "maximum_difference_bytes",
            "block_interval",
            "number_of_discontinuities",
            "maximum_contiguous_blocks",
            "maximum_contiguous_block_bytes",
            "maximum_contiguous_samples",
        ),
        0,
    )
    filters = dict.fromkeys(
        ("notch_filter_frequency_setting", "low_frequency_filter_setting", "high_frequency_filter_setting"), 0.0
    )
    about = ("subject_name_1", "subject_name_2", "subject_ID", "recording_location")
    told = dict.fromkeys(about, patient.encode())
    clock = dict.fromkeys(("recording_time_offset", "DST_start_time", "DST_end_time", "GMT_offset"), 0)
    try:
        for index, row in enumerate(np.asarray(data, dtype="int32")):
            label = f"ch{index + 1:02d}"
            described = {
                "channel_description": b"c",
                "session_description": b"s",
                "reference_description": b"r",
                "recording_duration": 1,
                "sampling_frequency": rate_hz,
                "AC_line_frequency": 60,
                "units_conversion_factor": 1.0,
                "units_description": b"uV",
                "maximum_native_sample_value": float(row.max()),
                "minimum_native_sample_value": float(row.min()),
                "number_of_samples": len(row),
                **zero,
                **filters,
            }
            end = int(start + 1e6 * len(row) / rate_hz)
            session.write_mef_ts_segment_metadata(label, 0, "", "", start, end, described, {**clock, **told})
            session.write_mef_ts_segment_data(label, 0, "", "", int(rate_hz), row)
    finally:
        session.close()
    return path
