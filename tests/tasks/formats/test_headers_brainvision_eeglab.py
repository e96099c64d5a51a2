"""Headers of BrainVision and EEGLAB, sound and wrong."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import pytest
from header_failure import failure
from small_files import brainvision, eeglab, eeglab_v73, tones

from contract.codes import FailureCode
from contract.errors import RecordingFailed
from tasks.formats import load
from tasks.formats.protocol import Route


class TestBrainVision:
    @pytest.mark.parametrize("text", ["just a text\n", "a=b\n", "[Common Infos]\nDataFile=x.eeg\n", "\x89PNG\0\0"])
    def test_what_is_no_header_is_said_in_the_files_terms(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "x.vhdr"
        path.write_text(text)
        with pytest.raises(RecordingFailed) as caught:
            load()["brainvision"].header(path)
        assert caught.value.failure is FailureCode.CORRUPT_OR_TRUNCATED
        assert "x.vhdr is not a BrainVision header" in str(caught.value.detail)

    def test_empty_samples_are_said_to_be_empty(self, tmp_path: Path) -> None:
        path = brainvision(tmp_path, "x", tones(3, 100, 100.0), 100.0)
        path.with_suffix(".eeg").write_bytes(b"")
        with pytest.raises(RecordingFailed) as caught:
            load()["brainvision"].header(path)
        assert caught.value.detail == "x.eeg is empty"

    def test_a_renamed_recording_finds_the_samples_of_its_own_stem(self, tmp_path: Path) -> None:
        path = brainvision(tmp_path, "sub-01_eeg", tones(3, 100, 100.0), 100.0, data_file="old_name.eeg")
        assert load()["brainvision"].header(path).n_samples == 100

    def test_missing_samples_are_a_read_error_that_names_the_file(self, tmp_path: Path) -> None:
        path = brainvision(tmp_path, "x", tones(3, 100, 100.0), 100.0)
        path.with_suffix(".eeg").unlink()
        with pytest.raises(RecordingFailed, match="could not be read") as caught:
            load()["brainvision"].header(path)
        assert caught.value.failure is FailureCode.FILE_READ_ERROR
        assert "x.eeg" in str(caught.value.detail)

    def test_samples_that_are_only_a_pointer_are_missing_content(self, tmp_path: Path) -> None:
        path = brainvision(tmp_path, "x", tones(3, 100, 100.0), 100.0)
        path.with_suffix(".eeg").write_text("/annex/objects/SHA256E-s600--00.eeg\n")
        assert failure(load()["brainvision"].header, path) is FailureCode.ANNEX_OBJECT_MISSING

    @pytest.mark.parametrize("size", [0, 599])
    def test_samples_that_are_no_whole_frames_are_truncated(self, tmp_path: Path, size: int) -> None:
        path = brainvision(tmp_path, "x", tones(3, 100, 100.0), 100.0)
        os.truncate(path.with_suffix(".eeg"), size)
        assert failure(load()["brainvision"].header, path) is FailureCode.CORRUPT_OR_TRUNCATED

    def test_a_comment_cannot_change_the_number_of_channels(self, tmp_path: Path) -> None:
        path = brainvision(tmp_path, "x", tones(3, 100, 100.0), 100.0)
        path.write_text(path.read_text() + "[Comment]\nNumberOfChannels=99\n")
        assert load()["brainvision"].header(path).n_channels == 3

    def test_a_latin_1_header_without_markers_is_read(self, tmp_path: Path) -> None:
        path = brainvision(tmp_path, "x", tones(3, 100, 100.0), 100.0)
        text = "\n".join(line for line in path.read_text().splitlines() if not line.startswith("MarkerFile"))
        path.write_bytes(text.replace("NumberOfChannels", "numberofchannels").encode("latin-1"))
        assert load()["brainvision"].header(path).n_channels == 3

    def test_a_data_file_outside_the_folder_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "secret.eeg").write_bytes(b"\0" * 600)
        path = brainvision(tmp_path / "in", "x", tones(3, 100, 100.0), 100.0, data_file="../secret.eeg")
        path.with_suffix(".eeg").unlink()
        assert failure(load()["brainvision"].header, path) is FailureCode.FILE_READ_ERROR

    def test_an_empty_header_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "x.vhdr").write_bytes(b"")
        assert failure(load()["brainvision"].header, tmp_path / "x.vhdr") is FailureCode.CORRUPT_OR_TRUNCATED


class TestEeglab:
    @pytest.mark.parametrize("compressed", [True, False])
    @pytest.mark.parametrize("nested", [True, False])
    @pytest.mark.parametrize("fdt", [True, False])
    def test_a_matlab_5_header_is_read_in_every_form(
        self, tmp_path: Path, compressed: bool, nested: bool, fdt: bool
    ) -> None:
        path = eeglab(tmp_path / "x.set", tones(4, 500, 250.0), 250.0, compressed=compressed, nested=nested, fdt=fdt)
        header = load()["eeglab"].header(path)
        assert (header.n_channels, header.n_samples, header.rate_hz) == (4, 500, 250.0)
        assert load()["eeglab"].route(header) is (Route.IN_MEMORY if compressed and not fdt else Route.STREAMED)

    def test_a_matlab_73_header_is_read(self, tmp_path: Path) -> None:
        header = load()["eeglab"].header(eeglab_v73(tmp_path / "x.set", tones(4, 500, 250.0), 250.0))
        assert (header.n_channels, header.n_samples, header.rate_hz) == (4, 500, 250.0)

    @pytest.mark.parametrize("fdt", [True, False])
    def test_epochs_are_not_continuous(self, tmp_path: Path, fdt: bool) -> None:
        path = eeglab(tmp_path / "x.set", tones(4, 600, 250.0), 250.0, trials=3, fdt=fdt)
        assert failure(load()["eeglab"].header, path) is FailureCode.NOT_CONTINUOUS

    def test_epochs_of_matlab_73_are_not_continuous(self, tmp_path: Path) -> None:
        path = eeglab_v73(tmp_path / "x.set", tones(4, 600, 250.0), 250.0, trials=3)
        assert failure(load()["eeglab"].header, path) is FailureCode.NOT_CONTINUOUS

    def test_real_epochs_are_not_continuous(self, recordings: Path) -> None:
        assert (
            failure(load()["eeglab"].header, recordings / "eeglab/test_epochs_onefile.set")
            is FailureCode.NOT_CONTINUOUS
        )

    def test_a_missing_fdt_is_a_read_error_and_a_short_one_truncated(self, tmp_path: Path) -> None:
        path = eeglab(tmp_path / "x.set", tones(4, 500, 250.0), 250.0, fdt=True)
        os.truncate(path.with_suffix(".fdt"), 4000)
        assert failure(load()["eeglab"].header, path) is FailureCode.CORRUPT_OR_TRUNCATED
        path.with_suffix(".fdt").unlink()
        assert failure(load()["eeglab"].header, path) is FailureCode.FILE_READ_ERROR

    def test_a_dangling_fdt_is_missing_content(self, tmp_path: Path) -> None:
        path = eeglab(tmp_path / "x.set", tones(4, 500, 250.0), 250.0, fdt=True)
        path.with_suffix(".fdt").unlink()
        path.with_suffix(".fdt").symlink_to("../.git/annex/objects/aa/bb/SHA256E-s8000--00.fdt")
        assert failure(load()["eeglab"].header, path) is FailureCode.ANNEX_OBJECT_MISSING

    def test_no_sampling_rate_is_refused_instead_of_invented(self, tmp_path: Path) -> None:
        path = eeglab(tmp_path / "x.set", tones(4, 500, 250.0), 0.0)
        assert failure(load()["eeglab"].header, path) is FailureCode.FILE_READ_ERROR

    def test_a_compressed_bomb_costs_a_bounded_amount(self, tmp_path: Path) -> None:
        deflate = zlib.compressobj(1)
        packed = deflate.compress(struct.pack("<II", 14, 2**31 - 8) + struct.pack("<IIII", 6, 8, 2, 0))
        packed += deflate.compress(struct.pack("<IIii", 5, 8, 1, 1) + struct.pack("<II", 1, 3) + b"EEG".ljust(8, b"\0"))
        names = b"".join(n.ljust(32, b"\0") for n in (b"huge", b"nbchan"))
        packed += deflate.compress(struct.pack("<HHi", 5, 4, 32) + struct.pack("<II", 1, 64) + names)
        packed += deflate.compress(struct.pack("<II", 14, 2**30))
        for _ in range(300):
            packed += deflate.compress(bytes(1 << 20))
        packed += deflate.flush()
        (tmp_path / "x.set").write_bytes(b"M".ljust(124) + b"\x00\x01IM" + struct.pack("<II", 15, len(packed)) + packed)
        with pytest.raises(RecordingFailed):
            load()["eeglab"].header(tmp_path / "x.set")


def test_pauses_of_a_brainvision_recording_are_said(tmp_path: Path) -> None:
    path = brainvision(tmp_path, "x", tones(3, 100, 100.0), 100.0)
    assert load()["brainvision"].header(path).notes == ()
    marker = path.with_suffix(".vmrk")
    marker.write_text(marker.read_text() + "Mk2=Stimulus,S 1,5,1,0\nMk3=New Segment,,50,1,0,20200101\n")
    (note,) = load()["brainvision"].header(path).notes
    assert note.startswith("the recording was paused 1 times")


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("BinaryFormat=INT_16", "BinaryFormat=INT_24", FailureCode.UNSUPPORTED_FORMAT),
        ("BinaryFormat=INT_16", "", FailureCode.UNSUPPORTED_FORMAT),
        ("DataFormat=BINARY", "DataFormat=BINARY\nDataType=FREQUENCYDOMAIN", FailureCode.UNSUPPORTED_FORMAT),
        ("DataFormat=BINARY", "DataFormat=BINARY\nAveraged=YES", FailureCode.NOT_CONTINUOUS),
        ("DataFormat=BINARY", "DataFormat=BINARY\nSegmentationType=MARKERBASED", FailureCode.NOT_CONTINUOUS),
        ("SamplingInterval=10000.000000", "SamplingInterval=0", FailureCode.CORRUPT_OR_TRUNCATED),
        ("NumberOfChannels=3", "NumberOfChannels=0", FailureCode.EMPTY_RECORDING),
    ],
)
def test_what_a_brainvision_header_says_decides_its_code(tmp_path: Path, old: str, new: str, code: FailureCode) -> None:
    path = brainvision(tmp_path, "x", tones(3, 100, 100.0), 100.0)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert failure(load()["brainvision"].header, path) is code


def test_text_samples_of_brainvision_are_counted_by_their_lines(tmp_path: Path) -> None:
    path = brainvision(tmp_path, "x", tones(3, 100, 100.0), 100.0)
    text = path.read_text().replace("DataFormat=BINARY", "DataFormat=ASCII")
    path.write_text(text.replace("[Binary Infos]\nBinaryFormat=INT_16", "[ASCII Infos]\nDecimalSymbol=.\nSkipLines=1"))
    samples = path.with_suffix(".eeg")
    samples.write_text("E1 E2 E3\n1 2 3\n4 5 6")
    assert load()["brainvision"].header(path).n_samples == 2
    samples.write_text("E1 E2 E3\n")
    assert failure(load()["brainvision"].header, path) is FailureCode.EMPTY_RECORDING
    path.write_text(path.read_text().replace("MULTIPLEXED", "VECTORIZED"))
    assert failure(load()["brainvision"].header, path) is FailureCode.UNSUPPORTED_FORMAT
