"""What the names of files alone decide: what is a recording, which files belong to it, and what it is called."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from corpus_meg import meg
from corpus_row import Expected, Failed, Place, Row, Unseen, edf, plain, signal
from reference_signal import SourceSignal
from small_files import brainvision, fif

ELSEWHERE = "derivatives", "sourcedata", "code"


def row(kind: str, name: str, path: str, write: Callable[[Place], object], expect: Expected, *also: str) -> Row:
    return Row(kind=kind, name=name, ending=f"/{path}", write=write, expect=expect, also=also)


def _edf_at(path: str) -> Callable[[Place], object]:
    return lambda place: place.put(f"/{path}", edf())


def _scope(name: str, path: str, expect: Expected) -> Row:
    return row("trees that are not raw", name, path, _edf_at(path), expect)


SCOPE = [
    _scope("scopederiv", "derivatives/p/sub-scopederiv/eeg/sub-scopederiv_eeg.edf", Unseen()),
    _scope("scopesource", "sub-scopesource/sourcedata/sub-scopesource_eeg.edf", Unseen()),
    _scope("scopecode", "code/sub-scopecode_eeg.edf", Unseen()),
    _scope("scopemine", "mycode/sub-scopemine_eeg.edf", plain()),
    _scope("scopeold", "derivatives_old/sub-scopeold_eeg.edf", plain()),
    _scope("scopetask", "sub-scopetask/eeg/sub-scopetask_task-code_eeg.edf", plain()),
]

ODD = [
    row(
        "odd names",
        "oddspace",
        "sub-oddspace/eeg/sub-oddspace_task-a b_eeg.edf",
        _edf_at("sub-oddspace/eeg/sub-oddspace_task-a b_eeg.edf"),
        plain(),
    ),
    row("odd names", "oddaccent", "sub-oddé/eeg/sub-oddé_eeg.edf", _edf_at("sub-oddé/eeg/sub-oddé_eeg.edf"), plain()),
    row(
        "odd names",
        "oddsigns",
        "sub-odd/eeg/sub-odd_task-a#b%20&c_eeg.edf",
        _edf_at("sub-odd/eeg/sub-odd_task-a#b%20&c_eeg.edf"),
        plain(),
    ),
    row("odd names", "oddplain", "loose.edf", _edf_at("loose.edf"), plain(signals={"misc_100hz": signal()})),
    row(
        "odd names",
        "oddnewline",
        "sub-x/eeg/sub-x_task-a\nb_eeg.edf",
        _edf_at("sub-x/eeg/sub-x_task-a\nb_eeg.edf"),
        Unseen(),
    ),
]


def _twins(place: Place) -> None:
    place.put("_eeg.edf", edf())
    brainvision(place.folder, f"{place.stem}_eeg", signal(("E1", "E2")).data, 100.0)


def _case_twins(place: Place) -> None:
    place.put("_eeg.edf", edf())
    place.put("_eeg.EDF", edf(("C", "D")))


COLLISIONS = [
    row(
        "two recordings, one store",
        "twins",
        "sub-twins/eeg/sub-twins_task-t_eeg.edf",
        _twins,
        Failed(code="store_path_collision", detail="sub-twins_task-t_eeg.vhdr"),
        "sub-twins/eeg/sub-twins_task-t_eeg.vhdr",
    ),
    row(
        "two recordings, one store",
        "twinscase",
        "sub-twinscase/eeg/sub-twinscase_task-t_eeg.edf",
        _case_twins,
        Failed(code="store_path_collision", detail="sub-twinscase_task-t_eeg.EDF"),
        "sub-twinscase/eeg/sub-twinscase_task-t_eeg.EDF",
    ),
]

_LONG = SourceSignal(
    ("MEG0000", "MEG0001"),
    1000.0,
    (np.random.default_rng(5).normal(size=(2, 400_000)) * 1e-13).astype(np.float32).astype(float),
    ("T", "T"),
)


def _split(place: Place) -> None:
    fif(place.at(f"sub-{place.name}_meg.fif"), _LONG.data, 1000.0, split_bytes="2MB")


def _split_without(number: str) -> Callable[[Place], object]:
    def write(place: Place) -> None:
        _split(place)
        place.at(f"sub-{place.name}_split-{number}_meg.fif").unlink()

    return write


def _split_row(name: str, write: Callable[[Place], object], expect: Expected, first: str = "01") -> Row:
    return row("split FIF", name, f"sub-{name}/meg/sub-{name}_split-{first}_meg.fif", write, expect)


SPLITS = [
    _split_row("splitsound", _split, meg(signals={"meg_250hz": _LONG})),
    _split_row("splitgap", _split_without("02"), Failed(code="corrupt_or_truncated")),
]

DATALAD = [
    row(
        "folders that look like recordings",
        "datalad",
        ".datalad/config",
        lambda place: place.put("/.datalad/config", "[datalad]\n"),
        Unseen(),
    ),
    row(
        "folders that look like recordings",
        "crfonly",
        "sub-crfonly/meg/sub-crfonly_meg",
        lambda place: place.put("/sub-crfonly/meg/sub-crfonly_meg/c,rfDC", b"\0"),
        Failed(code="unsupported_format"),
    ),
    row(
        "folders that look like recordings",
        "dsinner",
        "sub-dsinner/meg/sub-dsinner_meg.ds/inner.fif",
        lambda place: place.put("/sub-dsinner/meg/sub-dsinner_meg.ds/inner.fif", b"\0"),
        Unseen(),
        "sub-dsinner/meg/sub-dsinner_meg.ds",
    ),
]

ROWS = [*SCOPE, *ODD, *COLLISIONS, *SPLITS, *DATALAD]
