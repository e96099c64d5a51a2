"""Recordings worth looking at: a long dense EEG with eyes, alpha and events, and a short file of several rates and odd names."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from small_files import edf_bytes

LONG = "sub-01/eeg/sub-01_task-movie_eeg.edf"
MIXED = "sub-02/eeg/sub-02_task-rest_eeg.edf"
BROKEN = "sub-03/eeg/sub-03_task-rest_eeg.edf"
LONG_HZ, LONG_CHANNELS = 250, 129
HOSTILE = "<script>document.title='taken'</script>"
MIXED_LABELS = ("Fz", "<b>Oz</b>", "ECG", "Resp", "Status")
MIXED_COUNTS = (250, 250, 250, 50, 50)
MIXED_S = 60
_STEP_UV = 0.1


@dataclass(frozen=True)
class Cap:
    """A net of electrodes: labels, and positions in metres, (channels, 3)."""

    labels: tuple[str, ...]
    places: np.ndarray


def cap() -> Cap:
    """Electrodes spread evenly over the upper head, E1 to E128 and Cz."""
    count = LONG_CHANNELS - 1
    height = 1 - 1.22 * (np.arange(count) + 0.8) / count
    turn = np.arange(count) * np.pi * (3 - np.sqrt(5))
    ring = np.sqrt(1 - height**2)
    places = np.stack([ring * np.cos(turn), ring * np.sin(turn), height], 1)
    labels = (*(f"E{number + 1}" for number in range(count)), "Cz")
    return Cap(labels, 0.095 * np.vstack([places, [0, 0, 1]]))


def brain(seconds: int) -> np.ndarray:
    """Microvolts of a made-up head, (channels, samples): waves, blinks, muscle, a noisy and a flat channel."""
    rng = np.random.default_rng(7)
    count, head = LONG_HZ * seconds, cap().places / 0.095
    times = np.arange(count, dtype=np.float32) / LONG_HZ
    sources, weights = [], []

    def add(source: np.ndarray, centre: tuple[float, float, float], width: float) -> None:
        near = np.exp(-((head - np.array(centre)) ** 2).sum(1) / (2 * width**2))
        sources.append(source.astype(np.float32))
        weights.append(near.astype(np.float32))

    for _ in range(14):
        place = rng.normal(size=3)
        add(6 * _pink(rng, count), tuple(place / np.linalg.norm(place)), 0.55)
    waxing = np.clip(_slow(rng, count, 0.15), 0, None)
    add(14 * waxing * np.sin(2 * np.pi * 10.2 * times + 0.6 * _slow(rng, count, 0.4)), (0, -0.9, 0.3), 0.6)
    add(_blinks(rng, count), (0, 1.0, -0.1), 0.42)
    for side in (-0.95, 0.95):
        add(9 * np.clip(_slow(rng, count, 0.3) - 0.8, 0, None) * rng.normal(size=count), (side, 0.2, -0.2), 0.3)
    signal = np.stack(weights, 1) @ np.stack(sources)
    signal += 1.4 * rng.standard_normal(signal.shape, dtype=np.float32)
    signal += (rng.normal(0, 40, len(head)))[:, None].astype(np.float32)
    signal[16] += (60 * rng.standard_normal(count, dtype=np.float32)) * (_slow(rng, count, 0.05) > 0)
    signal[47] = 0
    return signal


def _pink(rng: np.random.Generator, count: int) -> np.ndarray:
    waves = np.fft.rfft(rng.normal(size=count))
    rates = np.fft.rfftfreq(count, 1 / LONG_HZ)
    shaped = np.fft.irfft(waves / np.maximum(rates, 0.4) ** 0.9, count)
    return shaped / shaped.std()


def _slow(rng: np.random.Generator, count: int, rate_hz: float) -> np.ndarray:
    knots = max(4, int(count / LONG_HZ * rate_hz * 2))
    return np.interp(np.linspace(0, knots - 1, count), np.arange(knots), rng.normal(size=knots))


def _blinks(rng: np.random.Generator, count: int) -> np.ndarray:
    shape = 110 * np.hanning(int(0.32 * LONG_HZ))
    blinks = np.zeros(count, np.float32)
    at = 0.0
    while (start := int(at * LONG_HZ)) + len(shape) < count:
        blinks[start : start + len(shape)] += shape * rng.uniform(0.7, 1.2)
        at += rng.gamma(3, 1.3)
    return blinks


def write_viewer_dataset(folder: Path, *, long_s: int = 2400) -> None:
    """A dataset of three recordings: long and dense, of several rates, and cut off."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {"Name": "Looked at", "BIDSVersion": "1.10.0", "License": "CC0"}
    (folder / "dataset_description.json").write_text(json.dumps(about))
    _write_long(folder, long_s)
    mixed = _write_mixed(folder)
    (folder / BROKEN).parent.mkdir(parents=True)
    (folder / BROKEN).write_bytes(mixed[: len(mixed) // 2])


def _write_long(folder: Path, seconds: int) -> None:
    net, stem = cap(), folder / LONG.removesuffix("_eeg.edf")
    stem.parent.mkdir(parents=True)
    digital = np.clip(np.round(brain(seconds) / _STEP_UV), -32768, 32767).astype(np.int16)
    counts = [LONG_HZ] * LONG_CHANNELS
    stem.with_name(f"{stem.name}_eeg.edf").write_bytes(
        edf_bytes(net.labels, per_record=counts, n_records=seconds, data=digital)
    )
    _write(stem, "channels.tsv", "name\ttype\tunits", *(f"{label}\tEEG\tuV" for label in net.labels))
    rng, rows, at = np.random.default_rng(11), [], 1.5
    kinds = ("scene/face", "scene/house", "scene/tool", "response", HOSTILE)
    while at < seconds - 1:
        kind = rng.choice(5, p=[0.3, 0.3, 0.2, 0.19, 0.01])
        rows.append(f"{at:.3f}\t{0.0 if kind == 3 else 0.8}\t{kinds[kind]}")
        at += float(rng.gamma(6, 0.5))
    _write(stem, "events.tsv", "onset\tduration\ttrial_type", *rows, "n/a\t0.8\tresponse")
    places = (f"{label}\t{x:.4f}\t{y:.4f}\t{z:.4f}" for label, (x, y, z) in zip(net.labels, net.places, strict=True))
    _write(stem.with_name("sub-01"), "electrodes.tsv", "name\tx\ty\tz", *places)
    _write(stem.with_name("sub-01"), "coordsystem.json", json.dumps(
        {"EEGCoordinateSystem": "CapTrak", "EEGCoordinateUnits": "m", "EEGCoordinateSystemDescription": "made up"}
    ))  # fmt: skip
    _write(stem, "eeg.json", json.dumps({"TaskName": "movie", "PowerLineFrequency": 60}))


def _write_mixed(folder: Path) -> bytes:
    stem = folder / MIXED.removesuffix("_eeg.edf")
    stem.parent.mkdir(parents=True)
    rng = np.random.default_rng(3)
    data = np.zeros((len(MIXED_LABELS), max(MIXED_COUNTS) * MIXED_S), np.int16)
    for row, per_s in enumerate(MIXED_COUNTS):
        times = np.arange(per_s * MIXED_S) / per_s
        data[row, : len(times)] = 700 * np.sin(2 * np.pi * (0.3 + 1.7 * row) * times) + rng.normal(0, 90, len(times))
    steps = np.repeat(rng.integers(0, 5, MIXED_S), MIXED_COUNTS[-1])
    data[-1, : len(steps)] = 1000 * steps
    edf = edf_bytes(MIXED_LABELS, per_record=MIXED_COUNTS, n_records=MIXED_S, data=data)
    stem.with_name(f"{stem.name}_eeg.edf").write_bytes(edf)
    kinds = (("EEG", "uV"), ("EEG", "uV"), ("ECG", "uV"), ("RESP", "n/a"), ("TRIG", "n/a"))
    _write(
        stem,
        "channels.tsv",
        "name\ttype\tunits",
        *(f"{label}\t{kind}\t{unit}" for label, (kind, unit) in zip(MIXED_LABELS, kinds, strict=True)),
    )
    _write(stem, "events.tsv", "onset\tduration\ttrial_type", f"10\t2\t{HOSTILE}", "20.5\t0\tgo", "40\tn/a\tgo")
    return edf


def _write(stem: Path, name: str, *lines: str) -> None:
    stem.with_name(f"{stem.name}_{name}").write_text("\n".join(lines) + "\n", encoding="utf-8")
