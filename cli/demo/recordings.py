"""The signals of the demonstration, one function a modality."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cli.demo.formats import Signal
from cli.demo.signals import bursts, coloured, generator, mains, mixed, pulses, rhythm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Samples = NDArray[np.float64]

__all__ = ["GRIPS_S", "SCALP", "eeg", "emg", "ieeg", "meg", "meg_places"]

SCALP = {
    "Fp1": (-92, -72), "Fp2": (92, 72), "F7": (-92, -36), "F3": (-60, -51), "Fz": (46, 90), "F4": (60, 51), "F8": (92, 36),
    "T7": (-92, 0), "C3": (-46, 0), "Cz": (0, 0), "C4": (46, 0), "T8": (92, 0), "P7": (-92, 36), "P3": (-60, 51),
    "Pz": (46, -90), "P4": (60, -51), "P8": (92, -36), "O1": (-92, 72), "O2": (92, -72),
}  # fmt: skip
"""The 10-20 places: inclination from the vertex and azimuth, degrees."""

_HEAD_MM = 92.0
_HELMET_M = 0.12
GRIPS_S = ((3.0, 5.0), (8.0, 10.5), (14.0, 16.0))
_MUSCLES = ("FCR", "FDS", "ECR", "EDC")


def scalp_positions() -> Samples:
    """Give the 10-20 places on the unit sphere, RAS: (19, 3)."""
    angles = np.radians(np.array(list(SCALP.values()), dtype=np.float64))
    inclination, azimuth = angles[:, 0], angles[:, 1]
    x, y = np.sin(inclination) * np.cos(azimuth), np.sin(inclination) * np.sin(azimuth)
    return np.stack([x, y, np.cos(inclination)], axis=1)


def eeg(name: str, *, rate_hz: float, duration_s: float, targets_s: Sequence[float] = ()) -> Signal:
    """Nineteen scalp channels and one of the eye, µV: 1/f, alpha behind, hum, blinks, a P300 after each target."""
    rng, n_samples = generator(name), round(duration_s * rate_hz)
    places = scalp_positions()
    data = 9.0 * mixed(rng, coloured(rng, 12, n_samples), places) + 1.5 * coloured(
        rng, len(places), n_samples, exponent=0.5
    )
    behind = np.clip(0.3 - places[:, 1], 0, None)[:, None]
    data += 14.0 * behind * rhythm(rng, rate_hz, n_samples, centre_hz=10.2, width_hz=0.6)
    data += 0.8 * mains(rng, len(places), rate_hz, n_samples)
    over_pz = np.exp(-2.0 * np.linalg.norm(places - places[list(SCALP).index("Pz")], axis=1))[:, None]
    data += 11.0 * over_pz * pulses(rate_hz, n_samples, targets_s, delay_s=0.36, width_s=0.07)
    blinks_s = np.cumsum(rng.uniform(2.5, 6.0, size=int(duration_s / 3)))
    eye = pulses(rate_hz, n_samples, blinks_s.tolist(), delay_s=0.0, width_s=0.06)
    data += 70.0 * np.clip(places[:, 1] - 0.4, 0, None)[:, None] * eye
    eog = 160.0 * eye + 6.0 * coloured(rng, 1, n_samples)
    return Signal(
        labels=(*SCALP, "VEOG"),
        types=("EEG",) * len(SCALP) + ("VEOG",),
        unit="uV",
        rate_hz=rate_hz,
        data=np.concatenate([data, eog]),
        positions=np.concatenate([_HEAD_MM * places, np.full((1, 3), np.nan)]),
    )


def ieeg(name: str, *, rate_hz: float, duration_s: float) -> Signal:
    """Two depth electrodes of six contacts, µV: 1/f, hum, and spikes that reverse between neighbouring contacts."""
    rng, n_samples, n_contacts = generator(name), round(duration_s * rate_hz), 6
    labels = tuple(f"{shaft}{i}" for shaft in ("LA", "LH") for i in range(1, n_contacts + 1))
    data = 28.0 * coloured(rng, len(labels), n_samples, exponent=1.6) + 2.0 * mains(
        rng, len(labels), rate_hz, n_samples
    )
    spikes_s = np.cumsum(rng.uniform(1.2, 4.0, size=int(duration_s / 2.5))).tolist()
    sharp = pulses(rate_hz, n_samples, spikes_s, delay_s=0.0, width_s=0.012)
    slow = pulses(rate_hz, n_samples, spikes_s, delay_s=0.12, width_s=0.05)
    field = np.array([60, 220, 380, -260, -90, -30] + [0] * n_contacts, dtype=np.float64)[:, None]
    data += field * (sharp - 0.35 * slow)
    along = 3.5 * np.arange(n_contacts)
    amygdala = np.stack([-22 - along, np.full(n_contacts, -4.0), np.full(n_contacts, -19.0)], axis=1)
    hippocampus = amygdala + np.array([-3.0, -18.0, 3.0])
    return Signal(
        labels=labels,
        types=("SEEG",) * len(labels),
        unit="uV",
        rate_hz=rate_hz,
        data=data,
        positions=np.concatenate([amygdala, hippocampus]),
    )


def emg(name: str, *, rate_hz: float, duration_s: float) -> Signal:
    """Four muscles of the forearm, µV: quiet, and bursts while the hand grips."""
    rng, n_samples = generator(name), round(duration_s * rate_hz)
    strengths = (180.0, 240.0, 90.0, 60.0)
    grips = [grip for grip in GRIPS_S if grip[1] < duration_s]
    data = np.stack([strength * bursts(rng, rate_hz, n_samples, grips) for strength in strengths])
    data += 1.5 * mains(rng, len(_MUSCLES), rate_hz, n_samples)
    return Signal(labels=_MUSCLES, types=("EMG",) * len(_MUSCLES), unit="uV", rate_hz=rate_hz, data=data)


def meg(name: str, *, rate_hz: float, duration_s: float) -> Signal:
    """Ten sites of two planar gradiometers (T/m) and a magnetometer (T), with a trigger channel: 1/f, alpha, hum."""
    rng, n_samples, n_sites = generator(name), round(duration_s * rate_hz), 10
    sites = _helmet(n_sites)
    field = mixed(rng, coloured(rng, 10, n_samples), np.repeat(sites, 3, axis=0))
    behind = np.repeat(np.clip(0.5 - sites[:, 1], 0, None), 3)[:, None]
    field += 1.4 * behind * rhythm(rng, rate_hz, n_samples, centre_hz=9.8, width_hz=0.6)
    field += 0.15 * mains(rng, 3 * n_sites, rate_hz, n_samples) + 0.2 * coloured(
        rng, 3 * n_sites, n_samples, exponent=0.0
    )
    scale = np.tile([4e-12, 4e-12, 2e-13], n_sites)[:, None]
    trigger = np.zeros((1, n_samples))
    for second in range(1, int(duration_s), 2):
        at = round(second * rate_hz)
        trigger[0, at : at + round(0.05 * rate_hz)] = 1 + second % 4 // 2
    return Signal(
        labels=(*(f"MEG{site:03d}{last}" for site in range(11, 11 + n_sites) for last in (2, 3, 1)), "STI101"),
        types=("MEGGRADPLANAR", "MEGGRADPLANAR", "MEGMAG") * n_sites + ("TRIG",),
        unit="T",
        rate_hz=rate_hz,
        data=np.concatenate([scale * field, trigger]),
    )


def _helmet(n_sites: int) -> Samples:
    """Places spread over the upper half of the unit sphere: (n_sites, 3)."""
    turn = np.arange(n_sites) * np.pi * (3 - 5**0.5)
    height = np.linspace(0.95, 0.1, n_sites)
    radius = np.sqrt(1 - height**2)
    return np.stack([radius * np.cos(turn), radius * np.sin(turn), height], axis=1)


def meg_places() -> Samples:
    """Position and axes of each channel of :func:`meg` as FIFF has them, metres: (31, 12)."""
    sites = _helmet(10)
    east = np.cross([0.0, 0.0, 1.0], sites)
    east /= np.linalg.norm(east, axis=1, keepdims=True)
    north = np.cross(sites, east)
    along = np.concatenate([_HELMET_M * sites, east, north, sites], axis=1)
    across = np.concatenate([_HELMET_M * sites, north, -east, sites], axis=1)
    return np.concatenate([np.stack([along, across, along], axis=1).reshape(-1, 12), np.zeros((1, 12))])
