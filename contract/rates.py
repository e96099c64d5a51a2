"""Up to which rate a modality is served."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RATE_CAPS_HZ", "served_rate"]

RATE_CAPS_HZ: Mapping[str, float] = MappingProxyType({"EEG": 250.0, "MEG": 250.0, "IEEG": 1000.0, "EMG": 1000.0})
"""Caps by modality, as biosigIO spells them. iEEG is SEEG, ECoG and DBS alike; a modality without a cap is native."""


def served_rate(native_hz: float, modality: str | None) -> float:
    """The rate of level 0: the native rate or the modality's cap, whichever is lower. Nothing is upsampled.

    ``modality`` in any case; None and unknown modalities have no cap (store contract, "rate caps").
    """
    cap = RATE_CAPS_HZ.get(modality.upper()) if modality else None
    return native_hz if cap is None else min(native_hz, cap)
