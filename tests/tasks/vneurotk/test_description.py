"""What is made of every header: each row with its verdict, and a sentence that names the file, the field and what was found."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from small_files import tones
from vneurotk_files import write_vneurotk

from contract.codes import FailureCode
from contract.errors import RecordingFailed
from tasks.formats import load
from tasks.formats.protocol import Header, Route

NAME = "sub-01_task-a_eeg.h5"
DATA = tones(3, 1000, 500.0)
UNSUPPORTED, CORRUPT = FailureCode.UNSUPPORTED_FORMAT, FailureCode.CORRUPT_OR_TRUNCATED
NOT_CONTINUOUS, EMPTY = FailureCode.NOT_CONTINUOUS, FailureCode.EMPTY_RECORDING
UNREADABLE, MISMATCH = FailureCode.FILE_READ_ERROR, FailureCode.CHANNEL_COUNT_MISMATCH

Edit = Callable[[Any], object]


def setting(name: str, value: Any) -> Edit:
    return lambda file: file.attrs.__setitem__(name, value)


def lacking(name: str) -> Edit:
    return lambda file: file.attrs.__delitem__(name)


def info(name: str, value: Any) -> Edit:
    return lambda file: file["neuro_info"].attrs.__setitem__(name, value)


def neuro(array: Any, **options: Any) -> Edit:
    def edit(file: Any) -> None:
        del file["neuro"]
        file["neuro_info"].attrs.pop("shape", None)
        file.create_dataset("neuro", data=array, **options)

    return edit


def both(*edits: Edit) -> Edit:
    return lambda file: [edit(file) for edit in edits]


def file_at(folder: Path, edit: Edit, **changes: Any) -> Path:
    path = write_vneurotk(folder / NAME, DATA, 500.0, **changes)
    with h5py.File(path, "r+") as file:
        edit(file)
    return path


def outcome(path: Path) -> Header | tuple[FailureCode, str]:
    try:
        return load()["vneurotk"].header(path)
    except RecordingFailed as failed:
        return failed.failure, failed.detail or ""


READ: dict[str, Edit] = {
    "as it is": lambda file: file,
    "fixed-length magic": setting("vneurotk_format", np.bytes_("recording")),
    "any width of integer": setting("vneurotk_schema_version", np.uint8(1)),
    "an empty writer_version": setting("writer_version", ""),
    "no neuro_format": lacking("neuro_format"),
    "no ch_names": lambda file: file["neuro_info"].attrs.__delitem__("ch_names"),
    "no shape": lambda file: file["neuro_info"].attrs.__delitem__("shape"),
    "a whole sfreq": info("sfreq", 500),
    "unknown attributes and groups": both(setting("extra", 1), lambda file: file.create_group("other")),
    "no trials": lambda file: [
        file.__delitem__(name) for name in ("trial", "stim_labels", "vision_info", "trial_info")
    ],
    "big-endian": neuro(DATA.T.astype(">f4")),
    "half precision": neuro(DATA.T.astype(np.float16)),
    "LZF": neuro(DATA.T, compression="lzf", chunks=(100, 3)),
    "Fletcher's sum": neuro(DATA.T, fletcher32=True, chunks=(100, 3)),
    "version 0 with a header": setting("vneurotk_schema_version", 0),
}


@pytest.mark.parametrize("edit", READ.values(), ids=READ.keys())
def test_what_is_a_recording_is_read(tmp_path: Path, edit: Edit) -> None:
    found = outcome(file_at(tmp_path, edit))
    assert isinstance(found, Header)
    assert (found.n_channels, found.n_samples, found.rate_hz) == (3, 1000, 500.0)


REFUSED: dict[str, tuple[Edit, FailureCode, str]] = {
    "no magic": (lacking("vneurotk_format"), UNSUPPORTED, "it has no vneurotk_format"),
    "no version": (lacking("vneurotk_schema_version"), UNSUPPORTED, "it has no vneurotk_schema_version"),
    "no writer_version": (lacking("writer_version"), UNSUPPORTED, "it has no writer_version"),
    "no data_mode": (lacking("data_mode"), UNSUPPORTED, "it has no data_mode"),
    "another magic": (setting("vneurotk_format", "features"), UNSUPPORTED, "is 'features', not 'recording'"),
    "magic as an array": (setting("vneurotk_format", ["recording"]), UNSUPPORTED, "vneurotk_format"),
    "magic as a number": (setting("vneurotk_format", 1), UNSUPPORTED, "vneurotk_format of .* is 1"),
    "version 2": (setting("vneurotk_schema_version", 2), UNSUPPORTED, "is 2, supported are 0 to 1"),
    "version -1": (setting("vneurotk_schema_version", -1), UNSUPPORTED, "is -1, supported are 0 to 1"),
    "version 1.0": (setting("vneurotk_schema_version", 1.0), UNSUPPORTED, r"is 1\.0, no integer"),
    "version True": (setting("vneurotk_schema_version", True), UNSUPPORTED, "is True, no integer"),
    "version '1'": (setting("vneurotk_schema_version", "1"), UNSUPPORTED, "is '1', no integer"),
    "version [1]": (setting("vneurotk_schema_version", [1]), UNSUPPORTED, "no integer"),
    "version of nothing": (setting("vneurotk_schema_version", h5py.Empty("i8")), UNSUPPORTED, "no integer"),
    "epochs": (setting("data_mode", "epochs"), NOT_CONTINUOUS, "holds epochs"),
    "patterns": (setting("data_mode", "patterns"), NOT_CONTINUOUS, "holds patterns"),
    "continues": (setting("data_mode", "continues"), UNSUPPORTED, "data_mode of .* is 'continues'"),
    "an empty data_mode": (setting("data_mode", ""), UNSUPPORTED, "data_mode of .* is ''"),
    "another data_mode": (setting("data_mode", "averages"), UNSUPPORTED, "known are continuous, epochs, patterns"),
    "coo": (setting("neuro_format", "coo"), NOT_CONTINUOUS, "neuro_format is 'coo'"),
    "another neuro_format": (setting("neuro_format", "csr"), UNSUPPORTED, "neuro_format of .* is 'csr'"),
    "three axes": (neuro(np.zeros((4, 100, 3))), NOT_CONTINUOUS, "holds 4 trials"),
    "one axis": (neuro(np.zeros(100)), CORRUPT, "has 1 axes"),
    "no samples": (neuro(np.zeros((0, 3))), EMPTY, "holds 0 samples of 3 channels"),
    "no channels": (neuro(np.zeros((100, 0))), EMPTY, "holds 100 samples of 0 channels"),
    "complex": (neuro(np.zeros((100, 3), complex)), UNSUPPORTED, "complex128, no real numbers"),
    "texts": (neuro(np.array([["a"] * 3], dtype=object), dtype=h5py.string_dtype()), UNSUPPORTED, "no real numbers"),
    "no neuro": (lambda file: file.__delitem__("neuro"), CORRUPT, "holds no samples"),
    "neuro as a group": (lambda file: [file.__delitem__("neuro"), file.create_group("neuro")], CORRUPT, "no dataset"),
    "another shape": (info("shape", [1000, 4]), CORRUPT, "neuro_info.shape"),
    "fewer names": (info("ch_names", ["A", "B"]), MISMATCH, "names 2 channels, neuro has 3"),
    "names that are none": (info("ch_names", [1, 2, 3]), CORRUPT, "no list of names"),
    "no neuro_info": (lambda file: file.__delitem__("neuro_info"), UNREADABLE, r"neuro_info\.sfreq of .* is missing"),
    "no sfreq": (lambda file: file["neuro_info"].attrs.__delitem__("sfreq"), UNREADABLE, "sfreq of .* is missing"),
    "sfreq 0": (info("sfreq", 0.0), UNREADABLE, r"sfreq of .* is 0\.0"),
    "sfreq -1": (info("sfreq", -1.0), UNREADABLE, r"is -1\.0"),
    "sfreq NaN": (info("sfreq", float("nan")), UNREADABLE, "is nan"),
    "sfreq infinite": (info("sfreq", float("inf")), UNREADABLE, "is inf"),
    "sfreq True": (info("sfreq", True), UNREADABLE, "is True"),
    "sfreq as text": (info("sfreq", "500"), UNREADABLE, "is '500'"),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "code", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_none_is_refused_with_what_was_found(tmp_path: Path, edit: Edit, code: FailureCode, said: str) -> None:
    found = outcome(file_at(tmp_path, edit))
    assert isinstance(found, tuple)
    assert found[0] is code, found

    assert re.search(said, found[1]), found[1]
    assert NAME in found[1] or "neuro" in found[1]


@pytest.mark.parametrize("mode", ["continues", "continuous", None])
def test_a_file_without_a_header_is_schema_0_where_something_says_so(tmp_path: Path, mode: str | None) -> None:
    extra = setting("neuro_format", "dense") if mode is None else READ["as it is"]
    found = outcome(file_at(tmp_path, extra, schema=0, mode=mode))
    assert isinstance(found, Header)
    assert (found.n_channels, found.n_samples, found.block_samples) == (3, 1000, 0)


@pytest.mark.parametrize("mode", ["epochs", "patterns"])
def test_epochs_of_schema_0_are_not_continuous(tmp_path: Path, mode: str) -> None:
    assert outcome(file_at(tmp_path, READ["as it is"], schema=0, mode=mode))[0] is NOT_CONTINUOUS  # type: ignore[index]  # a verdict


def test_hdf5_of_another_program_is_not_taken_for_schema_0(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with h5py.File(path, "w") as file:
        file["neuro"] = DATA.T
        file.create_group("neuro_info").attrs["sfreq"] = 500.0
    code, detail = outcome(path)  # type: ignore[misc]  # a verdict
    assert code is UNSUPPORTED
    assert detail == f"{NAME} is HDF5 of another program: nothing in it says that it is a VneuroTK recording"
    with h5py.File(path, "w") as file:
        file.attrs["data_mode"] = "continuous"
        file["data"] = DATA.T
    assert outcome(path)[0] is UNSUPPORTED  # type: ignore[index]  # a verdict


def elsewhere(link: Any) -> Edit:
    def edit(file: Any) -> None:
        del file["neuro"]
        file["neuro"] = link

    return edit


def test_links_to_other_places_are_not_followed(tmp_path: Path) -> None:
    other = write_vneurotk(tmp_path / "other.h5", DATA, 500.0)
    for link in (h5py.ExternalLink(str(other), "/neuro"), h5py.SoftLink("/real"), h5py.ExternalLink("gone.h5", "/x")):
        path = file_at(tmp_path, both(lambda file: file.copy("neuro", "real"), elsewhere(link)))
        assert outcome(path) == (UNSUPPORTED, "neuro is a link that leads elsewhere, which is not followed")


def test_samples_in_other_files_are_not_read(tmp_path: Path) -> None:
    other = write_vneurotk(tmp_path / "other.h5", DATA, 500.0)
    layout = h5py.VirtualLayout(shape=DATA.T.shape, dtype=np.float64)
    layout[:] = h5py.VirtualSource(str(other), "neuro", shape=DATA.T.shape)

    def virtual(file: Any) -> None:
        del file["neuro"]
        file.create_virtual_dataset("neuro", layout)

    def external(file: Any) -> None:
        del file["neuro"]
        file.create_dataset("neuro", (1000, 3), np.uint8, external=[("/etc/passwd", 0, 3000)])

    for edit in (virtual, external):
        found = outcome(file_at(tmp_path, edit))
        assert found == (UNSUPPORTED, "the values of neuro are in another file, which is not followed")


def test_filters_that_are_not_hdf5s_own_are_not_looked_for(tmp_path: Path) -> None:
    def foreign(file: Any) -> None:
        del file["neuro"]
        plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plan.set_chunk((100, 3))
        plan.set_filter(32_015, h5py.h5z.FLAG_OPTIONAL, (3,))
        space = h5py.h5s.create_simple((1000, 3))
        h5py.h5d.create(file.id, b"neuro", h5py.h5t.IEEE_F64LE, space, plan)

    for edit in (foreign, neuro(DATA.T.astype(int), chunks=(100, 3), scaleoffset=0)):
        found = outcome(file_at(tmp_path, edit))
        assert isinstance(found, tuple)
        assert found[0] is UNSUPPORTED
        assert "compressed in a way that is not read" in found[1]


@pytest.mark.parametrize("options", [{}, {"chunks": (1000, 3)}, {"chunks": (1000, 3), "compression": "gzip"}])
def test_a_few_kilobytes_that_declare_terabytes_are_no_recording(tmp_path: Path, options: dict[str, Any]) -> None:
    def vast(file: Any) -> None:
        del file["neuro"], file["neuro_info"].attrs["shape"]
        file.create_dataset("neuro", (10**12, 3), np.float32, **options)

    path = file_at(tmp_path, vast)
    assert path.stat().st_size < 200_000
    found = outcome(path)
    assert isinstance(found, tuple)
    assert found[0] is CORRUPT
    assert "more than the file can hold" in found[1]


def test_attributes_that_hold_too_much_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with h5py.File(path, "w", libver="latest") as file:
        file.attrs["vneurotk_format"] = np.zeros(10**6, dtype=np.uint8)
    assert outcome(path)[0] is CORRUPT  # type: ignore[index]  # a verdict


@pytest.mark.parametrize("part", [0.02, 0.3, 0.9])
def test_a_cut_file_is_truncated_wherever_it_is_cut(tmp_path: Path, part: float) -> None:
    path = file_at(tmp_path, READ["as it is"])
    data = path.read_bytes()
    path.write_bytes(data[: max(600, int(len(data) * part))])
    found = outcome(path)
    assert isinstance(found, tuple)
    assert found[0] is CORRUPT
    assert "truncated" in found[1]


def test_what_is_no_hdf5_is_of_no_supported_format(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(b"no signature at all" * 100)
    assert outcome(path) == (UNSUPPORTED, f"{NAME} is no HDF5 file")


def test_the_header_says_what_the_file_says_of_its_channels_and_what_it_does_not(tmp_path: Path) -> None:
    told = {"highpass": 0.1, "lowpass": 100.0, "ch_units": ["uV", "uV", "V"], "ch_types": ["EEG", "EEG", "EOG"]}
    full = outcome(write_vneurotk(tmp_path / NAME, DATA, 500.0, info=told))
    assert isinstance(full, Header)
    assert full.channel_labels == ("E1", "E2", "E3")
    assert full.prefilters == ("HP:0.1Hz LP:100Hz",) * 3
    assert full.notes == ()
    bare = outcome(file_at(tmp_path, READ["no ch_names"]))
    assert isinstance(bare, Header)
    assert (bare.channel_labels, bare.prefilters) == ((), ())
    assert len(bare.notes) == 3


def test_rows_are_read_by_whole_chunks_and_the_projection_counts_them(tmp_path: Path) -> None:
    one = load()["vneurotk"]
    small = one.header(write_vneurotk(tmp_path / "small_eeg.h5", DATA, 500.0, chunks=(300, 2)))
    assert small.block_samples % 300 == 0
    assert one.route(small) is Route.STREAMED
    long = Header(n_channels=64, n_samples=10**8, rate_hz=1000.0, sample_bytes=4, block_samples=16_384)
    longer = Header(n_channels=64, n_samples=2 * 10**8, rate_hz=1000.0, sample_bytes=4, block_samples=16_384)
    more = one.projected_bytes(longer, 0, Route.STREAMED, 250.0) - one.projected_bytes(long, 0, Route.STREAMED, 250.0)
    assert more < 64 * 10**8, "one channel grows with the length, and nothing else"
    columns = Header(n_channels=64, n_samples=10**7, rate_hz=1000.0, sample_bytes=4, block_samples=10**7)
    assert one.projected_bytes(columns, 0, Route.STREAMED, 250.0) > 64 * 10**7 * 4, "a chunk a channel is held whole"
