"""What a file will hold, decided before a sample is read: trials, labels, their table, and where all of it comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from contract.errors import Refused
from contract.trials import Chosen, Trial, choose, first_overlap, stimulus_ids, window_samples
from infra.wording import plural
from tasks.export.events import ExportEvents, events_of, meta_columns, of_trial_types
from tasks.export.provenance import UNKNOWN, channel_facts, dataset_facts, store_facts
from tasks.read.window import select_in
from tasks.vneurotk.write_recording import RecordingContent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from contract.reading import ReadEntry, ReadGroup
    from contract.recipe_making import Selection
    from tasks.export.asked import ExportAsked
    from tasks.export.stimuli import Stimuli
    from tasks.read.index import ReadIndex
    from tasks.read.place import Place
    from tasks.read.store import StoreReading

__all__ = ["Planned", "Wanted", "plan"]

_STIM_FILE = "stim_file"
_NUMBERS: dict[str, Any] = {"onset_s": np.float64, "duration_s": np.float64, "sample_index": np.int64}


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A file before its samples.

    Parameters
    ----------
    trials
        In samples of the recording, in the order of the file; empty for a part as one window.
    stimuli
        What each stimulus ID stands for.
    """

    content: RecordingContent
    selection: Selection
    trials: tuple[Trial, ...]
    stimuli: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A recording of an index, the group of it, and what is asked for."""

    place: Place
    index: ReadIndex
    entry: ReadEntry
    group: ReadGroup
    asked: ExportAsked


def plan(wanted: Wanted, reading: StoreReading, stimuli: Stimuli | None) -> Planned:
    """What the file of one recording will hold, by one look at its store.

    Raises
    ------
    Refused
        What is asked for is not there, or cannot be laid out so.
    """
    entry, group, asked = wanted.entry, wanted.group, wanted.asked
    selection = select_in(reading, entry.zarr, group.name, asked.part(entry.path))
    if not any(channel.usable_for_inference for channel in selection.chosen):
        raise Refused(
            f"--group: no channel of {group.name} that is asked for is usable for inference (triggers, clocks, gaps); take another."
        )
    info: dict[str, Any] = {
        **dataset_facts(wanted.index, entry),
        **store_facts(reading.root, reading.version),
        **channel_facts(selection, group.name, reading.metadata(group.name).get("attributes", {})),
        "start_s": selection.seconds[0],
        "stop_s": selection.seconds[1],
    }
    if not asked.has_trials:
        return _one_window(asked, selection, info)
    dataset_id, rate_hz = wanted.index.head.dataset_id, selection.attributes.rate
    events = events_of(wanted.place, dataset_id, entry, group, reading, rate_hz=rate_hz)
    kept = of_trial_types(events, asked.trial_types, recording=entry.path)
    return _windows(wanted, selection, info, kept, stimuli)


def _one_window(asked: ExportAsked, selection: Selection, info: dict[str, Any]) -> Planned:
    start, stop = selection.columns
    length, n_channels = stop - start, len(selection.chosen)
    told = _counts(0, 0, 0, 0) | {"events_source": "none", "stimulus_ids_from": "none"}
    if asked.layout == "continuous":
        content = RecordingContent(mode="continuous", shape=(length, n_channels), info=info | told)
        return Planned(content=content, selection=selection, trials=())
    table = {
        "onset_s": np.array([selection.seconds[0]]),
        "duration_s": np.array([length / selection.attributes.rate]),
        "sample_index": np.array([start], dtype=np.int64),
    }
    content = RecordingContent(
        mode="epochs",
        shape=(1, length, n_channels),
        starts=(0,),
        stops=(length,),
        onsets=(0,),
        ids=(1,),
        stim_ids=(1,),
        window=(0, length),
        table=table,
        info=info | told | {"n_trials": 1},
    )
    whole = Trial(start=start, stop=stop, onset=start, event=0)
    return Planned(content=content, selection=selection, trials=(whole,), stimuli={1: "the window"})


def _windows(
    wanted: Wanted, selection: Selection, info: dict[str, Any], events: ExportEvents, stimuli: Stimuli | None
) -> Planned:
    asked, recording = wanted.asked, wanted.entry.path
    window = window_samples(asked.window, selection.attributes.rate)
    chosen = choose(events.onsets, window=window, part=selection.columns)
    labels: Sequence[str | None] = events.words
    if asked.with_stimuli:
        labels = _images_named(events, recording)
    trials = tuple(trial for trial in chosen.trials if labels[trial.event] is not None)
    without_image = len(chosen.trials) - len(trials)
    _check(trials, chosen, asked, without_image=without_image, recording=recording)
    words = _numbered([str(labels[trial.event]) for trial in trials], () if asked.with_stimuli else asked.trial_types)
    numbers = {word: number for number, word in words.items()}
    told = {
        **_counts(len(trials), chosen.dropped, chosen.without_onset, without_image),
        "events_source": events.source,
        "stimulus_ids_from": _STIM_FILE if asked.with_stimuli else "trial_type",
        **({} if stimuli is None else {"stimuli_source_commit": stimuli.commit or UNKNOWN}),
        "window_start_s": asked.window[0],
        "window_stop_s": asked.window[1],
    }
    content = RecordingContent(
        mode=asked.layout,
        **_laid_out(asked, selection, trials, window),
        ids=tuple(numbers[str(labels[trial.event])] for trial in trials),
        stim_ids=tuple(sorted(words)),
        window=window,
        table=_table(events, trials),
        info=info | told,
        stimuli=None if stimuli is None else _numbered_images(stimuli, words),
    )
    return Planned(content=content, selection=selection, trials=trials, stimuli=words, notes=events.notes)


def _laid_out(
    asked: ExportAsked, selection: Selection, trials: Sequence[Trial], window: tuple[int, int]
) -> dict[str, Any]:
    """Shape, and where each trial stands in the file."""
    start, stop = selection.columns
    n_channels = len(selection.chosen)
    shape: tuple[int, ...]
    if asked.layout == "epochs":
        shape = (len(trials), window[1] - window[0], n_channels)
        firsts = [trial.start for trial in trials]
    else:
        shape = (stop - start, n_channels)
        firsts = [start] * len(trials)
    pairs = list(zip(trials, firsts, strict=True))
    return {
        "shape": shape,
        "starts": tuple(trial.start - first for trial, first in pairs),
        "stops": tuple(trial.stop - first for trial, first in pairs),
        "onsets": tuple(trial.onset - first for trial, first in pairs),
    }


def _check(trials: Sequence[Trial], chosen: Chosen, asked: ExportAsked, *, without_image: int, recording: str) -> None:
    if not trials and asked.layout == "epochs":
        raise Refused(
            f"--window: no trial of {recording} is left: {plural(chosen.dropped, 'window')} outside the part, "
            f"{plural(chosen.without_onset, 'event')} without an onset, {plural(without_image, 'event')} without an image; give a "
            "shorter window, or another part."
        )
    overlap = first_overlap(trials) if asked.layout == "continuous" else None
    if overlap is not None:
        one, other = overlap
        raise Refused(
            f"--mode: the windows around samples {one.onset} and {other.onset} of {recording} overlap, which a continuous file cannot "
            "hold; give a shorter window, or --mode epochs."
        )


def _images_named(events: ExportEvents, recording: str) -> list[str | None]:
    if not any(row.get(_STIM_FILE) for row in events.rows):
        raise Refused(f"--with-stimuli: no event of {recording} that is asked for has a stim_file in {events.source}.")
    return [str(row[_STIM_FILE]) if row.get(_STIM_FILE) else None for row in events.rows]


def _numbered(labels: Sequence[str], among: Sequence[str]) -> dict[int, str]:
    """What each number that occurs stands for; equal ``among`` give equal numbers in every recording."""
    numbers = stimulus_ids(among or labels)
    return {numbers[word]: word for word in sorted(set(labels))}


def _numbered_images(stimuli: Stimuli, words: Mapping[int, str]) -> Mapping[int, Path]:
    images = stimuli.images(words.values())
    return {number: images[word] for number, word in words.items()}


def _table(events: ExportEvents, trials: Sequence[Trial]) -> dict[str, npt.NDArray[Any] | list[str | None]]:
    """The events of trials, a row each; a number that is not known is NaN."""
    rows = [events.rows[trial.event] for trial in trials]
    table: dict[str, npt.NDArray[Any] | list[str | None]] = {}
    for name in meta_columns(events):
        cells = [row.get(name) for row in rows]
        if name in _NUMBERS:
            table[name] = np.array([np.nan if cell is None else cell for cell in cells], dtype=_NUMBERS[name])
        else:
            table[name] = [None if cell is None else str(cell) for cell in cells]
    return table


def _counts(n_trials: int, dropped: int, without_onset: int, without_image: int) -> dict[str, int]:
    return {
        "n_trials": n_trials,
        "n_trials_dropped": dropped,
        "n_events_without_onset": without_onset,
        "n_events_without_image": without_image,
    }
