"""BrainVision that is cut, renamed or stranger than the format allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from corpus_putting import KEY, TWO_SIGNALS, renaming, row, shortening, without
from corpus_row import Failed, Place, Served, steps
from reference_signal import SourceSignal
from small_files import brainvision

_BV = {"eeg_100hz": TWO_SIGNALS}


def bv(**more: object) -> Served:
    return Served(**({"signals": _BV, "units": ("V", "V")} | more))  # type: ignore[arg-type]  # named by the caller


def _brainvision(place: Place, *, edit: Mapping[str, str] | None = None, header: bytes | None = None) -> None:
    """The triple of ``TWO_SIGNALS``; ``edit`` replaces texts of its header."""
    path = brainvision(place.folder, f"{place.stem}_eeg", TWO_SIGNALS.data, 100.0)
    text = path.read_text(encoding="utf-8")
    for old, new in (edit or {}).items():
        assert old in text
        text = text.replace(old, new)
    path.write_bytes(text.encode() if header is None else header)


def _bv(
    edit: Mapping[str, str] | None = None, *, after: Callable[[Place], object] = lambda _: None
) -> Callable[[Place], object]:
    def write(place: Place) -> None:
        _brainvision(place, edit={old: new.format(stem=place.stem) for old, new in _stemmed(edit, place).items()})
        after(place)

    return write


def _stemmed(edit: Mapping[str, str] | None, place: Place) -> dict[str, str]:
    return {old.format(stem=place.stem): new for old, new in (edit or {}).items()}


def _latin(place: Place) -> None:
    _brainvision(place)
    path = place.at("_eeg.vhdr")
    path.write_bytes(path.read_text(encoding="utf-8").encode("latin-1"))


def _float32(place: Place, data: np.ndarray) -> None:
    _brainvision(place, edit={"BinaryFormat=INT_16": "BinaryFormat=IEEE_FLOAT_32", ",,0.1,": ",,1,"})
    data.astype("<f4").T.tofile(place.at("_eeg.eeg"))


def _bv_float(place: Place) -> None:
    _float32(place, TWO_SIGNALS.data)


def _bv_vectorized(place: Place) -> None:
    _brainvision(place, edit={"DataOrientation=MULTIPLEXED": "DataOrientation=VECTORIZED\nDataPoints=400"})
    steps(TWO_SIGNALS).astype("<i2").tofile(place.at("_eeg.eeg"))


def _constant_and_nan(place: Place) -> None:
    data = TWO_SIGNALS.data.copy()
    data[1] = 7.5
    _float32(place, data)


def _with_nan(place: Place) -> None:
    data = TWO_SIGNALS.data.copy()
    data[0, 100:110] = np.nan
    data[0, 200] = np.inf
    _float32(place, data)


_FILLED = TWO_SIGNALS.data.copy()
_FILLED[0, 100:110] = 0
_FILLED[0, 200] = 0
_FLAT = TWO_SIGNALS.data.copy()
_FLAT[1] = 7.5

BRAINVISION = [
    row(
        "BrainVision renamed",
        "bvstale",
        "_eeg.vhdr",
        _bv(
            {"DataFile={stem}_eeg.eeg": "DataFile=s2_run1.eeg", "MarkerFile={stem}_eeg.vmrk": "MarkerFile=s2_run1.vmrk"}
        ),
        bv(),
    ),
    row(
        "BrainVision renamed",
        "bvkey",
        "_eeg.vhdr",
        _bv({"DataFile={stem}_eeg.eeg": f"DataFile={KEY}.eeg"}),
        bv(),
    ),
    row("BrainVision renamed", "bvcase", "_eeg.vhdr", _bv(after=renaming("_eeg.eeg", "_eeg.EEG")), bv()),
    row("BrainVision renamed", "bvgone", "_eeg.vhdr", _bv(after=without("_eeg.eeg")), Failed(code="file_read_error")),
    row(
        "BrainVision renamed",
        "bvpath",
        "_eeg.vhdr",
        _bv({"DataFile={stem}_eeg.eeg": "DataFile=C:\\data\\s2\\run1.eeg"}),
        bv(),
    ),
    row("BrainVision markers", "bvnomarkerline", "_eeg.vhdr", _bv({"MarkerFile={stem}_eeg.vmrk\n": ""}), bv()),
    row("BrainVision markers", "bvnomarkers", "_eeg.vhdr", _bv(after=without("_eeg.vmrk")), bv()),
    row(
        "BrainVision markers",
        "bvmarkerhead",
        "_eeg.vhdr",
        _bv(after=lambda place: place.put("_eeg.vmrk", "[Common Infos]\n[Marker Infos]\nMk1=Stimulus,S1,5,1,0\n")),
        bv(),
    ),
    row("BrainVision header in Latin-1", "bvlatin", "_eeg.vhdr", _latin, bv()),
    row("BrainVision formats", "bvfloat", "_eeg.vhdr", _bv_float, bv()),
    row("BrainVision formats", "bvvectors", "_eeg.vhdr", _bv_vectorized, bv()),
    row(
        "BrainVision cut",
        "bvframe",
        "_eeg.vhdr",
        _bv(after=shortening("_eeg.eeg", 1)),
        Failed(code="corrupt_or_truncated"),
    ),
    row(
        "BrainVision cut",
        "bvempty",
        "_eeg.vhdr",
        _bv(after=lambda place: place.put("_eeg.eeg", b"")),
        Failed(code="corrupt_or_truncated"),
    ),
    row(
        "BrainVision cut",
        "bvpointer",
        "_eeg.vhdr",
        _bv(after=lambda place: place.put("_eeg.eeg", f"/annex/objects/{KEY}.eeg\n")),
        Failed(code="annex_object_missing"),
    ),
    row(
        "BrainVision cut",
        "bvnochannels",
        "_eeg.vhdr",
        _bv({"NumberOfChannels=2": "NumberOfChannels=0"}),
        Failed(code="empty_recording"),
    ),
    row(
        "values that are no numbers",
        "nansamples",
        "_eeg.vhdr",
        _with_nan,
        bv(signals={"eeg_100hz": SourceSignal(("E1", "E2"), 100.0, _FILLED, ("uV", "uV"))}),
    ),
    row(
        "values that are no numbers",
        "flatchannel",
        "_eeg.vhdr",
        _constant_and_nan,
        bv(signals={"eeg_100hz": SourceSignal(("E1", "E2"), 100.0, _FLAT, ("uV", "uV"))}),
    ),
]
