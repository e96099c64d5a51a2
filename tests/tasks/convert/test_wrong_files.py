"""Every way a file is wrong, with the code that its conversion fails with."""

from __future__ import annotations

from pathlib import Path

import pytest
from conversion import Bench, recording_at
from small_files import brainvision, edf_bytes, eeglab, eeglab_v73, tones

from contract.codes import FailureCode
from contract.errors import RecordingFailed
from tasks.convert.verdict import VerdictKind, classify

EEG = "sub-01/eeg/sub-01_task-a_eeg"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def edf_of(bench: Bench, **changes: object) -> None:
    bench.put(f"{EEG}.edf", edf_bytes(**changes))  # type: ignore[arg-type]  # the callers' keywords


def _epoched(bench: Bench) -> None:
    eeglab(bench.source / f"{EEG}.set", tones(2, 600, 250.0), 250.0, trials=3)


def _epoched_fdt(bench: Bench) -> None:
    eeglab(bench.source / f"{EEG}.set", tones(2, 600, 250.0), 250.0, trials=3, fdt=True)


def _epoched_73(bench: Bench) -> None:
    eeglab_v73(bench.source / f"{EEG}.set", tones(2, 600, 250.0), 250.0, trials=3)


def _no_fdt(bench: Bench) -> None:
    eeglab(bench.source / f"{EEG}.set", tones(2, 600, 250.0), 250.0, fdt=True).with_suffix(".fdt").unlink()


def _no_eeg(bench: Bench) -> None:
    brainvision(bench.source / "sub-01/eeg", "sub-01_task-a_eeg", tones(2, 600, 250.0), 250.0).with_suffix(
        ".eeg"
    ).unlink()


def _pointer(bench: Bench) -> None:
    bench.put(f"{EEG}.edf", "/annex/objects/SHA256E-s100--aa.edf\n")


def _dangling(bench: Bench) -> None:
    bench.put(f"{EEG}.edf", b"").unlink()
    (bench.source / f"{EEG}.edf").symlink_to("../../.git/annex/objects/a/b/c")


WRONG = [
    (
        "a truncated EDF",
        "edf",
        ".edf",
        lambda b: b.put(f"{EEG}.edf", edf_bytes()[:-300]),
        FailureCode.CORRUPT_OR_TRUNCATED,
    ),
    ("only annotations", "edf", ".edf", lambda b: edf_of(b, labels=["EDF Annotations"]), FailureCode.EMPTY_RECORDING),
    ("an empty file", "edf", ".edf", lambda b: b.put(f"{EEG}.edf", b""), FailureCode.CORRUPT_OR_TRUNCATED),
    ("epochs inside a .set", "eeglab", ".set", _epoched, FailureCode.NOT_CONTINUOUS),
    ("epochs in a .fdt", "eeglab", ".set", _epoched_fdt, FailureCode.NOT_CONTINUOUS),
    ("epochs of MATLAB 7.3", "eeglab", ".set", _epoched_73, FailureCode.NOT_CONTINUOUS),
    ("no .fdt", "eeglab", ".set", _no_fdt, FailureCode.FILE_READ_ERROR),
    ("no .eeg", "brainvision", ".vhdr", _no_eeg, FailureCode.FILE_READ_ERROR),
    ("a pointer", "edf", ".edf", _pointer, FailureCode.ANNEX_OBJECT_MISSING),
    ("a dangling link", "edf", ".edf", _dangling, FailureCode.ANNEX_OBJECT_MISSING),
    (
        "one sample",
        "edf",
        ".edf",
        lambda b: edf_of(b, per_record=[1, 1], n_records=1, record_s="0.001"),
        FailureCode.EMPTY_RECORDING,
    ),
    ("an unknown format", "xdf", ".xdf", lambda b: b.put(f"{EEG}.xdf", b"x"), FailureCode.UNSUPPORTED_FORMAT),
]


@pytest.mark.parametrize(("format_name", "ending", "plant", "code"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_what_is_wrong_with_a_file_is_said(
    bench: Bench, format_name: str, ending: str, plant: object, code: FailureCode
) -> None:
    plant(bench)  # type: ignore[operator]  # the table's functions
    with pytest.raises(RecordingFailed) as caught:
        bench.convert(recording_at(f"{EEG}{ending}", format_name, "eeg"))
    verdict = classify(caught.value)
    assert (verdict.kind, verdict.code) == (VerdictKind.FAILED, code)
    assert verdict.error
    assert str(bench.scratch) not in verdict.error
