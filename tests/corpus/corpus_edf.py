"""EDF that is cut, mislabelled or stranger than the format allows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from corpus_putting import putting, row
from corpus_row import Failed, Served, channels, edf, plain, signal
from reference_signal import SourceSignal
from small_files import edf_bytes, tones

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
        putting(_mixed_edf()),
        Served(signals=_raw_signals(_mixed_edf()), units=("uV",) * 5, entry={"groups": _mixed_groups(8.0)}),
    ),
    row(
        "EDF of several rates",
        "mixedtsv",
        "_eeg.edf",
        putting(_mixed_edf(), channels=channels("E", "C", "B", "A", "D")),
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
        putting(_mixed_edf()[:-200]),
        Failed(code="corrupt_or_truncated"),
    ),
    row(
        "repeated labels",
        "repeated",
        "_eeg.edf",
        putting(edf(REPEATED)),
        Served(signals=_FOUR, units=("uV",) * 4),
    ),
    row(
        "repeated labels",
        "repeatedtsv",
        "_eeg.edf",
        putting(edf(REPEATED), channels=channels("A", "B", "-")),
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
    row("EDF never finalised", "nrecunknown", "_eeg.edf", putting(edf(declared=-1)), plain()),
    row(
        "EDF never finalised",
        "nrecunknowncut",
        "_eeg.edf",
        putting(edf(declared=-1)[:-200]),
        plain(signals=_SHORT, notes=("the last 200 bytes are no whole data record and are not served",)),
    ),
    row("EDF cut", "edfhalfrecord", "_eeg.edf", putting(edf()[:-200]), Failed(code="corrupt_or_truncated")),
    row("EDF cut", "edfnorecord", "_eeg.edf", putting(edf()[: 256 * 3]), Failed(code="corrupt_or_truncated")),
    row("EDF cut", "edfinheader", "_eeg.edf", putting(edf()[:300]), Failed(code="corrupt_or_truncated")),
    row("EDF cut", "edfinfirst", "_eeg.edf", putting(edf()[:100]), Failed(code="corrupt_or_truncated")),
    row(
        "EDF that a strict reader refuses",
        "edfflat",
        "_eeg.edf",
        putting(edf(flat=("B",))),
        plain(
            signals={
                "eeg_100hz": SourceSignal(("A", "B"), 100.0, signal().data * np.array([[1.0], [0.0]]), ("uV", "uV"))
            }
        ),
    ),
    row("EDF that a strict reader refuses", "edfnul", "_eeg.edf", putting(edf(pad=b"\0")), plain()),
    row(
        "EDF limits",
        "edfinverted",
        "_eeg.edf",
        putting(_limits(edf(), physical=(b"3276.7", b"-3276.8"))),
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
        putting(_limits(edf(), digital=(b"5", b"5"))),
        Failed(code="corrupt_or_truncated", detail="no scale"),
    ),
    row(
        "EDF limits",
        "edftextlimit",
        "_eeg.edf",
        putting(_limits(edf(), physical=(b"low", b"high"))),
        Failed(code="corrupt_or_truncated"),
    ),
    row(
        "EDF without signals",
        "edfnosignal",
        "_eeg.edf",
        putting(edf_bytes((), n_records=1)),
        Failed(code="empty_recording"),
    ),
    row(
        "EDF without signals",
        "edfannotations",
        "_eeg.edf",
        putting(edf_bytes(("EDF Annotations",), reserved="EDF+C", n_records=2)),
        Failed(code="empty_recording"),
    ),
    row(
        "EDF without signals",
        "edfzerorecords",
        "_eeg.edf",
        putting(edf_bytes(("A", "B"), n_records=0)),
        Failed(code="corrupt_or_truncated", detail="0 data records"),
    ),
    row(
        "EDF of one",
        "edfonechannel",
        "_eeg.edf",
        putting(edf(("A",))),
        Served(signals={"eeg_100hz": signal(("A",))}, units=("uV",)),
    ),
    row(
        "EDF of one",
        "edfonesample",
        "_eeg.edf",
        putting(edf_bytes(("A",), per_record=[1], n_records=1, data=np.array([[700]]))),
        Served(signals={"eeg_1hz": SourceSignal(("A",), 1.0, np.array([[70.0]]), ("uV",))}, units=("uV",)),
    ),
    row(
        "EDF labels in another encoding",
        "edflatin",
        "_eeg.edf",
        putting(edf(("Ä", "B"))),
        Served(
            signals={"eeg_100hz": replace(signal(), labels=("Ä", "B"))},
            units=("uV", "uV"),
        ),
    ),
    row(
        "EDF with bytes after its end",
        "edftail",
        "_eeg.edf",
        putting(edf() + b"\0" * 1000),
        plain(notes=("the file holds 6 data records and declares 4; only these are served",)),
    ),
]
