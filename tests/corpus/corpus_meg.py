"""FIF, KIT, MEF3 and folders that are cut or incomplete."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from corpus_putting import row, shortening
from corpus_row import Failed, Place, Served, signal, steps
from reference_signal import SourceSignal
from small_files import fif, mefd, shielded

_TESLA = SourceSignal(
    ("MEG0000", "MEG0001"), 100.0, (signal().data * 1e-15).astype(np.float32).astype(float), ("T", "T")
)
_MEG = {"meg_100hz": _TESLA}


def meg(**more: object) -> Served:
    return Served(**({"signals": _MEG, "units": ("T", "T")} | more))  # type: ignore[arg-type]  # named by the caller


def _fif(place: Place, **more: object) -> None:
    fif(place.at("_meg.fif"), _TESLA.data, 100.0, **more)  # type: ignore[arg-type]  # as there


def _gzipped(place: Place) -> None:
    _fif(place)
    path = place.at("_meg.fif")
    place.put("_meg.fif.gz", gzip.compress(path.read_bytes()))
    path.unlink()


def _shielded(place: Place, *calibration: str) -> None:
    _fif(place)
    shielded(place.at("_meg.fif"))
    for name in calibration:
        place.put(f"sub-{place.name}_{name}", "x")


def _crosstalk(place: Place) -> None:
    place.put(f"sub-{place.name}_acq-crosstalk_meg.fif", b"\0\0\0\x64")
    place.put(f"sub-{place.name}_acq-calibration_meg.dat", "1 2 3")


def _mefd(place: Place) -> None:
    mefd(place.at("_ieeg.mefd"), steps(signal(("ch01", "ch02"))), 100.0)


def _empty_mefd(place: Place) -> None:
    place.put("_ieeg.mefd/ch01.timd/readme.txt", "nothing")


def _ds(*names: str) -> Callable[[Place], object]:
    def write(place: Place) -> None:
        for name in names:
            place.put(f"_meg.ds/{place.stem}_meg.{name}", struct.pack(">8s", b"MEG41CP\0"))

    return write


def _bti(*names: str) -> Callable[[Place], object]:
    def write(place: Place) -> None:
        for name in names:
            place.put(f"_meg/{name}", b"\0" * 64)

    return write


_MEF = {"ieeg_100hz": replace(signal(("ch01", "ch02")), data=signal().data * 10)}
OTHERS = [
    row(
        "FIF that is no raw data",
        "fifepochs",
        "_meg.fif",
        lambda place: _fif(place, kind="epochs"),
        Failed(code="not_continuous"),
    ),
    row(
        "FIF that is no raw data",
        "fifevoked",
        "_meg.fif",
        lambda place: _fif(place, kind="evoked"),
        Failed(code="not_continuous"),
    ),
    row(
        "FIF cut",
        "fifcut",
        "_meg.fif",
        lambda place: (_fif(place), shortening("_meg.fif", 1500)(place)),
        Failed(code="corrupt_or_truncated"),
    ),
    row(
        "FIF cut",
        "fifhead",
        "_meg.fif",
        lambda place: (_fif(place), place.at("_meg.fif").write_bytes(place.at("_meg.fif").read_bytes()[:2000])),
        Failed(code="corrupt_or_truncated"),
    ),
    row("FIF compressed", "fifgz", "_meg.fif.gz", _gzipped, meg()),
    row("MaxShield without calibration", "shieldnone", "_meg.fif", _shielded, Failed(code="maxshield_uncalibrated")),
    row(
        "MaxShield without calibration",
        "shieldhalf",
        "_meg.fif",
        lambda place: _shielded(place, "acq-calibration_meg.dat"),
        Failed(code="maxshield_uncalibrated"),
    ),
    row("calibration files", "crosstalk", "_meg.fif", lambda place: (_fif(place), _crosstalk(place)), meg()),
    row("MEF3", "mefsound", "_ieeg.mefd", _mefd, Served(signals=_MEF, units=("V", "V"))),
    row("MEF3", "mefempty", "_ieeg.mefd", _empty_mefd, Failed(code="file_read_error", detail="no segment")),
    row("CTF folders", "dsnores4", "_meg.ds", _ds("meg4"), Failed(code="file_read_error", detail=".res4")),
    row("CTF folders", "dsnomeg4", "_meg.ds", _ds("res4"), Failed(code="corrupt_or_truncated")),
    row(
        "4D folders",
        "btiempty",
        "_meg",
        _bti("c,rfDC", "config"),
        Failed(code="corrupt_or_truncated", detail="0 channels"),
    ),
]
