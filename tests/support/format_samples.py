"""One small intact recording of every kind that a header reader knows, to be read as it is or after damage."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ctf_files import continuous_ctf
from small_files import brainvision, edf_bytes, eeglab, eeglab_v73, fif, mefd, tones
from vneurotk_files import write_vneurotk

from contract.codes import FailureCode

LABELS, PER_RECORD, RECORDS = ("A", "B"), (100, 100), 4


@dataclass(frozen=True)
class Sample:
    """A recording, the file of it that holds the header, the file that holds the samples, and what the header must say.

    ``instead`` is the verdict on other content in the place of the header.
    """

    format: str
    primary: Path
    header: Path
    samples: Path
    shape: tuple[int, int, float]
    instead: FailureCode = FailureCode.CORRUPT_OR_TRUNCATED


def bdf_bytes(
    labels: tuple[str, ...] = LABELS, per_record: tuple[int, ...] = PER_RECORD, n_records: int = RECORDS
) -> bytes:
    """A plain BDF: the header of an EDF but for its mark, and three bytes a sample."""
    head = edf_bytes(labels, per_record=per_record, n_records=0, declared=n_records, reserved="24BIT")
    record = b"".join(
        (sample % 97 * (7 + row)).to_bytes(3, "little")
        for row, count in enumerate(per_record)
        for sample in range(count)
    )
    return b"\xffBIOSEMI" + head[8:] + record * n_records


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _edf(folder: Path, _: Path) -> Sample:
    path = _written(folder / "x.edf", edf_bytes(LABELS))
    return Sample("edf", path, path, path, (2, 400, 100.0))


def _bdf(folder: Path, _: Path) -> Sample:
    path = _written(folder / "x.bdf", bdf_bytes())
    return Sample("bdf", path, path, path, (2, 400, 100.0))


def _brainvision(folder: Path, _: Path) -> Sample:
    path = brainvision(folder, "x", tones(3, 40, 100.0), 100.0)
    return Sample("brainvision", path, path, path.with_suffix(".eeg"), (3, 40, 100.0))


def _eeglab(folder: Path, _: Path) -> Sample:
    path = eeglab(folder / "x.set", tones(3, 40, 100.0), 100.0, compressed=False)
    return Sample("eeglab", path, path, path, (3, 40, 100.0))


def _eeglab_fdt(folder: Path, _: Path) -> Sample:
    path = eeglab(folder / "x.set", tones(3, 40, 100.0), 100.0, fdt=True)
    return Sample("eeglab", path, path, path.with_suffix(".fdt"), (3, 40, 100.0))


def _eeglab_v73(folder: Path, _: Path) -> Sample:
    path = eeglab_v73(folder / "x.set", tones(3, 40, 100.0), 100.0)
    return Sample("eeglab", path, path, path, (3, 40, 100.0))


def _fif(folder: Path, _: Path) -> Sample:
    path = fif(folder / "x_raw.fif", tones(3, 400, 100.0) * 1e-12, 100.0)
    return Sample("fif", path, path, path, (3, 400, 100.0))


def _fif_gz(folder: Path, _: Path) -> Sample:
    plain = fif(folder / "x_raw.fif", tones(3, 400, 100.0) * 1e-12, 100.0)
    path = _written(folder / "x_raw.fif.gz", gzip.compress(plain.read_bytes(), mtime=0))
    plain.unlink()
    return Sample("fif", path, path, path, (3, 400, 100.0))


def _ctf(folder: Path, recordings: Path) -> Sample:
    path = continuous_ctf(recordings, folder / "x.ds")
    return Sample("ctf", path, path / "x.res4", path / "x.meg4", (356, 2402, 1200.0))


def _kit(folder: Path, recordings: Path) -> Sample:
    path = folder / "x.con"
    shutil.copyfile(recordings / "kit/MQKIT_125_2sec.con", path)
    return Sample("kit", path, path, path, (192, 2000, 1000.0))


def _bti(folder: Path, recordings: Path) -> Sample:
    path = folder / "x_meg"
    shutil.copytree(recordings / "bti/4Dsim", path)
    for inner in path.iterdir():
        inner.chmod(0o644)
    (path / "c,rfDC,fn50,o").unlink()  # else it would be read in the place of a missing c,rfDC
    return Sample("bti", path, path / "c,rfDC", path / "c,rfDC", (279, 458, 1017.7777857820929))


def _mef3(folder: Path, _: Path) -> Sample:
    path = mefd(folder / "x.mefd", tones(2, 2560, 256.0), 256.0)
    first = min(path.rglob("*.tmet"))
    return Sample("mef3", path, first, first.with_suffix(".tdat"), (2, 2560, 256.0))


def _vneurotk(folder: Path, _: Path) -> Sample:
    path = write_vneurotk(folder / "x_eeg.h5", tones(4, 2000, 500.0), 500.0, onsets=(100, 900), ids=(1, 2))
    return Sample("vneurotk", path, path, path, (4, 2000, 500.0), FailureCode.UNSUPPORTED_FORMAT)


MAKERS: dict[str, Callable[[Path, Path], Sample]] = {
    "edf": _edf,
    "bdf": _bdf,
    "brainvision": _brainvision,
    "eeglab": _eeglab,
    "eeglab with .fdt": _eeglab_fdt,
    "eeglab 7.3": _eeglab_v73,
    "fif": _fif,
    "fif compressed": _fif_gz,
    "ctf": _ctf,
    "kit": _kit,
    "bti": _bti,
    "mef3": _mef3,
    "vneurotk": _vneurotk,
}
"""Kind of recording -> what writes one into an empty folder."""
