"""VneuroTK files as its format page describes them, written by h5py alone and by none of the product's code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

TEXT = h5py.string_dtype()
CODES = {bool: 1, int: 2, float: 3, str: 4, type(None): 5}


def typed(parent: Any, name: str, values: Sequence[object]) -> None:
    """A list of typed scalars."""
    group = parent.create_group(name)
    group.attrs["encoding"] = "vneurotk_scalar_v1"
    texts = [
        ""
        if one is None
        else one.hex()
        if isinstance(one, float)
        else str(int(one))
        if isinstance(one, bool)
        else str(one)
        for one in values
    ]
    group["types"] = np.array([CODES[type(one)] for one in values], dtype=np.uint8)
    group.create_dataset("values", data=np.array(texts, dtype=object), dtype=TEXT)


def series(parent: Any, name: str, values: Sequence[object]) -> None:
    """A column of trial_meta: numbers as they are, anything else as typed scalars."""
    group = parent.create_group(name)
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in values):
        array = np.array(values)
        group.attrs.update({"kind": "numpy", "dtype": str(array.dtype)})
        group["values"] = array
    else:
        group.attrs.update({"kind": "object_scalars", "dtype": "object"})
        typed(group, "values", values)


def trial_meta(file: Any, columns: Mapping[str, Sequence[object]], count: int) -> None:
    group = file.create_group("trial_meta")
    group.attrs["encoding"] = "pandas_v1"
    labels = group.create_group("column_index")
    labels.attrs.update({"kind": "values", "name_present": False})
    series(labels, "data", [*columns] or [""])
    index = group.create_group("index")
    index.attrs.update({"kind": "range", "name_present": False, "start": 0, "stop": count, "step": 1})
    held = group.create_group("columns")
    for position, values in enumerate(columns.values()):
        series(held, str(position), values)


def trials(
    file: Any,
    n_samples: int,
    onsets: Sequence[int],
    ids: Sequence[int | float | str | bool],
    *,
    length: int,
    schema: int,
) -> None:
    """Trials that start at their onset, with one stimulus each."""
    native = all(isinstance(one, int | float) and not isinstance(one, bool) for one in ids)
    labels = np.full(n_samples, np.nan)
    trial = np.full(n_samples, np.nan)
    for number, onset in enumerate(onsets):
        trial[onset : onset + length] = number
        if native:
            labels[onset] = ids[number]
    at = dict(zip(onsets, ids, strict=True))
    if native:
        file["stim_labels"] = labels
    elif schema:
        typed(file, "stim_labels", [at.get(sample) for sample in range(n_samples)])
    else:
        words = np.array([str(at.get(sample, "")) for sample in range(n_samples)], dtype=object)
        file.create_dataset("stim_labels", data=words, dtype=TEXT)
    if schema:
        file.attrs["stim_labels_encoding"] = "native" if native else "typed_scalars"
        file.attrs["stim_labels_shape"] = np.array([n_samples])
    if native or not schema:
        file.attrs["stim_labels_is_str"] = not native
    file["trial"] = trial
    file["trial_starts"] = np.array(onsets, dtype=np.int64)
    file["trial_ends"] = np.array(onsets, dtype=np.int64) + length
    file["vision_onsets"] = np.array(onsets, dtype=np.int64)
    unique = list(dict.fromkeys(ids))
    info = file.create_group("vision_info")
    info.attrs["n_stim"] = len(unique)
    if schema:
        typed(info, "stim_ids", unique)
    else:
        plain = np.array(unique) if native else np.array([str(one) for one in unique], dtype=object)
        info.create_dataset("stim_ids", data=plain, dtype=None if native else TEXT)
    bounds = file.create_group("trial_info")
    bounds.attrs["baseline"] = np.array([0, 0])
    bounds.attrs["trial_window"] = np.array([0, length])


def write_vneurotk(
    path: Path,
    data: np.ndarray,
    rate_hz: float,
    *,
    schema: int = 1,
    mode: str | None = "continuous",
    names: Sequence[str] | None = None,
    chunks: tuple[int, int] | None = (500, 2),
    onsets: Sequence[int] = (),
    ids: Sequence[int | float | str | bool] = (),
    meta: Mapping[str, Sequence[object]] | None = None,
    info: Mapping[str, Any] | None = None,
    length: int = 10,
) -> Path:
    """A continuous recording of ``data`` (channels x samples); ``info`` are more attributes of ``neuro_info``.

    Schema 0 has no header, and its samples are in one piece.
    """
    n_channels, n_samples = data.shape
    names = [f"E{row + 1}" for row in range(n_channels)] if names is None else names
    with h5py.File(path, "w") as file:
        if schema:
            file.attrs["vneurotk_format"] = "recording"
            file.attrs["vneurotk_schema_version"] = schema
            file.attrs["writer_version"] = "0.1.0"
            file.attrs["neuro_format"] = "dense"
        if mode is not None:
            file.attrs["data_mode"] = mode
        fitting = (
            None
            if chunks is None
            else tuple(min(one, extent) for one, extent in zip(chunks, data.T.shape, strict=True))
        )
        packed = {"chunks": fitting, "compression": "gzip", "shuffle": True} if schema and fitting else {}
        file.create_dataset("neuro", data=np.ascontiguousarray(data.T), **packed)
        own = file.create_group("neuro_info")
        own.attrs["sfreq"] = float(rate_hz)
        own.attrs["ch_names"] = list(names)
        own.attrs["shape"] = np.array(data.T.shape)
        own.attrs["source_file"] = "raw.fif"
        own.attrs.update(info or {})
        trials(file, n_samples, onsets, ids, length=length, schema=schema)
        if meta is not None:
            trial_meta(file, meta, len(onsets))
    return path
