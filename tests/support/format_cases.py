"""Recordings of every format and spelling, each with an independent reading: real ones, and written ones where no real one is at hand."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from ctf_files import ORIGIN, continuous_ctf
from format_case import Case, Put, by_edf, by_mne, copied, made, real
from format_samples import bdf_bytes
from reference_signal import SourceSignal, read_mne
from small_files import brainvision, edf_bytes, eeglab, eeglab_v73, fif, mefd, tones
from vneurotk_files import write_vneurotk

# -- EDF and BDF

_CODES = np.stack([np.arange(2000) * (row + 1) % 997 * 7 for row in range(2)])


def _edf_signal(labels: tuple[str, ...] = ("A", "B"), data: np.ndarray = _CODES * 0.1) -> SourceSignal:
    return SourceSignal(labels, 500.0, data, ("uV",) * len(labels))


def _edf_file(edit: Callable[[bytes], bytes] = bytes, **changes: object) -> Put:
    def put(primary: Path, _recordings: Path) -> None:
        changed = {"labels": ["A", "B"], "per_record": [500, 500], "data": _CODES, **changes}
        primary.write_bytes(edit(edf_bytes(**changed)))  # type: ignore[arg-type]  # its own keywords

    return put


def _discontinuous(primary: Path, _recordings: Path) -> None:
    """An EDF+D whose records follow each other."""
    head = edf_bytes(
        ["A", "B", "EDF Annotations"], per_record=[500, 500, 20], n_records=0, declared=4, reserved="EDF+D"
    )
    body = b""
    for record in range(4):
        part = _CODES[:, record * 500 : (record + 1) * 500].astype("<i2").tobytes()
        body += part + f"+{record}\x14\x14\0".encode().ljust(40, b"\0")
    primary.write_bytes(head + body)


def _latin_1(data: bytes) -> bytes:
    return data.replace(b"X X X X ", "X X Mü ".encode("latin-1").ljust(8), 1).replace(
        b"uV      uV      ", "µV      µV      ".encode("latin-1")
    )


_EDF_CASES = (
    real("edf", "edf", "eeg", ".edf", "EDF", "edf/chtypes_edf.edf"),
    real("edf-mixed", "edf", "eeg", ".edf", "EDF+, several rates", "edf/test_reduced.edf"),
    real("edf-annotations", "edf", "eeg", ".edf", "EDF+ with annotations", "edf/test_utf8_annotations.edf"),
    real("edf-emg", "edf", "emg", ".edf", "EDF of EMG", "emg/emg_TwoWristbands/sub-01/emg/sub-01_task-typing_emg.edf"),
    made("edf-d", ".edf", "EDF+D without a gap", _discontinuous, _edf_signal()),
    made("edf-open", ".edf", "EDF, number of records never written", _edf_file(declared=-1), _edf_signal()),
    made(
        "edf-flat",
        ".edf",
        "EDF, a channel with equal physical limits",
        _edf_file(flat=["B"]),
        _edf_signal(data=np.stack([_CODES[0] * 0.1, _CODES[1] * 0.0])),
    ),
    made("edf-nul", ".edf", "EDF padded with NUL", _edf_file(pad=b"\0"), _edf_signal()),
    made("edf-repeated", ".edf", "EDF, repeated labels", _edf_file(labels=["A", "A"]), _edf_signal(("A", "A"))),
    made(
        "edf-latin-1",
        ".edf",
        "EDF in Latin-1",
        _edf_file(_latin_1, labels=["Débit", "B"]),
        _edf_signal(("Débit", "B")),
    ),
    real("bdf", "bdf", "eeg", ".bdf", "BDF+", "bdf/multiple_annotation_chans.bdf"),
    Case(
        name="bdf-mixed",
        format="bdf",
        modality="eeg",
        bids="sub-01_task-a_eeg.bdf",
        what="BDF, several rates",
        source="written by the test",
        reader="pyEDFlib",
        put=lambda primary, _: primary.write_bytes(bdf_bytes(("A", "B", "C"), (512, 512, 64), 8)) and None,
        read=by_edf,
    ),
)

# -- BrainVision

_TENTHS = np.round(tones(3, 2000, 1000.0) / 0.1)
_BRAINVISION = SourceSignal(("E1", "E2", "E3"), 1000.0, _TENTHS * 1e-7)
_UNSIGNED = SourceSignal(("E1", "E2", "E3"), 1000.0, (_TENTHS + 20_000) * 1e-7)


def _brainvision(kind: str, code: str, *, vectorized: bool = False, big_endian: bool = False, **names: str) -> Put:
    def put(primary: Path, _recordings: Path) -> None:
        header = brainvision(primary.parent, primary.stem, _TENTHS * 0.1, 1000.0, data_file=names.get("data_file"))
        text = header.read_text(encoding="utf-8").replace("BinaryFormat=INT_16", f"BinaryFormat={kind}")
        text = text.replace("MULTIPLEXED", "VECTORIZED") if vectorized else text
        text = text.replace("[Channel Infos]", "UseBigEndianOrder=YES\n[Channel Infos]") if big_endian else text
        header.write_text(text, encoding="utf-8")
        if names.get("marker") == "missing":
            header.with_suffix(".vmrk").unlink()
        data = (_TENTHS + 20_000 if code == "u2" else _TENTHS).astype((">" if big_endian else "<") + code)
        np.ascontiguousarray(data if vectorized else data.T).tofile(header.with_suffix(".eeg"))

    return put


def _bv(name: str, what: str, put: Put, signal: SourceSignal = _BRAINVISION) -> Case:
    return made(f"brainvision-{name}", ".vhdr", f"BrainVision, {what}", put, signal)


_TEST_CA = tuple(f"brainvision/test_CA_208.{ending}" for ending in ("vhdr", "eeg", "vmrk"))


def _put_renamed(primary: Path, recordings: Path) -> None:
    """As BIDS renames it; its reader outside this project follows the old names inside, so it gets the old files."""
    copied(*_TEST_CA)(primary, recordings)
    (primary.parent / "classic").mkdir()
    for origin in _TEST_CA:
        shutil.copyfile(recordings / origin, primary.parent / "classic" / Path(origin).name)


_BRAINVISION_CASES = (
    Case(
        name="brainvision",
        format="brainvision",
        modality="eeg",
        bids="sub-01_task-a_eeg.vhdr",
        what="BrainVision, renamed, old names inside",
        source=f"`{_TEST_CA[0]}`",
        reader="MNE",
        put=_put_renamed,
        read=lambda primary, _: read_mne(primary.parent / "classic" / Path(_TEST_CA[0]).name),
    ),
    _bv("stale", "stale DataFile, no markers", _brainvision("INT_16", "i2", data_file="old.eeg", marker="missing")),
    _bv("vectorized", "INT_16 vectorized", _brainvision("INT_16", "i2", vectorized=True)),
    _bv("int32", "INT_32", _brainvision("INT_32", "i4")),
    _bv("float32", "IEEE_FLOAT_32", _brainvision("IEEE_FLOAT_32", "f4")),
    _bv("float32-vectorized", "IEEE_FLOAT_32 vectorized", _brainvision("IEEE_FLOAT_32", "f4", vectorized=True)),
    _bv("uint16", "UINT_16", _brainvision("UINT_16", "u2"), _UNSIGNED),
    _bv("float64", "IEEE_FLOAT_64", _brainvision("IEEE_FLOAT_64", "f8")),
    _bv("big-endian", "INT_16 big-endian", _brainvision("INT_16", "i2", big_endian=True)),
)

# -- EEGLAB

_SINGLE = tones(4, 2000, 500.0).astype(np.float32)
_EEGLAB_UNNAMED = SourceSignal(
    ("Channel1", "Channel2", "Channel3", "Channel4"), 500.0, _SINGLE.astype(float), ("uV",) * 4
)
_EEGLAB = SourceSignal(("E1", "E2", "E3", "E4"), 500.0, _SINGLE.astype(float), ("uV",) * 4)


def _set(*, fdt: bool = False, compressed: bool = True, nested: bool = True, spelled: str = "") -> Put:
    def put(primary: Path, _recordings: Path) -> None:
        written = eeglab(
            primary.with_name("old.set"), _SINGLE, 500.0, fdt=fdt, compressed=compressed, nested=nested
        ).rename(primary)
        if fdt:
            written.with_name("old.fdt").rename(primary.with_suffix(spelled or ".fdt"))

    return put


def _classic_twin(primary: Path, _rate_hz: float) -> SourceSignal:
    """The same recording in the older form, which MNE reads; it was put beside under another name."""
    return read_mne(primary.parent / "classic" / "test_raw.set")


def _put_v73(primary: Path, recordings: Path) -> None:
    shutil.copyfile(recordings / "eeglab/test_raw_h5.set", primary)
    shutil.copyfile(recordings / "eeglab/test_raw.fdt", primary.with_suffix(".fdt"))
    (primary.parent / "classic").mkdir()
    for ending in ("set", "fdt"):
        shutil.copyfile(recordings / f"eeglab/test_raw.{ending}", primary.parent / f"classic/test_raw.{ending}")


_EEGLAB_CASES = (
    real(
        "eeglab", "eeglab", "eeg", ".set", "EEGLAB, MATLAB 5 with `.fdt`", "eeglab/test_raw.set", "eeglab/test_raw.fdt"
    ),
    Case(
        name="eeglab-7.3",
        format="eeglab",
        modality="eeg",
        bids="sub-01_task-a_eeg.set",
        what="EEGLAB, MATLAB 7.3 with `.fdt`",
        source="`eeglab/test_raw_h5.set`",
        reader="MNE, from its MATLAB 5 twin",
        put=_put_v73,
        read=_classic_twin,
    ),
    made("eeglab-embedded", ".set", "EEGLAB, MATLAB 5, embedded", _set(), _EEGLAB),
    made(
        "eeglab-7.3-embedded",
        ".set",
        "EEGLAB, MATLAB 7.3, embedded",
        lambda primary, _: eeglab_v73(primary, _SINGLE, 500.0) and None,
        _EEGLAB_UNNAMED,
    ),
    made(
        "eeglab-flat",
        ".set",
        "EEGLAB, fields without a struct",
        _set(compressed=False, nested=False),
        _EEGLAB,
    ),
    made("eeglab-renamed", ".set", "EEGLAB, another `.fdt` declared", _set(fdt=True), _EEGLAB),
    made("eeglab-case", ".set", "EEGLAB with `.FDT`", _set(fdt=True, spelled=".FDT"), _EEGLAB),
)

# -- MEG and MEF3

_TESLA = tones(3, 3000, 1000.0) * 1e-14


def _split(primary: Path, _recordings: Path) -> None:
    data = np.random.default_rng(0).normal(size=(20, 60_000)) * 1e-12
    fif(primary.with_name("sub-01_task-a_meg.fif"), data, 1000.0, split_bytes="3MB")


def _compressed(primary: Path, recordings: Path) -> None:
    primary.write_bytes(gzip.compress((recordings / "fif/mgh70_raw.fif").read_bytes(), compresslevel=1, mtime=0))


def _kit_as_con(primary: Path, _rate_hz: float) -> SourceSignal:
    """MNE's entrance knows no .kdf; the same bytes under another ending."""
    twin = primary.parent / "twin.con"
    shutil.copyfile(primary, twin)
    try:
        return read_mne(twin)
    finally:
        twin.unlink()


def _renamed_ctf(primary: Path, recordings: Path) -> None:
    continuous_ctf(recordings, primary.with_name("old.ds")).rename(primary)


def _ctf_under_its_name(primary: Path, _rate_hz: float) -> SourceSignal:
    twin = primary.parent / "twin" / "old.ds"
    shutil.copytree(primary, twin)
    return read_mne(twin)


_INTEGERS = np.round(tones(2, 2560, 256.0) * 10)

_OTHER_CASES = (
    real("fif", "fif", "meg", ".fif", "FIF", "fif/mgh70_raw.fif"),
    Case(
        name="fif-split",
        format="fif",
        modality="meg",
        bids="sub-01_task-a_split-01_meg.fif",
        what="FIF in splits",
        source="written by the test",
        reader="MNE",
        put=_split,
        read=by_mne,
    ),
    Case(
        name="fif-gz",
        format="fif",
        modality="meg",
        bids="sub-01_task-a_meg.fif.gz",
        what="FIF, compressed",
        source="`fif/mgh70_raw.fif`, compressed",
        reader="MNE",
        put=_compressed,
        read=by_mne,
    ),
    Case(
        name="ctf",
        format="ctf",
        modality="meg",
        bids="sub-01_task-a_meg.ds",
        what="CTF",
        source=f"`{ORIGIN}`, its clock made to go on",
        reader="MNE",
        put=lambda primary, recordings: continuous_ctf(recordings, primary) and None,
        read=by_mne,
    ),
    Case(
        name="ctf-renamed",
        format="ctf",
        modality="meg",
        bids="sub-01_task-a_meg.ds",
        what="CTF, renamed, old names inside",
        source=f"`{ORIGIN}`, likewise",
        reader="MNE",
        put=_renamed_ctf,
        read=_ctf_under_its_name,
    ),
    real("kit-con", "kit", "meg", ".con", "KIT", "kit/MQKIT_125_2sec.con"),
    real("kit-sqd", "kit", "meg", ".sqd", "KIT `.sqd`", "kit/MQKIT_125_2sec.con"),
    Case(
        name="kit-kdf",
        format="kit",
        modality="meg",
        bids="sub-01_task-a_meg.kdf",
        what="KIT `.kdf`",
        source="`kit/MQKIT_125_2sec.con`",
        reader="MNE",
        put=copied("kit/MQKIT_125_2sec.con"),
        read=_kit_as_con,
    ),
    real("bti", "bti", "meg", "", "4D/BTi", "bti/4Dsim"),
    made(
        "mef3",
        ".mefd",
        "MEF3",
        lambda primary, _: mefd(primary, _INTEGERS, 256.0) and None,
        SourceSignal(("ch01", "ch02"), 256.0, _INTEGERS * 1e-6),
    ),
)

# -- VneuroTK

_LEVELS = np.round(tones(5, 3000, 1000.0) * 3e-6, 9)


def _vneurotk(name: str, what: str, data: np.ndarray, *, units: bool = False, **changes: object) -> Case:
    """Floats are written as they are; ``units``: the file names them, and else none is known."""

    def put(primary: Path, _recordings: Path) -> None:
        info = {"ch_units": ["V"] * len(data)} if units else None
        write_vneurotk(primary, data, 1000.0, info=info, **changes)  # type: ignore[arg-type]  # its own keywords

    labels = tuple(f"E{row + 1}" for row in range(len(data)))
    unit = "V" if units else "n/a"
    signal = SourceSignal(labels, 1000.0, data.astype(np.float64), (unit,) * len(data))
    return made(f"vneurotk-{name}", ".h5", f"VneuroTK, {what}", put, signal)


_VNEUROTK_CASES = (
    _vneurotk("1", "schema 1, float64 in V", _LEVELS, units=True),
    _vneurotk("1-float32", "schema 1, float32, no unit", _LEVELS.astype(np.float32)),
    _vneurotk(
        "1-columns", "schema 1, int16, a chunk per channel", np.round(_LEVELS * 1e8).astype(np.int16), chunks=(3000, 1)
    ),
    _vneurotk("0", "schema 0", _LEVELS, schema=0, mode="continues"),
)

CASES = (*_EDF_CASES, *_BRAINVISION_CASES, *_EEGLAB_CASES, *_OTHER_CASES, *_VNEUROTK_CASES)
"""Every case; each name is used once."""
