"""Made-up physiology: seeded, so that every machine writes the same demonstration.

Nothing here is a model of anything. The shapes are what an eye that knows such recordings expects: a 1/f spectrum, alpha
over the back of the head, mains hum, blinks, an evoked response, interictal spikes, bursts of muscle.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Samples = NDArray[np.float64]

__all__ = ["MAINS_HZ", "bursts", "coloured", "generator", "mains", "mixed", "pulses", "rhythm"]

MAINS_HZ = 50.0


def generator(name: str) -> np.random.Generator:
    """Give a random generator that belongs to ``name``, the same on every machine and in every process."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def coloured(rng: np.random.Generator, n_rows: int, n_samples: int, *, exponent: float = 1.0) -> Samples:
    """Noise whose power falls with frequency to the power ``exponent``: (n_rows, n_samples), unit variance."""
    spectrum = np.fft.rfft(rng.standard_normal((n_rows, n_samples)), axis=1)
    bins = np.arange(spectrum.shape[1], dtype=np.float64)
    # Below four bins the spectrum is held flat; otherwise one slow wave would be all that the recording shows.
    spectrum *= np.maximum(bins, 4.0) ** (-exponent / 2)
    spectrum[:, 0] = 0
    noise = np.fft.irfft(spectrum, n=n_samples, axis=1)
    return np.asarray(noise / noise.std(axis=1, keepdims=True))


def rhythm(rng: np.random.Generator, rate_hz: float, n_samples: int, *, centre_hz: float, width_hz: float) -> Samples:
    """One narrow-band rhythm that waxes and wanes: (n_samples,), unit variance."""
    spectrum = np.fft.rfft(rng.standard_normal(n_samples))
    frequencies = np.fft.rfftfreq(n_samples, 1 / rate_hz)
    spectrum *= np.exp(-0.5 * ((frequencies - centre_hz) / width_hz) ** 2)
    wave = np.fft.irfft(spectrum, n=n_samples)
    return np.asarray(wave / wave.std())


def mains(rng: np.random.Generator, n_rows: int, rate_hz: float, n_samples: int) -> Samples:
    """Hum of the power line with its third harmonic, another phase in each row: (n_rows, n_samples), amplitude about 1."""
    time_s = np.arange(n_samples) / rate_hz
    phase = rng.uniform(0, 2 * np.pi, (n_rows, 1))
    hum = np.sin(2 * np.pi * MAINS_HZ * time_s + phase)
    return np.asarray(hum + 0.2 * np.sin(2 * np.pi * 3 * MAINS_HZ * time_s + phase))


def mixed(rng: np.random.Generator, sources: Samples, positions: Samples) -> Samples:
    """Project sources to sensors so that neighbours resemble each other.

    Parameters
    ----------
    sources
        (n_sources, n_samples)
    positions
        (n_sensors, 3), on the unit sphere.

    Returns
    -------
    (n_sensors, n_samples), each row of unit variance.
    """
    places = rng.standard_normal((len(sources), 3))
    places /= np.linalg.norm(places, axis=1, keepdims=True)
    nearness = np.exp(-2.0 * np.linalg.norm(positions[:, None, :] - places[None, :, :], axis=2))
    sensors = nearness @ sources
    return np.asarray(sensors / sensors.std(axis=1, keepdims=True))


def pulses(rate_hz: float, n_samples: int, onsets_s: Sequence[float], *, delay_s: float, width_s: float) -> Samples:
    """One bell of height 1 at ``delay_s`` after each onset: (n_samples,)."""
    time_s = np.arange(n_samples) / rate_hz
    wave = np.zeros(n_samples)
    for onset_s in onsets_s:
        wave += np.exp(-0.5 * ((time_s - onset_s - delay_s) / width_s) ** 2)
    return wave


def bursts(
    rng: np.random.Generator, rate_hz: float, n_samples: int, intervals_s: Sequence[tuple[float, float]]
) -> Samples:
    """Muscle: noise between 20 and 400 Hz that is loud inside the intervals and faint outside: (n_samples,)."""
    spectrum = np.fft.rfft(rng.standard_normal(n_samples))
    frequencies = np.fft.rfftfreq(n_samples, 1 / rate_hz)
    spectrum[(frequencies < 20.0) | (frequencies > 400.0)] = 0
    wave = np.fft.irfft(spectrum, n=n_samples)
    time_s = np.arange(n_samples) / rate_hz
    loudness = np.full(n_samples, 0.03)
    for begin_s, end_s in intervals_s:
        edges = np.clip((time_s - begin_s) / 0.2, 0, 1) * np.clip((end_s - time_s) / 0.2, 0, 1)
        loudness += edges**2 * (3 - 2 * edges) ** 2
    return np.asarray(wave / wave.std() * loudness)
