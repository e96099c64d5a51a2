"""The demonstration dataset as a whole: twelve recordings of seven people, three of which cannot be served."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.called import program
from cli.demo import recordings, text
from cli.demo.formats import Signal, write_bdf, write_brainvision, write_edf, write_eeglab, write_split_fif
from cli.demo.sidecars import write_channels, write_electrodes, write_json, write_table, write_text
from contract.codes import FailureCode
from contract.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["COLLIDING", "PLANTED_FAILURES", "UNTIMED_EVENT", "ensure_dataset", "write_dataset"]

PLANTED_FAILURES = {
    "sub-03/eeg/sub-03_task-oddball_eeg.set": FailureCode.NOT_CONTINUOUS,
    "sub-07/eeg/sub-07_task-rest_eeg.edf": FailureCode.CORRUPT_OR_TRUNCATED,
}
"""Recordings whose own files make them impossible to serve."""

COLLIDING = ("sub-01/eeg/sub-01_task-rest_eeg.edf", "sub-01/eeg/sub-01_task-rest_eeg.set")
"""Two files that claim one store. One is served; the other fails with ``store_path_collision``."""

UNTIMED_EVENT = "sub-01/eeg/sub-01_task-oddball_events.tsv"
"""The events.tsv with an onset of ``n/a``."""

_MARK = "zarrmill demo"
_EEG_S, _MEG_S, _IEEG_S, _EMG_S = 40.0, 20.0, 30.0, 20.0
_ONSETS_S = tuple(2.0 + 1.5 * i for i in range(24))
_TARGETS_S = _ONSETS_S[3::4]


def ensure_dataset(folder: Path) -> bool:
    """Make sure that ``folder`` holds the demonstration; True when it was written now.

    A demonstration that stands there already is left as it is, with whatever somebody changed in it to see what happens.

    Raises
    ------
    Refused
        ``folder`` holds something else.
    """
    if folder.is_dir() and any(folder.iterdir()):
        if _is_ours(folder):
            return False
        raise Refused(f"{folder} holds something else; name another folder: {program()} demo FOLDER")
    if folder.exists() and not folder.is_dir():
        raise Refused(f"{folder} is no folder; name another one: {program()} demo FOLDER")
    # Written beside and renamed, so that a command killed half way never leaves a dataset that looks whole.
    beside = folder.absolute().with_name(f".{folder.absolute().name}.{os.getpid()}.partial")
    try:
        write_dataset(beside)
        beside.replace(folder.absolute())
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return True


def _is_ours(folder: Path) -> bool:
    try:
        facts = json.loads((folder / "dataset_description.json").read_text(encoding="utf-8"))
        return any(made["Name"] == _MARK for made in facts["GeneratedBy"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def write_dataset(folder: Path) -> None:
    """Write the whole dataset below ``folder``: the same bytes each time.

    The dataset: EEG as EDF, BrainVision and EEGLAB; MEG as FIF in two files; iEEG as EDF; EMG as EDF and BDF.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _write_root(folder)
    _write_scalp_edf(folder)
    _write_scalp_brainvision(folder)
    _write_scalp_eeglab(folder)
    _write_meg(folder)
    _write_ieeg(folder)
    _write_emg(folder)
    _write_truncated(folder)


def _write_root(root: Path) -> None:
    write_json(root / "dataset_description.json", text.DESCRIPTION | {"GeneratedBy": [{"Name": _MARK, "Version": "1"}]})
    write_text(root / "README", text.README)
    write_text(root / "CHANGES", text.CHANGES)
    write_table(root / "participants.tsv", ("participant_id", "age", "sex", "hand"), text.PARTICIPANTS)
    write_json(root / "participants.json", text.PARTICIPANT_COLUMNS)
    # Inherited by every resting and every oddball recording below, whoever made it.
    write_json(root / "task-rest_eeg.json", text.EEG | {"TaskName": "rest", "TaskDescription": "Eyes closed, sitting."})
    write_json(
        root / "task-oddball_eeg.json", text.EEG | {"TaskName": "oddball", "TaskDescription": "Press at rare tones."}
    )
    write_json(root / "task-oddball_events.json", text.EVENT_COLUMNS)


def _folder(root: Path, subject: str, kind: str) -> tuple[Path, str]:
    place = root / f"sub-{subject}" / kind
    place.mkdir(parents=True, exist_ok=True)
    return place, f"sub-{subject}"


def _describe_scalp(place: Path, stem: str, signal: Signal, *, further: dict[str, Any] | None = None) -> None:
    """Write channels.tsv and the part of the JSON that the root's file cannot say for everybody."""
    n_eeg, n_eog = signal.types.count("EEG"), signal.types.count("VEOG")
    own = {"SamplingFrequency": signal.rate_hz, "EEGChannelCount": n_eeg, "EOGChannelCount": n_eog}
    duration = {"RecordingType": "continuous", "RecordingDuration": signal.data.shape[1] / signal.rate_hz}
    write_json(place / f"{stem}_eeg.json", own | duration | (further or {}))
    write_channels(place / f"{stem}_channels.tsv", signal)


def _write_places(place: Path, subject: str, signal: Signal) -> None:
    write_electrodes(place / f"{subject}_electrodes.tsv", signal)
    write_json(place / f"{subject}_coordsystem.json", text.SCALP_COORDINATES)


def _oddball_events(path: Path, *, untimed: bool = False) -> None:
    rows: list[Sequence[object]] = [
        (
            onset_s,
            0.1,
            "target" if onset_s in _TARGETS_S else "standard",
            0.31 + 0.007 * i if onset_s in _TARGETS_S else None,
        )
        for i, onset_s in enumerate(_ONSETS_S)
    ]
    if untimed:
        rows.insert(5, (None, None, "instruction", None))
    write_table(path, ("onset", "duration", "trial_type", "response_time"), rows)


def _write_scalp_edf(root: Path) -> None:
    place, subject = _folder(root, "01", "eeg")
    rest = recordings.eeg("sub-01 rest", rate_hz=256.0, duration_s=_EEG_S)
    write_edf(root / COLLIDING[0], rest, limit=800.0)
    # Left behind by somebody who looked at the recording in EEGLAB and saved it beside the original.
    write_eeglab(root / COLLIDING[1], rest, fdt=False)
    _describe_scalp(place, f"{subject}_task-rest", rest)
    oddball = recordings.eeg("sub-01 oddball", rate_hz=256.0, duration_s=_EEG_S, targets_s=_TARGETS_S)
    write_edf(place / f"{subject}_task-oddball_eeg.edf", oddball, limit=800.0)
    _describe_scalp(place, f"{subject}_task-oddball", oddball)
    _oddball_events(root / UNTIMED_EVENT, untimed=True)
    _write_places(place, subject, rest)


def _write_scalp_brainvision(root: Path) -> None:
    place, subject = _folder(root, "02", "eeg")
    for task, targets_s in (("rest", ()), ("oddball", _TARGETS_S)):
        signal = recordings.eeg(f"sub-02 {task}", rate_hz=500.0, duration_s=_EEG_S / 2, targets_s=targets_s)
        signal = replace(signal, unit="µV")
        stem = f"{subject}_task-{task}"
        markers = [("S  1", onset_s) for onset_s in targets_s if onset_s < _EEG_S / 2 - 1]
        write_brainvision(place / f"{stem}_eeg.vhdr", signal, markers=markers, resolution=0.1)
        _describe_scalp(place, stem, signal)
        if markers:
            rows = [(onset_s, 0.1, "target", None) for _, onset_s in markers]
            write_table(place / f"{stem}_events.tsv", ("onset", "duration", "trial_type", "response_time"), rows)
    _write_places(place, subject, signal)


def _write_scalp_eeglab(root: Path) -> None:
    place, subject = _folder(root, "03", "eeg")
    rest = recordings.eeg("sub-03 rest", rate_hz=250.0, duration_s=_EEG_S)
    write_eeglab(place / f"{subject}_task-rest_eeg.set", rest, fdt=True)
    _describe_scalp(place, f"{subject}_task-rest", rest)
    epochs = recordings.eeg(
        "sub-03 oddball", rate_hz=250.0, duration_s=24.0, targets_s=[1.2 * i + 0.2 for i in range(20)]
    )
    write_eeglab(place / f"{subject}_task-oddball_eeg.set", epochs, fdt=False, trials=20, epoch_start_s=-0.2)
    _describe_scalp(place, f"{subject}_task-oddball", epochs, further={"RecordingType": "epoched", "EpochLength": 1.2})
    _write_places(place, subject, rest)


def _write_meg(root: Path) -> None:
    place, subject = _folder(root, "04", "meg")
    signal, stem = recordings.meg("sub-04 rest", rate_hz=500.0, duration_s=_MEG_S), f"{subject}_task-rest"
    write_split_fif(place, stem, "meg", signal, places=recordings.meg_places(), first_bytes=700_000)
    units = {"MEGGRADPLANAR": "T/m", "MEGMAG": "T", "TRIG": "V"}
    write_channels(place / f"{stem}_channels.tsv", signal, units=[units[kind] for kind in signal.types])
    write_json(
        place / f"{stem}_meg.json", text.MEG | {"SamplingFrequency": signal.rate_hz, "RecordingDuration": _MEG_S}
    )
    seconds = range(1, int(_MEG_S), 2)
    rows = [(float(second), 0.05, "left" if second % 4 == 1 else "right", 1 + second % 4 // 2) for second in seconds]
    write_table(place / f"{stem}_events.tsv", ("onset", "duration", "trial_type", "value"), rows)
    write_json(place / f"{subject}_coordsystem.json", text.HEAD_COORDINATES)


def _write_ieeg(root: Path) -> None:
    place, subject = _folder(root, "05", "ieeg")
    signal, stem = recordings.ieeg("sub-05 rest", rate_hz=512.0, duration_s=_IEEG_S), f"{subject}_task-rest"
    write_edf(place / f"{stem}_ieeg.edf", signal, limit=1600.0)
    groups = [label[:2] for label in signal.labels]
    write_channels(place / f"{stem}_channels.tsv", signal, extra={"group": groups})
    write_json(
        place / f"{stem}_ieeg.json", text.IEEG | {"SamplingFrequency": signal.rate_hz, "RecordingDuration": _IEEG_S}
    )
    space = f"{subject}_space-MNI152NLin2009cAsym"
    write_electrodes(place / f"{space}_electrodes.tsv", signal, sizes_mm2=5.0)
    write_json(place / f"{space}_coordsystem.json", text.MNI_COORDINATES)


def _write_emg(root: Path) -> None:
    place, subject = _folder(root, "06", "emg")
    for run, suffix, write in (("01", "edf", write_edf), ("02", "bdf", write_bdf)):
        signal, stem = (
            recordings.emg(f"sub-06 run-{run}", rate_hz=1024.0, duration_s=_EMG_S),
            f"{subject}_task-grip_run-{run}",
        )
        write(place / f"{stem}_emg.{suffix}", signal, limit=3200.0)
        n_channels = len(signal.labels)
        columns = {
            "target_muscle": text.MUSCLES,
            "reference": ["olecranon"] * n_channels,
            "group": ["forearm"] * n_channels,
        }
        write_channels(place / f"{stem}_channels.tsv", signal, extra=columns)
        write_json(
            place / f"{stem}_emg.json", text.EMG | {"SamplingFrequency": signal.rate_hz, "RecordingDuration": _EMG_S}
        )
        rows = [(begin_s, end_s - begin_s, "grip") for begin_s, end_s in recordings.GRIPS_S]
        write_table(place / f"{stem}_events.tsv", ("onset", "duration", "trial_type"), rows)


def _write_truncated(root: Path) -> None:
    """Write a recording whose copy ended early: the header promises what the file does not hold."""
    place, subject = _folder(root, "07", "eeg")
    signal = recordings.eeg("sub-07 rest", rate_hz=256.0, duration_s=_EEG_S)
    path = place / f"{subject}_task-rest_eeg.edf"
    write_edf(path, signal, limit=800.0)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 5 // 9 + 1])
    _describe_scalp(place, f"{subject}_task-rest", signal)
