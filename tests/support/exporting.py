"""Exports of the one recording of ``export_scene``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
from signal_store import (
    DATASET,
    PATH,
)

from tasks.export.asked import ExportAsked
from tasks.export.recording import Exported, export_recording
from tasks.read.index import read_index
from tasks.read.place import Place
from tasks.vneurotk.typed_scalars import TypedScalars

WINDOW = (-0.2, 0.3)
KEPT = [1, 2, 3, 4, 5]
"""Events of the scene whose window of that length lies in the signal."""


def export(place: Place, file: Path, **asked: Any) -> Exported:
    return export_recording(place, read_index(place, DATASET), PATH, ExportAsked(**asked), file)


def texts(file: h5py.File, name: str) -> list[Any]:
    return TypedScalars.read(file[name], most=1000).decode(missing=True)


@dataclass
class Told:
    key: str
    opened: Any
    told: Any

    @property
    def size_bytes(self) -> int:
        return self.opened.size_bytes

    @property
    def etag(self) -> str:
        return self.opened.etag

    def read(self, start: int, length: int) -> bytes:
        self.told(self.key, start, length)
        data: bytes = self.opened.read(start, length)
        return data

    def close(self) -> None:
        self.opened.close()


def listening_to(place: Place, told: Any) -> Place:
    """A place that tells each read of an object before it is done."""

    def open_object(key: str) -> Told | None:
        opened = place.open_object(key)
        return None if opened is None else Told(key, opened, told)

    return Place(place.url, open_object, place.catalog_key)
