"""Requests for exports of ``export_scene``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
from signal_store import DATASET, PATH, physical

from flows.export_request import ExportRequest
from infra.settings import Settings
from tasks.export.asked import ExportAsked

WINDOW = (-0.2, 0.3)


def settings_of(home: Path) -> Settings:
    return Settings(home=home)


def ask_for(place: str | Path, output: Path, **more: Any) -> ExportRequest:
    asked = {name: more.pop(name) for name in list(more) if name in ExportAsked.__dataclass_fields__}
    given: dict[str, Any] = {"dataset_id": DATASET, "recordings": (PATH,), "is_file": True, **more}
    return ExportRequest(place=str(place), output=output, asked=ExportAsked(**{"window_s": WINDOW, **asked}), **given)


def samples(file: Path) -> np.ndarray:
    with h5py.File(file) as opened:
        return opened["neuro"][()]


EXPECTED = np.stack([physical(2)[:, onset - 20 : onset + 30].T for onset in (200, 250, 399, 1190, 1210)])
