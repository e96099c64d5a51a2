"""Recordings that are cut, mislabelled, renamed or stranger than their format allows."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from corpus_row import Expected, Failed, Place, Row, Served, channels, edf, plain, signal, steps
from reference_signal import SourceSignal
from small_files import brainvision, edf_bytes, eeglab, eeglab_v73, fif, mefd, shielded, tones

KEY = f"SHA256E-s99000--{'cd' * 32}"


def row(kind: str, name: str, ending: str, write: Callable[[Place], object], expect: Expected) -> Row:
    return Row(kind=kind, name=name, ending=ending, write=write, expect=expect)


def _put(content: bytes, ending: str = "_eeg.edf", **beside: str) -> Callable[[Place], object]:
    def write(place: Place) -> None:
        place.put(ending, content)
        for kind, text in beside.items():
            place.put(f"_{kind}.tsv", text)

    return write


# -- EDF ----------------------------------------------------------------------------------------------------------------

REPEATED = ("A", "B", "B", "-")
_FOUR = {"eeg_100hz": replace(signal(REPEATED), labels=("A", "B-0", "B-1", "-"))}
_SHORT = {"eeg_100hz": SourceSignal(("A", "B"), 100.0, signal().data[:, :300], ("uV", "uV"))}
CHANNELS = "sub-{name}/eeg/{stem}_channels.tsv"


def _with_field(data: bytes, at: int, text: bytes) -> bytes:
    """The EDF with another text at this byte of its header."""
    return data[:at] + text + data[at + len(text) :]


def _limits(
    data: bytes, *, physical: tuple[bytes, bytes] | None = None, digital: tuple[bytes, bytes] | None = None
) -> bytes:
    """The EDF of two signals with other limits of the first."""
    labels = 256 + 2 * (16 + 80 + 8)
    for start, pair in ((labels, physical), (labels + 32, digital)):
        if pair is not None:
            data = _with_field(data, start, pair[0].ljust(8))
            data = _with_field(data, start + 16, pair[1].ljust(8))
    return data


# record length, samples of each channel in a record, and the group that each becomes with its served rate
_MIXED_S = 2
_MIXED = {"A": 400, "B": 25, "C": 2000, "D": 400, "E": 1024}
_RATES = (
    ("eeg_200hz", ("A", "D"), 200.0, 200.0),
    ("eeg_12hz", ("B",), 12.5, 12.5),
    ("eeg_250hz", ("C",), 1000.0, 250.0),
    ("eeg_250hz_from512", ("E",), 512.0, 250.0),
)


def _mixed_edf(n_records: int = 4) -> bytes:
    """Channels of four native rates in one file, a tone of its own in each."""
    data = np.zeros((len(_MIXED), max(_MIXED.values()) * n_records), dtype=np.int16)
    for into, count in zip(data, _MIXED.values(), strict=True):
        tone = tones(1, count * n_records, count / _MIXED_S)[0]
        into[: len(tone)] = np.round(tone * (count % 7 + 1) * 10)
    return edf_bytes(
        tuple(_MIXED), per_record=tuple(_MIXED.values()), n_records=n_records, record_s=str(_MIXED_S), data=data
    )


def _raw_signals(content: bytes) -> dict[str, SourceSignal]:
    """What the bytes of ``_mixed_edf`` hold, each channel cut out of every record and each group by its native rate."""
    counts = list(_MIXED.values())
    records = np.frombuffer(content, "<i2", offset=256 * (len(counts) + 1)).reshape(-1, sum(counts))
    starts = dict(zip(_MIXED, np.cumsum([0, *counts[:-1]]), strict=True))
    values = {name: records[:, starts[name] : starts[name] + count].ravel() * 0.1 for name, count in _MIXED.items()}
    return {
        group: SourceSignal(labels, native, np.stack([values[name] for name in labels]), ("uV",) * len(labels))
        for group, labels, native, _ in _RATES
    }


def _mixed_groups(seconds: float) -> list[dict[str, object]]:
    """The groups of the index entry."""
    return [
        {
            "name": group,
            "rate": rate,
            "source_rate_hz": native,
            "modality": "EEG",
            "n_channels": len(labels),
            "n_samples": round(seconds * rate),
            "duration_s": seconds,
        }
        for group, labels, native, rate in _RATES
    ]


EDF = [
    row(
        "EDF of several rates",
        "mixedrates",
        "_eeg.edf",
        _put(_mixed_edf()),
        Served(signals=_raw_signals(_mixed_edf()), units=("uV",) * 5, entry={"groups": _mixed_groups(8.0)}),
    ),
    row(
        "EDF of several rates",
        "mixedtsv",
        "_eeg.edf",
        _put(_mixed_edf(), channels=channels("E", "C", "B", "A", "D")),
        Served(
            signals=_raw_signals(_mixed_edf()),
            units=("uV",) * 5,
            match=(5, 0, 0, 0),
            entry={"groups": _mixed_groups(8.0)},
        ),
    ),
    row(
        "EDF of several rates",
        "mixedcut",
        "_eeg.edf",
        _put(_mixed_edf()[:-200]),
        Failed(code="corrupt_or_truncated"),
    ),
    row(
        "repeated labels",
        "repeated",
        "_eeg.edf",
        _put(edf(REPEATED)),
        Served(signals=_FOUR, units=("uV",) * 4),
    ),
    row(
        "repeated labels",
        "repeatedtsv",
        "_eeg.edf",
        _put(edf(REPEATED), channels=channels("A", "B", "-")),
        Served(
            signals=_FOUR,
            units=("uV",) * 4,
            match=(2, 0, 2, 1),
            notes=(
                f"{CHANNELS}: 2 channels without a row keep the file's type and unit (B-0, B-1)",
                f"{CHANNELS}: 1 names that the file repeats are applied to none of their channels (B)",
            ),
        ),
    ),
    row("EDF never finalised", "nrecunknown", "_eeg.edf", _put(edf(declared=-1)), plain()),
    row(
        "EDF never finalised",
        "nrecunknowncut",
        "_eeg.edf",
        _put(edf(declared=-1)[:-200]),
        plain(signals=_SHORT, notes=("the last 200 bytes are no whole data record and are not served",)),
    ),
    row("EDF cut", "edfhalfrecord", "_eeg.edf", _put(edf()[:-200]), Failed(code="corrupt_or_truncated")),
    row("EDF cut", "edfnorecord", "_eeg.edf", _put(edf()[: 256 * 3]), Failed(code="corrupt_or_truncated")),
    row("EDF cut", "edfinheader", "_eeg.edf", _put(edf()[:300]), Failed(code="corrupt_or_truncated")),
    row("EDF cut", "edfinfirst", "_eeg.edf", _put(edf()[:100]), Failed(code="corrupt_or_truncated")),
    row(
        "EDF that a strict reader refuses",
        "edfflat",
        "_eeg.edf",
        _put(edf(flat=("B",))),
        plain(
            signals={
                "eeg_100hz": SourceSignal(("A", "B"), 100.0, signal().data * np.array([[1.0], [0.0]]), ("uV", "uV"))
            }
        ),
    ),
    row("EDF that a strict reader refuses", "edfnul", "_eeg.edf", _put(edf(pad=b"\0")), plain()),
    row(
        "EDF limits",
        "edfinverted",
        "_eeg.edf",
        _put(_limits(edf(), physical=(b"3276.7", b"-3276.8"))),
        plain(
            signals={
                "eeg_100hz": SourceSignal(
                    ("A", "B"), 100.0, signal().data * np.array([[-1.0], [1.0]]) - [[0.1], [0.0]], ("uV", "uV")
                )
            }
        ),
    ),
    row(
        "EDF limits",
        "edfnodigital",
        "_eeg.edf",
        _put(_limits(edf(), digital=(b"5", b"5"))),
        Failed(code="corrupt_or_truncated", detail="no scale"),
    ),
    row(
        "EDF limits",
        "edftextlimit",
        "_eeg.edf",
        _put(_limits(edf(), physical=(b"low", b"high"))),
        Failed(code="corrupt_or_truncated"),
    ),
    row(
        "EDF without signals",
        "edfnosignal",
        "_eeg.edf",
        _put(edf_bytes((), n_records=1)),
        Failed(code="empty_recording"),
    ),
    row(
        "EDF without signals",
        "edfannotations",
        "_eeg.edf",
        _put(edf_bytes(("EDF Annotations",), reserved="EDF+C", n_records=2)),
        Failed(code="empty_recording"),
    ),
    row(
        "EDF without signals",
        "edfzerorecords",
        "_eeg.edf",
        _put(edf_bytes(("A", "B"), n_records=0)),
        Failed(code="corrupt_or_truncated", detail="0 data records"),
    ),
    row(
        "EDF of one",
        "edfonechannel",
        "_eeg.edf",
        _put(edf(("A",))),
        Served(signals={"eeg_100hz": signal(("A",))}, units=("uV",)),
    ),
    row(
        "EDF of one",
        "edfonesample",
        "_eeg.edf",
        _put(edf_bytes(("A",), per_record=[1], n_records=1, data=np.array([[700]]))),
        Served(signals={"eeg_1hz": SourceSignal(("A",), 1.0, np.array([[70.0]]), ("uV",))}, units=("uV",)),
    ),
    row(
        "EDF labels in another encoding",
        "edflatin",
        "_eeg.edf",
        _put(edf(("Ä", "B"))),
        Served(
            signals={"eeg_100hz": replace(signal(), labels=("Ä", "B"))},
            units=("uV", "uV"),
        ),
    ),
    row(
        "EDF with bytes after its end",
        "edftail",
        "_eeg.edf",
        _put(edf() + b"\0" * 1000),
        plain(notes=("the file holds 6 data records and declares 4; only these are served",)),
    ),
]


# -- what is no recording of its kind -----------------------------------------------------------------------------------

_RANDOM = np.random.default_rng(9).integers(0, 256, 4096, dtype=np.uint8).tobytes()
GARBAGE = [
    row("garbage", "garbageedf", "_eeg.edf", _put(_RANDOM), Failed(code="corrupt_or_truncated")),
    row("garbage", "garbageset", "_eeg.set", _put(_RANDOM, "_eeg.set"), Failed(code="corrupt_or_truncated")),
    row("garbage", "garbagefif", "_meg.fif", _put(_RANDOM, "_meg.fif"), Failed(code="corrupt_or_truncated")),
    row("garbage", "garbagevhdr", "_eeg.vhdr", _put(_RANDOM, "_eeg.vhdr"), Failed(code="corrupt_or_truncated")),
    row("garbage", "garbagecon", "_meg.con", _put(_RANDOM, "_meg.con"), Failed(code="corrupt_or_truncated")),
    row("garbage", "garbagebdf", "_eeg.bdf", _put(_RANDOM, "_eeg.bdf"), Failed(code="corrupt_or_truncated")),
    row("nothing", "zeroedf", "_eeg.edf", _put(b""), Failed(code="corrupt_or_truncated")),
    row("nothing", "zeroset", "_eeg.set", _put(b"", "_eeg.set"), Failed(code="corrupt_or_truncated")),
    row("nothing", "zerofif", "_meg.fif", _put(b"", "_meg.fif"), Failed(code="corrupt_or_truncated")),
    row("nothing", "zerovhdr", "_eeg.vhdr", _put(b"", "_eeg.vhdr"), Failed(code="corrupt_or_truncated")),
    row("another format's name", "edfasbdf", "_eeg.bdf", _put(edf(), "_eeg.bdf"), Failed(code="corrupt_or_truncated")),
    row("another format's name", "edfasset", "_eeg.set", _put(edf(), "_eeg.set"), Failed(code="corrupt_or_truncated")),
    row("another format's name", "edfasfif", "_eeg.fif", _put(edf(), "_eeg.fif"), Failed(code="corrupt_or_truncated")),
    row("endings in capitals", "capitals", "_eeg.EDF", _put(edf(), "_eeg.EDF"), plain()),
]

# -- content that is elsewhere ------------------------------------------------------------------------------------------


def _link(place: Place) -> None:
    place.at("_eeg.edf").symlink_to(f"../../.git/annex/objects/aa/bb/{KEY}/{KEY}")


def _plain_link(place: Place) -> None:
    place.put("kept.dat", edf())
    place.at("_eeg.edf").symlink_to("kept.dat")


def _outside(place: Place) -> None:
    outside = place.root.parent / "elsewhere.edf"
    outside.write_bytes(edf())
    place.at("_eeg.edf").symlink_to(outside)


POINTERS = [
    row(
        "pointers",
        "pointedf",
        "_eeg.edf",
        _put(f"/annex/objects/{KEY}\n".encode()),
        Failed(code="annex_object_missing"),
    ),
    row("pointers", "pointlink", "_eeg.edf", _link, Failed(code="annex_object_missing")),
    row(
        "pointers",
        "pointworm",
        "_eeg.edf",
        _put(b"/annex/objects/WORM-m1400000000--run-s5.edf\n"),
        Failed(code="annex_object_missing"),
    ),
    row(
        "pointers",
        "pointlfs",
        "_eeg.edf",
        _put(b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 100000\n"),
        Failed(code="annex_object_missing"),
    ),
    row("links", "linkinside", "_eeg.edf", _plain_link, plain()),
    row(
        "links", "linkoutside", "_eeg.edf", _outside, Failed(code="file_read_error", detail="leads out of the dataset")
    ),
]

# -- BrainVision --------------------------------------------------------------------------------------------------------

_UV = signal(("E1", "E2"))
_BV = {"eeg_100hz": _UV}


def bv(**more: object) -> Served:
    return Served(**({"signals": _BV, "units": ("V", "V")} | more))  # type: ignore[arg-type]  # named by the caller


def _brainvision(place: Place, *, edit: Mapping[str, str] | None = None, header: bytes | None = None) -> None:
    """The triple of ``_UV``; ``edit`` replaces texts of its header."""
    path = brainvision(place.folder, f"{place.stem}_eeg", _UV.data, 100.0)
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
    _float32(place, _UV.data)


def _bv_vectorized(place: Place) -> None:
    _brainvision(place, edit={"DataOrientation=MULTIPLEXED": "DataOrientation=VECTORIZED\nDataPoints=400"})
    steps(_UV).astype("<i2").tofile(place.at("_eeg.eeg"))


def _rename(old: str, new: str) -> Callable[[Place], object]:
    return lambda place: place.at(old).rename(place.at(new))


def _without(name: str) -> Callable[[Place], object]:
    return lambda place: place.at(name).unlink()


def _shorten(name: str, by: int) -> Callable[[Place], object]:
    def cut(place: Place) -> None:
        path = place.at(name)
        path.write_bytes(path.read_bytes()[:-by])

    return cut


def _constant_and_nan(place: Place) -> None:
    data = _UV.data.copy()
    data[1] = 7.5
    _float32(place, data)


def _with_nan(place: Place) -> None:
    data = _UV.data.copy()
    data[0, 100:110] = np.nan
    data[0, 200] = np.inf
    _float32(place, data)


_FILLED = _UV.data.copy()
_FILLED[0, 100:110] = 0
_FILLED[0, 200] = 0
_FLAT = _UV.data.copy()
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
    row("BrainVision renamed", "bvcase", "_eeg.vhdr", _bv(after=_rename("_eeg.eeg", "_eeg.EEG")), bv()),
    row("BrainVision renamed", "bvgone", "_eeg.vhdr", _bv(after=_without("_eeg.eeg")), Failed(code="file_read_error")),
    row(
        "BrainVision renamed",
        "bvpath",
        "_eeg.vhdr",
        _bv({"DataFile={stem}_eeg.eeg": "DataFile=C:\\data\\s2\\run1.eeg"}),
        bv(),
    ),
    row("BrainVision markers", "bvnomarkerline", "_eeg.vhdr", _bv({"MarkerFile={stem}_eeg.vmrk\n": ""}), bv()),
    row("BrainVision markers", "bvnomarkers", "_eeg.vhdr", _bv(after=_without("_eeg.vmrk")), bv()),
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
        _bv(after=_shorten("_eeg.eeg", 1)),
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

# -- EEGLAB -------------------------------------------------------------------------------------------------------------


def _single(source: SourceSignal) -> SourceSignal:
    return replace(source, data=source.data.astype(np.float32).astype(float))


_SET = {"eeg_100hz": _single(_UV)}


def eeg(**more: object) -> Served:
    return Served(**({"signals": _SET, "units": ("uV", "uV")} | more))  # type: ignore[arg-type]  # named by the caller


def _set(after: Callable[[Place], object] = lambda _: None, **more: object) -> Callable[[Place], object]:
    def write(place: Place) -> None:
        eeglab(place.at("_eeg.set"), _UV.data, 100.0, **more)  # type: ignore[arg-type]  # as there
        after(place)

    return write


def _column_chanlocs(place: Place) -> None:
    _resaved(place, chanlocs=np.array([[(f"E{i + 1}",)] for i in range(2)], dtype=[("labels", object)]))


def _resaved(place: Place, **fields: object) -> None:
    """The .set with other fields in its EEG structure."""
    from scipy.io import loadmat, savemat

    path = eeglab(place.at("_eeg.set"), _UV.data, 100.0)
    known = loadmat(path, simplify_cells=True)["EEG"]
    known["chanlocs"] = np.array([(f"E{i + 1}",) for i in range(2)], dtype=[("labels", object)])
    savemat(path, {"EEG": {**known, **fields}})


def _vector_latency(place: Place) -> None:
    latencies = np.empty(1, dtype=[("type", object), ("latency", object)])
    latencies[0] = ("go", np.array([10.0, 20.0]))
    _resaved(place, event=latencies)


def _alleeg(place: Place) -> None:
    from scipy.io import loadmat, savemat

    path = eeglab(place.at("_eeg.set"), _UV.data, 100.0)
    one = loadmat(path)["EEG"]
    savemat(path, {"ALLEEG": np.concatenate([one, one], axis=1)})


def _wide(place: Place) -> None:
    eeglab(place.at("_eeg.set"), tones(2, 4096, 1024.0), 1024.0)


def _renamed(place: Place) -> None:
    """The pair of a recording that was called run1, whose header goes on naming run1.fdt."""
    eeglab(place.at("run1.set"), _UV.data, 100.0, fdt=True, compressed=False)
    for ending in ("set", "fdt"):
        place.at(f"run1.{ending}").rename(place.at(f"_eeg.{ending}"))
    assert b"run1.fdt" in place.at("_eeg.set").read_bytes()


def _moved(place: Place) -> None:
    eeglab(place.at("_eeg.set"), _UV.data, 100.0, fdt=True)
    place.at("_eeg.fdt").rename(place.at(f"/derivatives/{place.name}.fdt"))


def _hdf5(place: Place) -> None:
    import h5py

    with h5py.File(place.at("_eeg.set"), "w") as file:
        file["numbers"] = np.arange(10)


def _v73(place: Place, **more: object) -> None:
    eeglab_v73(place.at("_eeg.set"), _UV.data, 100.0, **more)  # type: ignore[arg-type]  # as there


def _v73_flat(place: Place) -> None:
    import h5py

    with h5py.File(_at_v73(place), "r+") as file:
        for name in list(file["EEG"]):
            file.move(f"EEG/{name}", name)
        del file["EEG"]


def _at_v73(place: Place):
    _v73(place)
    return place.at("_eeg.set")


_UNNAMED = {"eeg_100hz": replace(_single(_UV), labels=("Channel1", "Channel2"))}

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
    row(
        "EEGLAB data file", "fdtgone", "_eeg.set", _set(_without("_eeg.fdt"), fdt=True), Failed(code="file_read_error")
    ),
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
        _set(_shorten("_eeg.fdt", 1600), fdt=True),
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
        "EEGLAB structures", "setcut", "_eeg.set", _set(_shorten("_eeg.set", 700)), Failed(code="corrupt_or_truncated")
    ),
    row(
        "EEGLAB structures",
        "setnorate",
        "_eeg.set",
        lambda place: eeglab(place.at("_eeg.set"), _UV.data, 0.0),
        Failed(code="file_read_error", detail="no sampling rate"),
    ),
]

# -- FIF, KIT and folders -----------------------------------------------------------------------------------------------

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
        lambda place: (_fif(place), _shorten("_meg.fif", 1500)(place)),
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

ROWS = [*EDF, *GARBAGE, *POINTERS, *BRAINVISION, *EEGLAB, *OTHERS]
