"""A recording as VneuroTK reads it: epochs or a stretch of signal, labelled trials and where they come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tasks.vneurotk.layout import CURRENT_SCHEMA, MAGIC, Compression, chunk_shape, require_writable_channels
from tasks.vneurotk.new_file import writing
from tasks.vneurotk.trial_table import write_plain_table, write_table
from tasks.vneurotk.typed_scalars import TypedScalars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

__all__ = ["RecordingContent", "check_content", "write_recording"]

_AT_ONCE = 1 << 20
"""Labels, 8 bytes each, that are made at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingContent:
    """What stands in a file beside its samples. Positions are those of the file, not of the recording it was cut from.

    Parameters
    ----------
    shape
        Of the samples: (trials, time, channels) for epochs, else (time, channels).
    starts, stops, onsets
        Of each trial, in samples of its epoch, or of the file.
    ids
        The number of the stimulus of each trial.
    stim_ids
        Every number that occurs, ascending.
    window
        Samples of a trial relative to its onset.
    table
        A row a trial, column by column, in order: numbers as arrays, texts as lists with None for what is not known.
    info
        Attributes of ``neuro_info``: texts, whole and other numbers, bools, and lists of one of these.
    stimuli
        Image files by the number of their stimulus; they are copied in. None for a file without.
    """

    mode: Literal["epochs", "continuous"]
    shape: tuple[int, ...]
    starts: tuple[int, ...] = ()
    stops: tuple[int, ...] = ()
    onsets: tuple[int, ...] = ()
    ids: tuple[int, ...] = ()
    stim_ids: tuple[int, ...] = ()
    window: tuple[int, int] = (0, 0)
    table: Mapping[str, npt.NDArray[Any] | Sequence[str | None]] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)
    stimuli: Mapping[int, Path] | None = None


def check_content(content: RecordingContent) -> None:
    """Return when all of it can be written.

    Raises
    ------
    Refused
        There are more channels than a file can name, or a text that HDF5 cannot hold; nothing was written.
    """
    require_writable_channels(content.shape[-1])
    for name, value in content.info.items():
        texts = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []
        TypedScalars.encode(texts, what=name)
    for name, column in content.table.items():
        TypedScalars.encode([name], what="a column of the events")
        if not isinstance(column, np.ndarray):
            TypedScalars.encode(column, what=name[:80], missing=True)


def write_recording(
    target: Path,
    content: RecordingContent,
    rows: Callable[[int, int], npt.NDArray[np.float32]],
    *,
    schema: Literal[0, 1],
    compression: Compression,
    writer: str,
) -> None:
    """Write the file; it appears whole, or what stood there stays.

    Parameters
    ----------
    rows
        Gives (rows, channels) of the samples from a row on, trials one behind the other.
    schema
        1, or 0 as vneurotk 0.0.1 reads it.
    writer
        Who writes, in the header of schema 1.

    Raises
    ------
    Refused
        As ``check_content``, and when no file can stand at ``target``.
    OSError
        It cannot be written.
    """
    check_content(content)
    with writing(target, lambda file: _validate(file, content, schema)) as file:
        if schema:
            file.attrs["vneurotk_format"] = MAGIC
            file.attrs["vneurotk_schema_version"] = CURRENT_SCHEMA
            file.attrs["writer_version"] = writer
        file.attrs["data_mode"] = content.mode
        _write_samples(file, content, rows, compression)
        _write_labels(file, content, schema)
        _write_trials(file, content, schema)
        _write_info(file, content)
        _write_stimuli(file, content, schema)


def _write_samples(
    file: Any, content: RecordingContent, rows: Callable[[int, int], npt.NDArray[np.float32]], compression: Compression
) -> None:
    shape = content.shape
    chunk = chunk_shape(shape, 4)
    neuro = file.create_dataset("neuro", shape=shape, dtype=np.float32, chunks=chunk, **compression.options())
    file.attrs["neuro_format"] = "dense"
    # whole chunks, each once: HDF5 compresses a chunk again whenever a part of it is written
    n_time = shape[-2]
    for first, last in _steps(n_time, chunk[-2]):
        if content.mode == "continuous":
            neuro[first:last] = rows(first, last - first)
            continue
        for begin, end in _steps(shape[0], chunk[0]):
            block = [rows(trial * n_time + first, last - first) for trial in range(begin, end)]
            neuro[begin:end, first:last] = np.stack(block)


def _steps(length: int, step: int) -> Iterator[tuple[int, int]]:
    for first in range(0, length, step):
        yield first, min(length, first + step)


def _write_labels(file: Any, content: RecordingContent, schema: int) -> None:
    """Labels and trial numbers, a float64 for each sample of each trial: NaN but at onsets, and outside trials."""
    shape = content.shape[:-1]
    n_time = shape[-1]
    labels = file.create_dataset("stim_labels", shape=(int(np.prod(shape)),), dtype=np.float64)
    numbers = file.create_dataset("trial", shape=shape, dtype=np.float64)
    if schema:
        file.attrs["stim_labels_encoding"] = "native"
    file.attrs["stim_labels_is_str"] = False
    file.attrs["stim_labels_shape"] = np.array(shape, dtype=np.int64)
    per_epoch = n_time if content.mode == "epochs" else 0
    first_sample = np.arange(len(content.starts), dtype=np.int64) * per_epoch
    starts, stops, onsets = (
        first_sample + np.array(values, dtype=np.int64) for values in (content.starts, content.stops, content.onsets)
    )
    ids = np.array(content.ids, dtype=np.float64)
    step = max(1, _AT_ONCE // n_time) * n_time if per_epoch else _AT_ONCE
    for first, last in _steps(labels.shape[0], step):
        part = np.full(last - first, np.nan)
        here = (onsets >= first) & (onsets < last)
        part[onsets[here] - first] = ids[here]
        labels[first:last] = part
        part[:] = np.nan
        for trial in np.flatnonzero((starts < last) & (stops > first)).tolist():
            part[max(0, starts[trial] - first) : stops[trial] - first] = trial
        if per_epoch:
            numbers[first // n_time : last // n_time] = part.reshape(-1, n_time)
        else:
            numbers[first:last] = part


def _write_trials(file: Any, content: RecordingContent, schema: int) -> None:
    for name, values in (
        ("trial_starts", content.starts),
        ("trial_ends", content.stops),
        ("vision_onsets", content.onsets),
    ):
        file.create_dataset(name, data=np.array(values, dtype=np.int64))
    vision = file.create_group("vision_info")
    vision.attrs["n_stim"] = len(content.stim_ids)
    if schema:
        TypedScalars.encode(content.stim_ids).write(vision, "stim_ids")
    else:
        vision.create_dataset("stim_ids", data=np.array(content.stim_ids, dtype=np.int64))
    if content.table:
        write = write_table if schema else write_plain_table
        write(file, content.table)


def _write_info(file: Any, content: RecordingContent) -> None:
    import h5py

    info = file.create_group("neuro_info")
    for name, value in content.info.items():
        if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
            info.attrs[name] = np.array(value, dtype=h5py.string_dtype())
        else:
            info.attrs[name] = np.array(value) if isinstance(value, list | tuple) else value
    info.attrs["shape"] = np.array(content.shape, dtype=np.int64)
    trials = file.create_group("trial_info")
    trials.attrs["baseline"] = np.array([content.window[0], 0], dtype=np.int64)
    trials.attrs["trial_window"] = np.array(content.window, dtype=np.int64)


def _write_stimuli(file: Any, content: RecordingContent, schema: int) -> None:
    """Images as their own bytes: the kind that names a path is never written."""
    if content.stimuli is None:
        return
    group = file.create_group("stimuli_db")
    if schema:
        group.attrs["encoding"] = "ordered_entries_v1"
    for position, (number, path) in enumerate(sorted(content.stimuli.items())):
        image = np.frombuffer(path.read_bytes(), dtype=np.uint8)
        if schema:
            entry = group.create_group(str(position))
            TypedScalars.encode([number]).write(entry, "id")
            dataset = entry.create_dataset("image", data=image)
        else:
            dataset = group.create_dataset(str(number), data=image)
            dataset.attrs["key_type"] = "int"
        dataset.attrs["kind"] = "image_bytes"


def _validate(file: Any, content: RecordingContent, schema: int) -> None:
    """Raise ValueError unless the file says what it was to say."""
    found = {
        "schema": int(file.attrs.get("vneurotk_schema_version", 0)),
        "magic": file.attrs.get("vneurotk_format"),
        "mode": file.attrs["data_mode"],
        "samples": tuple(file["neuro"].shape),
        "labels": sum(
            _labels_in(file["stim_labels"], *step) for step in _steps(file["stim_labels"].shape[0], _AT_ONCE)
        ),
        "trials": tuple(file["trial"].shape),
        "onsets": tuple(file["vision_onsets"][()].tolist()),
        "stimuli": len(file["stimuli_db"]) if "stimuli_db" in file else 0,
    }
    wanted = {
        "schema": schema,
        "magic": MAGIC if schema else None,
        "mode": content.mode,
        "samples": content.shape,
        "labels": len(content.ids),
        "trials": content.shape[:-1],
        "onsets": content.onsets,
        "stimuli": len(content.stimuli or ()),
    }
    if wrong := [name for name, value in wanted.items() if found[name] != value]:
        raise ValueError(f"{', '.join(wrong)} cannot be read back")


def _labels_in(labels: Any, first: int, last: int) -> int:
    return int(np.count_nonzero(~np.isnan(labels[first:last])))
