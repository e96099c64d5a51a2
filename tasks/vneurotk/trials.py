"""The trials of a continuous VneuroTK file as a table of events, for recordings without an events.tsv.

A row is a trial: ``onset`` is when its stimulus was shown, ``stim_id`` which it was, and the columns of trial_meta stand under their
own names. How long a stimulus was shown the file does not say, so ``duration`` is unknown unless trial_meta has it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contract.errors import RecordingFailed
from tasks.bids.tsv import Table
from tasks.vneurotk.opening import attribute, dataset, group, text
from tasks.vneurotk.trial_columns import cell_of, read_columns
from tasks.vneurotk.typed_scalars import ENCODING, BadScalars, ScalarType, TypedScalars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tasks.vneurotk.description import Description

__all__ = ["read_trials"]

MOST_TRIALS: Final = 1_000_000
_STIMULUS: Final = "stim_id"
_DURATION_S: Final = "duration_s"
"""What an export of ours calls ``duration``."""
_TYPED, _NATIVE = "typed_scalars", "native"


def read_trials(file: Any, found: Description) -> Table:
    """The trials of an open file as a table; without any column where it has none that can be used as events.

    Whatever is wrong with them is a note: the signal can be served without them.
    """
    notes: list[str] = []
    try:
        onsets = _onsets(file, found, notes)
        if onsets is None:
            return Table(notes=tuple(notes))
        columns = {"onset": [repr(onset / found.rate_hz) for onset in onsets]}
        stimuli = _stimuli(file, found, onsets)
    except (RecordingFailed, BadScalars, ValueError, TypeError, KeyError) as error:
        said = error.detail if isinstance(error, RecordingFailed) else error
        return Table(notes=(*notes, f"its trials are not used: {said}"))
    meta = list(_columns(file, found, len(onsets), notes))
    names = {label.lower() for label, _ in meta}
    if stimuli is not None:
        if "trial_type" not in names:
            columns["trial_type"] = stimuli
        columns[_STIMULUS] = stimuli
    for label, cells in meta:
        own = "duration" if label == _DURATION_S and "duration" not in names else label
        while own in columns:
            own = f"x_{own}"
        columns[own] = cells
    rows = tuple(zip(*columns.values(), strict=True))
    return Table(headers=tuple(columns), rows=rows, notes=tuple(notes))


def _columns(file: Any, found: Description, count: int, notes: list[str]) -> list[tuple[str, list[str]]]:
    try:
        read = list(read_columns(file, found.schema, count, notes))
    except RecordingFailed as failed:
        notes.append(f"its trial_meta is not used: {failed.detail}")
        return []
    named = [(label.strip(), cells) for label, cells in read if label.strip()]
    if len(named) < len(read):
        notes.append(f"{len(read) - len(named)} columns of its trial_meta have no name and are not used")
    return named


def _onsets(file: Any, found: Description, notes: list[str]) -> list[int] | None:
    """Samples on which stimuli were shown, in the order of the file; None without any list of them."""
    array = dataset(file, "vision_onsets")
    if array is None:
        return None
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.shape[0] > MOST_TRIALS:
        raise ValueError(f"vision_onsets holds {array.shape} values of the type {array.dtype}")
    onsets: list[int] = array[()].tolist()
    outside = sum(not 0 <= onset < found.n_samples for onset in onsets)
    if outside:
        notes.append(f"{outside} of its trials begin outside the recording")
    return onsets


def _stimuli(file: Any, found: Description, onsets: Sequence[int]) -> list[str] | None:
    """Which stimulus each trial has; empty where the file names none. None where it names none at all."""
    inside = [0 <= onset < found.n_samples for onset in onsets]
    if text(attribute(file, "stim_labels_encoding")) == _TYPED:
        labels = group(file, "stim_labels")
        return None if labels is None else _typed(labels, found, onsets, inside)
    values = dataset(file, "stim_labels")
    if values is None:
        return None
    if values.shape != (found.n_samples,) or values.dtype.kind not in "iufO":
        raise ValueError(f"stim_labels holds {values.shape} values of the type {values.dtype}")
    return [_label(values, onset) if here else "" for onset, here in zip(onsets, inside, strict=True)]


def _label(values: Any, onset: int) -> str:
    value = values[onset]
    if isinstance(value, bytes):
        return text(value) or ""
    if isinstance(value, np.floating) and math.isnan(value):
        return ""
    return cell_of(value.item() if isinstance(value, np.generic) else value)


def _typed(labels: Any, found: Description, onsets: Sequence[int], inside: Sequence[bool]) -> list[str]:
    """Of a label for every sample, those on which stimuli were shown."""
    types, values = dataset(labels, "types"), dataset(labels, "values")
    if text(attribute(labels, "encoding")) != ENCODING or types is None or values is None:
        raise BadScalars("stim_labels are not encoded as typed scalars")
    if types.shape != (found.n_samples,) or values.shape != types.shape:
        raise BadScalars(f"stim_labels holds {types.shape} types and {values.shape} values")
    said = []
    for onset, here in zip(onsets, inside, strict=True):
        if not here:
            said.append("")
            continue
        code = ScalarType(int(types[onset]))
        (value,) = TypedScalars((code,), (text(values[onset]) or "",)).decode(missing=True)
        said.append(cell_of(value))
    return said
