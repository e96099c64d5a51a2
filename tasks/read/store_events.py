"""Events of one store from the store itself, where a dataset has no events.parquet."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from contract.samples import sample_index
from contract.store import VALUE_DESCRIPTIONS
from tasks.read.store import read_consistently

if TYPE_CHECKING:
    from contract.reading import ReadEntry, ReadGroup
    from tasks.read.place import Place
    from tasks.read.store import StoreReading

__all__ = ["event_columns", "read_store_events"]


def read_store_events(
    place: Place, dataset_id: str, entry: ReadEntry, group: ReadGroup, *, limit: int, offset: int
) -> tuple[list[dict[str, Any]], bool]:
    """Up to ``limit`` events behind the first ``offset``, and whether there are more.

    ``sample_index`` is computed here from the onset and the group's served rate, by the formula of the contract.
    """

    def work(reading: StoreReading) -> tuple[list[dict[str, Any]], bool]:
        if not reading.has("events"):
            return [], False
        labels = reading.metadata("events").get("attributes", {}).get("label_map", {})
        arrays = {name: reading.array(f"events/{name}") for name in ("onset", "duration", "code")}
        length = int(arrays["onset"].shape[0])
        end = min(length, offset + limit)
        part = {name: np.asarray(array[offset:end]).tolist() if offset < end else [] for name, array in arrays.items()}
        rows = [
            {
                "onset_s": _known(onset),
                "duration_s": _known(duration),
                "sample_index": sample_index(_known(onset), group.rate),
                "group_name": group.name,
                "trial_type": labels.get(str(code)),
            }
            for onset, duration, code in zip(part["onset"], part["duration"], part["code"], strict=True)
        ]
        return rows, length > offset + limit

    return read_consistently(place, dataset_id, entry.zarr, work)


def event_columns(reading: StoreReading, most: int) -> dict[str, Any] | None:
    """The first ``most`` events of a store as columns, with the texts of their codes; None when it has no events group.

    An onset that is not known is None.
    """
    if not reading.has("events"):
        return None
    attributes = reading.metadata("events").get("attributes", {})
    arrays = {name: reading.array(f"events/{name}") for name in ("onset", "duration", "code")}
    length = int(arrays["onset"].shape[0])
    end = min(length, most)
    columns = {name: np.asarray(array[:end]).tolist() if end else [] for name, array in arrays.items()}
    return {
        "onset": [_known(onset) for onset in columns["onset"]],
        "duration": [_known(duration) for duration in columns["duration"]],
        "code": columns["code"],
        "labels": attributes.get("label_map", {}),
        "descriptions": attributes.get(VALUE_DESCRIPTIONS) or {},
        "is_truncated": length > end,
    }


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
