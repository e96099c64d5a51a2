"""Writers of the formats in the demonstration. Each gives the same bytes for the same samples, whenever and wherever."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Samples = NDArray[np.float64]

__all__ = ["STARTED_UTC", "Signal", "write_bdf", "write_brainvision", "write_edf", "write_eeglab", "write_split_fif"]

STARTED_UTC = datetime(2021, 3, 4, 9, 30, tzinfo=UTC)
"""When every recording of the demonstration is said to have begun."""

_MAT_HEADER_BYTES = 116
_EEGLAB_EMPTY = (
    "icaact", "icawinv", "icasphere", "icaweights", "icachansind", "urchanlocs",
    "urevent", "eventdescription", "epoch", "epochdescription", "reject", "stats",
)  # fmt: skip
_FIFF_ID_STRUCT = 31
_FIFF_DIR_POINTER = 101
_FIFF_REF_FILE_NAME = 118
_NO_DIRECTORY = b"\xff\xff\xff\xff"
_FIFF_SPLIT_RESERVE = 1_048_576
"""What MNE keeps free in each split for the pointer to the next one, whatever the size asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """Samples of one recording.

    Parameters
    ----------
    labels, types
        One per row; BIDS channel types.
    unit
        Unit of every row, as the format writes it.
    data
        (n_channels, n_samples)
    positions
        (n_channels, 3), millimetres; NaN rows where a channel has no place.
    """

    labels: tuple[str, ...]
    types: tuple[str, ...]
    unit: str
    rate_hz: float
    data: Samples
    positions: Samples | None = None


def write_edf(path: Path, signal: Signal, *, limit: float) -> None:
    """Write EDF+C with 16-bit samples between minus and plus ``limit``, in the signal's unit."""
    _write_european(path, signal, limit=limit, bits=16)


def write_bdf(path: Path, signal: Signal, *, limit: float) -> None:
    """Write BDF+C with 24-bit samples between minus and plus ``limit``, in the signal's unit."""
    _write_european(path, signal, limit=limit, bits=24)


def _write_european(path: Path, signal: Signal, *, limit: float, bits: int) -> None:
    import pyedflib

    top = 2 ** (bits - 1) - 1
    started: Any = STARTED_UTC.replace(tzinfo=None)  # pyedflib's annotation knows text and numbers only
    kind = pyedflib.FILETYPE_EDFPLUS if bits == 16 else pyedflib.FILETYPE_BDFPLUS
    writer = pyedflib.EdfWriter(str(path), len(signal.labels), file_type=kind)
    try:
        writer.setHeader({
            "technician": "",
            "recording_additional": "made up",
            "patientname": "X",
            "patient_additional": "",
            "patientcode": "X",
            "equipment": "zarrmill",
            "admincode": "",
            "sex": "",
            "startdate": started,
            "birthdate": "",
        })  # fmt: skip
        for row, label in enumerate(signal.labels):
            writer.setSignalHeader(row, {
                "label": label,
                "dimension": signal.unit,
                "sample_frequency": signal.rate_hz,
                "physical_min": -limit,
                "physical_max": limit,
                "digital_min": -top - 1,
                "digital_max": top,
                "transducer": "",
                "prefilter": "HP:0.1Hz",
            })  # fmt: skip
        writer.writeSamples(list(np.clip(signal.data, -limit, limit)))
    finally:
        writer.close()


def write_brainvision(
    header: Path, signal: Signal, *, markers: Sequence[tuple[str, float]] = (), resolution: float
) -> None:
    """Write .vhdr, .vmrk and a multiplexed 16-bit .eeg with steps of ``resolution`` in the signal's unit."""
    data_file, marker_file = header.with_suffix(".eeg"), header.with_suffix(".vmrk")
    codes = np.clip(np.round(signal.data / resolution), -32768, 32767).astype("<i2")
    data_file.write_bytes(np.ascontiguousarray(codes.T).tobytes())
    lines = [
        "Brain Vision Data Exchange Header File Version 1.0",
        "; made up by zarrmill demo",
        "",
        "[Common Infos]",
        "Codepage=UTF-8",
        f"DataFile={data_file.name}",
        f"MarkerFile={marker_file.name}",
        "DataFormat=BINARY",
        "DataOrientation=MULTIPLEXED",
        f"NumberOfChannels={len(signal.labels)}",
        f"SamplingInterval={1e6 / signal.rate_hz:g}",
        "",
        "[Binary Infos]",
        "BinaryFormat=INT_16",
        "",
        "[Channel Infos]",
        *(f"Ch{i}={label},,{resolution:g},{signal.unit}" for i, label in enumerate(signal.labels, start=1)),
        "",
    ]
    header.write_text("\n".join(lines), encoding="utf-8")
    first = f"Mk1=New Segment,,1,1,0,{STARTED_UTC:%Y%m%d%H%M%S}000000"
    rest = [
        f"Mk{i}=Stimulus,{code},{round(onset_s * signal.rate_hz) + 1},1,0"
        for i, (code, onset_s) in enumerate(markers, start=2)
    ]
    common = ["[Common Infos]", "Codepage=UTF-8", f"DataFile={data_file.name}", "", "[Marker Infos]"]
    text = ["Brain Vision Data Exchange Marker File, Version 1.0", "", *common, first, *rest, ""]
    marker_file.write_text("\n".join(text), encoding="utf-8")


def write_eeglab(path: Path, signal: Signal, *, fdt: bool, trials: int = 1, epoch_start_s: float = 0.0) -> None:
    """Write an EEGLAB .set, its samples beside it in a .fdt or inside; cut into ``trials`` epochs when more than one."""
    from scipy.io import savemat

    n_channels, n_samples = signal.data.shape
    points = n_samples // trials
    samples = signal.data[:, : points * trials].astype("<f4")
    if fdt:
        path.with_suffix(".fdt").write_bytes(samples.T.tobytes())
        data: Any = path.with_suffix(".fdt").name
    else:
        data = samples if trials == 1 else samples.reshape(n_channels, trials, points).transpose(0, 2, 1)
    nothing = np.zeros((0, 0))
    struct_ = {
        "setname": path.stem,
        "filename": path.name,
        "filepath": "",
        "subject": "",
        "group": "",
        "condition": "",
        "comments": "made up by zarrmill demo",
        "nbchan": float(n_channels),
        "trials": float(trials),
        "pnts": float(points),
        "srate": signal.rate_hz,
        "xmin": epoch_start_s,
        "xmax": epoch_start_s + (points - 1) / signal.rate_hz,
        "times": (epoch_start_s + np.arange(points) / signal.rate_hz) * 1000.0,
        "data": data,
        "datfile": data if fdt else "",
        "chanlocs": _eeglab_channels(signal),
        "ref": "common",
        "event": _eeglab_events(points, trials, -epoch_start_s * signal.rate_hz),
        "saved": "yes",
        **dict.fromkeys(_EEGLAB_EMPTY, nothing),
    }
    buffer = io.BytesIO()
    savemat(buffer, {"EEG": struct_}, do_compression=False, oned_as="row")
    content = bytearray(buffer.getvalue())
    # SciPy writes the time of day into the file's description.
    content[:_MAT_HEADER_BYTES] = b"MATLAB 5.0 MAT-file, made up by zarrmill demo".ljust(_MAT_HEADER_BYTES)
    path.write_bytes(bytes(content))


def _eeglab_channels(signal: Signal) -> NDArray[Any]:
    """EEGLAB's chanlocs: +X towards the nose, +Y towards the left ear, where BIDS has RAS."""
    fields = ("labels", "type", "X", "Y", "Z")
    rows = np.zeros((1, len(signal.labels)), dtype=[(name, object) for name in fields])
    for i, (label, kind) in enumerate(zip(signal.labels, signal.types, strict=True)):
        place = signal.positions[i] if signal.positions is not None else np.full(3, np.nan)
        here = [np.zeros((0, 0))] * 3 if np.isnan(place).any() else [place[1], -place[0], place[2]]
        rows[0, i] = (label, kind, *here)
    return rows


def _eeglab_events(points: int, trials: int, origin: float) -> NDArray[Any]:
    """One event per epoch at its time zero; none in a continuous file."""
    if trials == 1:
        return np.zeros((0, 0))
    rows = np.zeros((1, trials), dtype=[(name, object) for name in ("type", "latency", "epoch")])
    for i in range(trials):
        rows[0, i] = ("standard" if i % 4 else "target", float(i * points + origin + 1), float(i + 1))
    return rows


def write_split_fif(
    folder: Path, stem: str, suffix: str, signal: Signal, *, places: Samples, first_bytes: int
) -> list[Path]:
    """Write a MEG recording in two files, ``<stem>_split-01_<suffix>.fif`` and 02; their paths.

    ``places`` is (n_channels, 12): position and axes of each sensor as FIFF has them, metres. The first file holds about
    ``first_bytes`` of samples.
    """
    import mne

    kinds = {"MEGMAG": "mag", "MEGGRADPLANAR": "grad", "TRIG": "stim", "EOG": "eog"}
    with mne.utils.use_log_level("ERROR"):
        info = mne.create_info(list(signal.labels), signal.rate_hz, [kinds[t] for t in signal.types])
        for channel, place in zip(info["chs"], places, strict=True):
            channel["loc"][:] = place
        raw = mne.io.RawArray(signal.data, info)
        raw.set_meas_date(STARTED_UTC)
        whole = folder / f"{stem}_{suffix}.fif"
        raw.save(whole, split_size=_FIFF_SPLIT_RESERVE + first_bytes, split_naming="bids", buffer_size_sec=1.0)
    written = sorted(folder.glob(f"{stem}_split-*_{suffix}.fif"))
    for path in written:
        path.write_bytes(_without_machine(path.read_bytes()))
    return written


def _without_machine(content: bytes) -> bytes:
    """Give FIFF whose tags name no machine, moment or folder: MNE writes a network card's address and the path of the first split."""
    out, at = bytearray(), 0
    while at < len(content):
        kind, type_, size, following = struct.unpack_from(">iIii", content, at)
        value = content[at + 16 : at + 16 + size]
        if type_ == _FIFF_ID_STRUCT:
            value = value[:4] + struct.pack(">4i", 0, 0, int(STARTED_UTC.timestamp()), 0)
        elif kind == _FIFF_REF_FILE_NAME:
            value = value.rpartition(b"/")[2]
        elif (kind == _FIFF_DIR_POINTER and value != _NO_DIRECTORY) or following > 0:
            raise ValueError("FIFF with a directory: its tags cannot be made shorter in place")
        out += struct.pack(">iIii", kind, type_, len(value), following) + value
        at += 16 + size
    return bytes(out)
