"""EEGLAB that is cut, renamed or stranger than the format allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from corpus_putting import KEY, TWO_SIGNALS, row, shortening, without
from corpus_row import Failed, Place, Served
from reference_signal import SourceSignal
from small_files import eeglab, eeglab_v73, tones


def _single(source: SourceSignal) -> SourceSignal:
    return replace(source, data=source.data.astype(np.float32).astype(float))


_SET = {"eeg_100hz": _single(TWO_SIGNALS)}


def eeg(**more: object) -> Served:
    return Served(**({"signals": _SET, "units": ("uV", "uV")} | more))  # type: ignore[arg-type]  # named by the caller


def _set(after: Callable[[Place], object] = lambda _: None, **more: object) -> Callable[[Place], object]:
    def write(place: Place) -> None:
        eeglab(place.at("_eeg.set"), TWO_SIGNALS.data, 100.0, **more)  # type: ignore[arg-type]  # as there
        after(place)

    return write


def _column_chanlocs(place: Place) -> None:
    _resaved(place, chanlocs=np.array([[(f"E{i + 1}",)] for i in range(2)], dtype=[("labels", object)]))


def _resaved(place: Place, **fields: object) -> None:
    """The .set with other fields in its EEG structure."""
    from scipy.io import loadmat, savemat

    path = eeglab(place.at("_eeg.set"), TWO_SIGNALS.data, 100.0)
    known = loadmat(path, simplify_cells=True)["EEG"]
    known["chanlocs"] = np.array([(f"E{i + 1}",) for i in range(2)], dtype=[("labels", object)])
    savemat(path, {"EEG": {**known, **fields}})


def _vector_latency(place: Place) -> None:
    latencies = np.empty(1, dtype=[("type", object), ("latency", object)])
    latencies[0] = ("go", np.array([10.0, 20.0]))
    _resaved(place, event=latencies)


def _alleeg(place: Place) -> None:
    from scipy.io import loadmat, savemat

    path = eeglab(place.at("_eeg.set"), TWO_SIGNALS.data, 100.0)
    one = loadmat(path)["EEG"]
    savemat(path, {"ALLEEG": np.concatenate([one, one], axis=1)})


def _wide(place: Place) -> None:
    eeglab(place.at("_eeg.set"), tones(2, 4096, 1024.0), 1024.0)


def _renamed(place: Place) -> None:
    """The pair of a recording that was called run1, whose header goes on naming run1.fdt."""
    eeglab(place.at("run1.set"), TWO_SIGNALS.data, 100.0, fdt=True, compressed=False)
    for ending in ("set", "fdt"):
        place.at(f"run1.{ending}").rename(place.at(f"_eeg.{ending}"))
    assert b"run1.fdt" in place.at("_eeg.set").read_bytes()


def _moved(place: Place) -> None:
    eeglab(place.at("_eeg.set"), TWO_SIGNALS.data, 100.0, fdt=True)
    place.at("_eeg.fdt").rename(place.at(f"/derivatives/{place.name}.fdt"))


def _hdf5(place: Place) -> None:
    import h5py

    with h5py.File(place.at("_eeg.set"), "w") as file:
        file["numbers"] = np.arange(10)


def _v73(place: Place, **more: object) -> None:
    eeglab_v73(place.at("_eeg.set"), TWO_SIGNALS.data, 100.0, **more)  # type: ignore[arg-type]  # as there


def _v73_flat(place: Place) -> None:
    import h5py

    with h5py.File(_at_v73(place), "r+") as file:
        for name in list(file["EEG"]):
            file.move(f"EEG/{name}", name)
        del file["EEG"]


def _at_v73(place: Place):
    _v73(place)
    return place.at("_eeg.set")


_UNNAMED = {"eeg_100hz": replace(_single(TWO_SIGNALS), labels=("Channel1", "Channel2"))}

EEGLAB = [
    row("EEGLAB channel locations", "setcolumn", "_eeg.set", _column_chanlocs, eeg()),
    row(
        "EEGLAB channel locations",
        "setnolocs",
        "_eeg.set",
        lambda place: _resaved(place, chanlocs=np.empty((0, 0))),
        eeg(signals=_UNNAMED),
    ),
    row(
        "EEGLAB channel locations",
        "setwide",
        "_eeg.set",
        _wide,
        eeg(signals={"eeg_250hz": _single(SourceSignal(("E1", "E2"), 1024.0, tones(2, 4096, 1024.0), ("uV", "uV")))}),
    ),
    row("EEGLAB data file", "fdtsound", "_eeg.set", _set(fdt=True), eeg()),
    row("EEGLAB data file", "fdtgone", "_eeg.set", _set(without("_eeg.fdt"), fdt=True), Failed(code="file_read_error")),
    row("EEGLAB data file", "fdtmoved", "_eeg.set", _moved, Failed(code="file_read_error")),
    row(
        "EEGLAB data file",
        "fdtpointer",
        "_eeg.set",
        _set(lambda place: place.put("_eeg.fdt", f"/annex/objects/{KEY}.fdt\n"), fdt=True),
        Failed(code="annex_object_missing"),
    ),
    row(
        "EEGLAB data file",
        "fdthalf",
        "_eeg.set",
        _set(shortening("_eeg.fdt", 1600), fdt=True),
        Failed(code="corrupt_or_truncated"),
    ),
    row(
        "EEGLAB data file",
        "fdtzero",
        "_eeg.set",
        _set(lambda place: place.put("_eeg.fdt", b""), fdt=True),
        Failed(code="corrupt_or_truncated"),
    ),
    row("EEGLAB data file of another name", "fdtrenamed", "_eeg.set", _renamed, eeg()),
    row("EEGLAB 7.3", "v73grouped", "_eeg.set", _v73, eeg(signals=_UNNAMED)),
    row("EEGLAB 7.3", "v73flat", "_eeg.set", _v73_flat, eeg(signals=_UNNAMED)),
    row("EEGLAB 7.3", "v73other", "_eeg.set", _hdf5, Failed(code="file_read_error", detail="no EEGLAB dataset")),
    row("epochs", "epochsset", "_eeg.set", _set(trials=4), Failed(code="not_continuous", detail="4 epochs")),
    row("epochs", "epochsfdt", "_eeg.set", _set(trials=4, fdt=True), Failed(code="not_continuous", detail="4 epochs")),
    row("epochs", "epochsv73", "_eeg.set", lambda place: _v73(place, trials=4), Failed(code="not_continuous")),
    row("EEGLAB structures", "setvector", "_eeg.set", _vector_latency, eeg()),
    row(
        "EEGLAB structures",
        "setalleeg",
        "_eeg.set",
        _alleeg,
        Failed(code="file_read_error", detail="no EEGLAB dataset"),
    ),
    row("EEGLAB structures", "setnested", "_eeg.set", _set(nested=False), eeg()),
    row(
        "EEGLAB structures",
        "setcut",
        "_eeg.set",
        _set(shortening("_eeg.set", 700)),
        Failed(code="corrupt_or_truncated"),
    ),
    row(
        "EEGLAB structures",
        "setnorate",
        "_eeg.set",
        lambda place: eeglab(place.at("_eeg.set"), TWO_SIGNALS.data, 0.0),
        Failed(code="file_read_error", detail="no sampling rate"),
    ),
]
