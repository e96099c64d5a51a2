"""What a file says of where it comes from: the attributes of ``neuro_info``. What is not known is "unknown", never guessed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from contract.layout import store_url

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contract.reading import ReadEntry
    from contract.recipe_making import Selection
    from tasks.read.index import ReadIndex

__all__ = ["UNKNOWN", "channel_facts", "dataset_facts", "store_facts"]

UNKNOWN = "unknown"
_FILTERS = {
    "highpass": re.compile(r"\bHP:\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*Hz"),
    "lowpass": re.compile(r"\bLP:\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*Hz"),
}


def dataset_facts(index: ReadIndex, entry: ReadEntry) -> dict[str, Any]:
    """What the index says of the dataset and of the recording."""
    head = index.head
    return {
        "source_file": store_url(head.contract_base, entry.zarr).rstrip("/"),
        "dataset_id": head.dataset_id,
        "recording": entry.path,
        "doi": head.doi or UNKNOWN,
        "license": head.license or UNKNOWN,
        "citation": head.citation or UNKNOWN,
        "hed_version": head.hed_version or UNKNOWN,
        "index_source_commit": head.source_commit,
        "index_updated_utc": head.updated_utc,
        "index_etag": index.etag,
    }


def store_facts(root: Mapping[str, Any], version: str) -> dict[str, Any]:
    """What the store says of itself."""
    told = root.get("nemar")
    nemar: Mapping[str, Any] = told if isinstance(told, dict) else {}
    derived = nemar.get("derived") is True
    facts = {
        "source_commit": _text(nemar.get("source_commit")),
        "engine_version": _text(nemar.get("engine_version")),
        "biosigio_version": _text(root.get("biosigio_version")),
        "store_format_version": int(root["format_version"]),
        "store_etag": version,
        "store_events_source": _text(root.get("events_source")),
        "derived": derived,
    }
    return {**facts, "sss_json": json.dumps(root.get("sss"), sort_keys=True)} if derived else facts


def channel_facts(selection: Selection, group: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """What the channel group says of its channels, in the order of the file.

    ``highpass`` and ``lowpass`` are there when every channel has the same one, a low-pass filter only when it lies below half of
    the served rate: the filter of resampling is the lower one otherwise.
    """
    told = {row: one for one in attributes.get("channels", ()) if isinstance(row := one.get("row_index"), int)}
    chosen = [told[row] for row in selection.rows]
    rate_hz = selection.attributes.rate
    original = attributes.get("original_rate")
    facts: dict[str, Any] = {
        "sfreq": float(rate_hz),
        "rate_original": float(original) if isinstance(original, int | float) else UNKNOWN,
        "group": group,
        "modality": _text(attributes.get("modality")),
        "ch_names": [one.label for one in selection.chosen],
        "ch_units": [one.unit or UNKNOWN for one in selection.chosen],
        "ch_types": [_text(one.get("channel_type")) for one in chosen],
        "ch_scale": [float(one.scale) for one in selection.chosen],
        "ch_usable_for_inference": [one.usable_for_inference for one in selection.chosen],
    }
    filters = _common_filters([one.get("prefilter") for one in chosen])
    if filters.get("lowpass", 0.0) > rate_hz / 2:
        del filters["lowpass"]
    return {**facts, **filters}


def _common_filters(told: Sequence[Any]) -> dict[str, float]:
    found = {}
    for name, pattern in _FILTERS.items():
        values = {float(match[1]) if (match := pattern.search(str(text or ""))) else None for text in told}
        if len(values) == 1 and (value := values.pop()) is not None:
            found[name] = value
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value else UNKNOWN
