"""Every format's own header reader, on real files and on small ones made to be wrong."""

from __future__ import annotations

import gzip
import os
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from ctf_files import ORIGIN, clock_row, continuous_ctf
from hypothesis import assume, given
from hypothesis import strategies as st
from small_files import brainvision, edf_bytes, eeglab, eeglab_v73, fif, mefd, tones

from contract.codes import FailureCode
from contract.errors import RecordingFailed
from tasks.formats import load
from tasks.formats.content import is_pointer, require_content
from tasks.formats.protocol import Header, NativeGroup, Route

REAL = [
    ("edf", "edf/chtypes_edf.edf", 42, 1000, 200.0, Route.STREAMED),
    ("edf", "edf/test_reduced.edf", 139, 3072, 512.0, Route.STREAMED),
    ("edf", "edf/test_utf8_annotations.edf", 11, 2000, 200.0, Route.STREAMED),
    ("bdf", "bdf/multiple_annotation_chans.bdf", 19, 30875, 125.0, Route.STREAMED),
    ("brainvision", "brainvision/test_CA_208.vhdr", 88, 4025, 1000.0, Route.STREAMED),
    ("eeglab", "eeglab/test_raw.set", 32, 30504, 128.0, Route.IN_MEMORY),
    ("eeglab", "eeglab/test_raw_h5.set", 32, 30504, 128.0, Route.IN_MEMORY),
    ("fif", "fif/mgh70_raw.fif", 70, 5001, 5000.0, Route.STREAMED),
    ("kit", "kit/MQKIT_125_2sec.con", 192, 2000, 1000.0, Route.STREAMED),
    ("bti", "bti/4Dsim", 279, 458, 1017.7777857820929, Route.STREAMED),
]


def failure(call: object, *args: object) -> FailureCode:
    with pytest.raises(RecordingFailed) as caught:
        call(*args)  # type: ignore[operator]  # a bound method
    return caught.value.failure


@pytest.mark.parametrize("case", REAL, ids=[r[1] for r in REAL])
def test_a_real_header_is_read_as_its_reader_reads_it(
    recordings: Path, tmp_path: Path, case: tuple[str, str, int, int, float, Route]
) -> None:
    name, path, channels, samples, rate, route = case
    one = load()[name]
    header = one.header(recordings / path)
    assert (header.n_channels, header.n_samples, header.rate_hz) == (channels, samples, pytest.approx(rate))
    assert one.route(header) is route
    assert one.read_target(recordings / path, header, tmp_path) == recordings / path


def test_every_format_that_discovery_names_is_installed() -> None:
    assert set(load()) == {"bdf", "brainvision", "bti", "ctf", "edf", "eeglab", "fif", "kit", "mef3", "vneurotk"}


class TestEdf:
    def header(self, folder: Path, data: bytes) -> Header:
        path = folder / "x.edf"
        path.write_bytes(data)
        return load()["edf"].header(path)

    def test_annotation_signals_are_no_channels(self, tmp_path: Path) -> None:
        header = self.header(tmp_path, edf_bytes(["A", "EDF Annotations", "B"], reserved="EDF+C"))
        assert (header.n_channels, header.n_samples, header.prefilters) == (2, 400, ("HP:0.1Hz", "HP:0.1Hz"))

    @pytest.mark.parametrize(("reserved", "channels"), [("", 3), ("EDF+C", 2), (" EDF+C", 3), ("BDF+C", 3)])
    def test_only_an_edf_plus_file_has_annotation_signals(self, tmp_path: Path, reserved: str, channels: int) -> None:
        data = edf_bytes(["A", "B", "EDF Annotations"], per_record=[256, 256, 60], reserved=reserved)
        header = self.header(tmp_path, data)
        assert header.n_channels == channels
        assert header.rates_hz == ((60.0, 256.0) if channels == 3 else (256.0,))
        assert load()["edf"].route(header) is Route.STREAMED

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"declared": 0}, "declares 0 data records"),
            ({"declared": -1, "n_records": 0}, "holds no whole data record"),
            ({"record_s": "0"}, "data records of 0 s"),
            ({"record_s": "0", "declared": 0}, "declares 0 data records"),
            ({"record_s": "-1"}, "data records of -1 s"),
            ({"record_s": "inf"}, "data records of inf s"),
        ],
    )
    def test_records_that_cannot_be_are_named(self, tmp_path: Path, changes: dict[str, object], said: str) -> None:
        with pytest.raises(RecordingFailed) as caught:
            self.header(tmp_path, edf_bytes(**changes))  # type: ignore[arg-type]  # the table's keywords
        assert caught.value.failure is FailureCode.CORRUPT_OR_TRUNCATED
        assert said in str(caught.value.detail)

    def test_repeated_and_blank_labels_all_count(self, tmp_path: Path) -> None:
        assert self.header(tmp_path, edf_bytes(["A", "B", "B", "-", ""])).n_channels == 5

    def test_mixed_rates_are_streamed(self, tmp_path: Path) -> None:
        header = self.header(tmp_path, edf_bytes(["A", "B"], per_record=[200, 25]))
        assert header.rates_hz == (25.0, 200.0)
        assert header.n_samples == 800
        assert load()["edf"].route(header) is Route.STREAMED

    def test_channels_are_grouped_by_the_rate_they_were_recorded_at(self, tmp_path: Path) -> None:
        header = self.header(tmp_path, edf_bytes(["A", "B", "A", "C"], per_record=[100, 3, 100, 1], record_s="0.4"))
        assert header.channel_labels == ("A", "B", "A", "C")
        assert header.native_groups() == (
            NativeGroup(250.0, (0, 2), 400),
            NativeGroup(7.5, (1,), 12),
            NativeGroup(2.5, (3,), 4),
        )

    def test_a_rate_is_never_rounded(self, tmp_path: Path) -> None:
        header = self.header(tmp_path, edf_bytes(["A"], per_record=[1000], record_s="3"))
        assert header.native_groups() == (NativeGroup(1000 / 3, (0,), 4000),)

    @pytest.mark.parametrize("samples", [0, -1])
    def test_a_channel_that_declares_no_sample_is_not_filled_with_zeros(self, tmp_path: Path, samples: int) -> None:
        data = edf_bytes(["A", "B"], per_record=[100, max(samples, 0)])
        at = 256 + 216 * 2 + 8
        data = data[:at] + str(samples).encode().ljust(8) + data[at + 8 :]
        assert failure(self.header, tmp_path, data) is FailureCode.CORRUPT_OR_TRUNCATED

    @pytest.mark.parametrize(
        "changes",
        [{"declared": -1}, {"reserved": "EDF+D"}, {"flat": ["B"]}, {"pad": b"\0"}],
        ids=["never finalised", "discontinuous", "equal physical limits", "NUL padding"],
    )
    def test_what_only_a_tolerant_reader_takes_goes_in_memory(self, tmp_path: Path, changes: dict[str, object]) -> None:
        header = self.header(tmp_path, edf_bytes(**changes))  # type: ignore[arg-type]  # the table's keywords
        assert header.tolerant
        assert header.n_samples == 400
        assert load()["edf"].route(header) is Route.IN_MEMORY

    @pytest.mark.parametrize("cut", [1, 500, 1500])
    def test_a_file_that_ends_early_is_truncated(self, tmp_path: Path, cut: int) -> None:
        assert failure(self.header, tmp_path, edf_bytes()[:-cut]) is FailureCode.CORRUPT_OR_TRUNCATED

    @pytest.mark.parametrize("left", [0, 10, 255, 300, 700])
    def test_a_file_that_ends_inside_its_header_is_truncated(self, tmp_path: Path, left: int) -> None:
        assert failure(self.header, tmp_path, edf_bytes()[:left]) is FailureCode.CORRUPT_OR_TRUNCATED

    def test_only_annotations_are_an_empty_recording(self, tmp_path: Path) -> None:
        assert failure(self.header, tmp_path, edf_bytes(["EDF Annotations"])) is FailureCode.EMPTY_RECORDING

    @given(st.binary(max_size=3000))
    def test_no_bytes_raise_anything_untyped(self, tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
        assume(not data.startswith(b"/annex/objects/"))  # the pointer of an annexed file, which has its own code
        folder = tmp_path_factory.getbasetemp()
        for start in (b"", b"0       "):
            assert failure(self.header, folder, start + data) in {
                FailureCode.CORRUPT_OR_TRUNCATED,
                FailureCode.EMPTY_RECORDING,
            }


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


class TestFif:
    def test_splits_count_together(self, tmp_path: Path) -> None:
        data = np.random.default_rng(0).normal(size=(20, 60_000)) * 1e-12
        fif(tmp_path / "sub-01_meg.fif", data, 1000.0, split_bytes="3MB")
        parts = sorted(tmp_path.glob("*.fif"))
        assert len(parts) > 1
        header = load()["fif"].header(parts[0])
        assert (header.n_channels, header.n_samples) == (20, 60_000)
        parts[-1].unlink()
        assert failure(load()["fif"].header, parts[0]) is FailureCode.CORRUPT_OR_TRUNCATED

    @pytest.mark.parametrize("kind", ["epochs", "evoked"])
    def test_epochs_and_averages_are_not_continuous(self, tmp_path: Path, kind: str) -> None:
        path = fif(
            tmp_path / f"x-{'epo' if kind == 'epochs' else 'ave'}.fif",
            tones(3, 3000, 1000.0) * 1e-12,
            1000.0,
            kind=kind,
        )
        assert failure(load()["fif"].header, path) is FailureCode.NOT_CONTINUOUS

    @pytest.mark.parametrize("cut", [3, 5_000, 40_000])
    def test_a_file_that_ends_early_is_truncated(self, tmp_path: Path, cut: int) -> None:
        path = fif(tmp_path / "x_raw.fif", tones(3, 5000, 1000.0) * 1e-12, 1000.0)
        os.truncate(path, path.stat().st_size - cut)
        assert failure(load()["fif"].header, path) is FailureCode.CORRUPT_OR_TRUNCATED

    def test_a_file_that_ends_between_two_buffers_is_truncated(self, tmp_path: Path) -> None:
        path = fif(tmp_path / "x_raw.fif", tones(3, 5000, 1000.0) * 1e-12, 1000.0)
        data = path.read_bytes()
        buffer = struct.pack(">iIii", 300, 4, 3 * 1000 * 4, 0)
        assert data.count(buffer) == 5
        os.truncate(path, data.rindex(buffer))
        assert failure(load()["fif"].header, path) is FailureCode.CORRUPT_OR_TRUNCATED

    def test_a_cross_talk_file_is_no_recording(self, recordings: Path) -> None:
        assert failure(load()["fif"].header, recordings / "fif/ct_sparse_mgh.fif") is FailureCode.EMPTY_RECORDING

    @pytest.mark.parametrize("content", [b"", b"garbage" * 100])
    def test_what_is_no_fif_is_refused(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "x.fif").write_bytes(content)
        assert failure(load()["fif"].header, tmp_path / "x.fif") is FailureCode.CORRUPT_OR_TRUNCATED

    def test_a_compressed_fif_is_read_through_to_its_end(self, tmp_path: Path) -> None:
        data = fif(tmp_path / "x_raw.fif", tones(3, 3000, 1000.0) * 1e-12, 1000.0).read_bytes()
        path = tmp_path / "x_meg.fif.gz"
        path.write_bytes(gzip.compress(data))
        header = load()["fif"].header(path)
        assert (header.n_channels, header.n_samples, header.rate_hz) == (3, 3000, 1000.0)
        assert load()["fif"].route(header) is Route.IN_MEMORY
        packed = gzip.compress(data)
        for broken in (
            packed[:-500],
            packed[:-8] + b"12345678",
            gzip.compress(data[:-20_000]),
            b"\x1f\x8b" + bytes(100),
            data,
        ):
            path.write_bytes(broken)
            assert failure(load()["fif"].header, path) is FailureCode.CORRUPT_OR_TRUNCATED

    def test_splits_that_lead_back_are_corrupt(self, tmp_path: Path) -> None:
        data = np.random.default_rng(0).normal(size=(20, 60_000)) * 1e-12
        fif(tmp_path / "sub-01_meg.fif", data, 1000.0, split_bytes="3MB")
        first, second, *_ = sorted(tmp_path.glob("*.fif"))
        first.write_bytes(first.read_bytes().replace(second.name.encode(), first.name.encode()))
        assert failure(load()["fif"].header, first) is FailureCode.CORRUPT_OR_TRUNCATED


class TestFolders:
    def test_a_cut_ctf_is_truncated(self, recordings: Path, tmp_path: Path) -> None:
        folder = tmp_path / "a.ds"
        folder.mkdir()
        origin = recordings / "ctf/testdata_ctf_short_discontinuous.ds/testdata_ctf_short_discontinuous"
        (folder / "a.res4").write_bytes(origin.with_suffix(".res4").read_bytes()[:2000])
        (folder / "a.meg4").write_bytes(origin.with_suffix(".meg4").read_bytes()[:-100])
        assert failure(load()["ctf"].header, folder) is FailureCode.CORRUPT_OR_TRUNCATED

    def test_a_cut_kit_file_is_truncated(self, recordings: Path, tmp_path: Path) -> None:
        data = (recordings / "kit/MQKIT_125_2sec.con").read_bytes()
        for left in (10, 500, len(data) - 1000):
            (tmp_path / "x.con").write_bytes(data[:left])
            assert failure(load()["kit"].header, tmp_path / "x.con") is FailureCode.CORRUPT_OR_TRUNCATED

    def test_a_kdf_is_read_under_the_ending_its_reader_knows(self, recordings: Path, tmp_path: Path) -> None:
        (tmp_path / "x.kdf").write_bytes((recordings / "kit/MQKIT_125_2sec.con").read_bytes())
        one = load()["kit"]
        target = one.read_target(tmp_path / "x.kdf", one.header(tmp_path / "x.kdf"), tmp_path)
        assert (target.name, target.read_bytes()) == ("x.con", (tmp_path / "x.kdf").read_bytes())

    def test_trials_of_a_continuous_ctf_follow_each_other(self, recordings: Path, tmp_path: Path) -> None:
        header = load()["ctf"].header(continuous_ctf(recordings, tmp_path / "a.ds"))
        assert (header.n_channels, header.n_samples, header.rate_hz) == (356, 2402, 1200.0)
        assert header.exact_samples

    def test_real_trials_with_a_gap_are_not_continuous(self, recordings: Path) -> None:
        with pytest.raises(RecordingFailed) as caught:
            load()["ctf"].header(recordings / ORIGIN)
        assert caught.value.failure is FailureCode.NOT_CONTINUOUS
        assert "98.9992 s" in str(caught.value.detail)

    def test_a_ctf_ends_where_its_clock_stops(self, recordings: Path, tmp_path: Path) -> None:
        folder = continuous_ctf(recordings, tmp_path / "a.ds")
        samples = np.memmap(folder / "a.meg4", dtype=">i4", mode="r+", offset=8).reshape(-1, 356, 1201)
        samples[1, clock_row(folder / "a.res4"), 700:] = 0
        samples.flush()
        assert load()["ctf"].header(folder).n_samples == 1201 + 700

    def test_a_bti_folder_without_config_or_data_is_refused(self, recordings: Path, tmp_path: Path) -> None:
        assert failure(load()["bti"].header, tmp_path) is FailureCode.FILE_READ_ERROR
        data = (recordings / "bti/4Dsim/c,rfDC").read_bytes()
        (tmp_path / "c,rfDC").write_bytes(data)
        assert failure(load()["bti"].header, tmp_path) is FailureCode.FILE_READ_ERROR
        (tmp_path / "config").write_bytes(b"x")
        (tmp_path / "c,rfDC").write_bytes(data[: len(data) // 2])
        assert failure(load()["bti"].header, tmp_path) is FailureCode.CORRUPT_OR_TRUNCATED

    def test_a_mef3_session_is_measured(self, tmp_path: Path) -> None:
        header = load()["mef3"].header(mefd(tmp_path / "x.mefd", tones(2, 2560, 256.0), 256.0))
        assert (header.n_channels, header.n_samples, header.rate_hz) == (2, 2560, 256.0)

    def test_a_mef3_session_without_channels_is_empty(self, tmp_path: Path) -> None:
        assert failure(load()["mef3"].header, tmp_path) is FailureCode.EMPTY_RECORDING


class TestContent:
    @pytest.mark.parametrize(
        "data",
        [
            b"/annex/objects/MD5E-s1--0.edf\n",
            b"../../.git/annex/objects/a/b/k/k",
            b"version https://git-lfs.github.com/spec/v1\n",
        ],
    )
    def test_a_pointer_is_missing_content(self, tmp_path: Path, data: bytes) -> None:
        path = tmp_path / "x.edf"
        path.write_bytes(data)
        assert is_pointer(data)
        assert failure(require_content, path) is FailureCode.ANNEX_OBJECT_MISSING
        assert failure(load()["edf"].header, path) is FailureCode.ANNEX_OBJECT_MISSING

    def test_a_dangling_link_is_missing_content_and_nothing_at_all_a_read_error(self, tmp_path: Path) -> None:
        (tmp_path / "x").symlink_to("nowhere")
        assert failure(require_content, tmp_path / "x") is FailureCode.ANNEX_OBJECT_MISSING
        assert failure(require_content, tmp_path / "y") is FailureCode.FILE_READ_ERROR

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
    @pytest.mark.parametrize("name", ["edf", "eeglab", "fif"])
    def test_a_file_that_may_not_be_read_is_a_condition_of_the_machine(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / "x"
        path.write_bytes(edf_bytes())
        path.chmod(0o000)
        tmp_path.chmod(0o755)  # the folders above stay as they are: the reader stands in this one already
        code = f"""
import sys; sys.path[:0] = {sys.path!r}
from pathlib import Path
from contract.errors import NotNow
from tasks.formats import load
one = load()[{name!r}]
import os; os.chdir({str(tmp_path)!r}); os.setgid(65534); os.setuid(65534)
try:
    one.header(Path("x"))
except NotNow as error:
    print(error.reason.value)
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "infra_failure"


def plus(onsets: list[str], *, kind: str = "EDF+D", record_s: str = "1") -> bytes:
    """An EDF+ of one signal at 100 samples a record, whose data records begin at these onsets."""
    head = edf_bytes(["A", "EDF Annotations"], per_record=[100, 30], n_records=0, declared=len(onsets), reserved=kind)
    head = head.replace(b"1       " + b"2   ", record_s.encode().ljust(8) + b"2   ")
    signal = np.arange(100, dtype="<i2").tobytes()
    return head + b"".join(signal + f"+{onset}\x14\x14\0".encode().ljust(60, b"\0") for onset in onsets)


class TestGaps:
    """What a reader would join although time passed in between."""

    def outcome(self, folder: Path, data: bytes) -> object:
        path = folder / "x.edf"
        path.write_bytes(data)
        try:
            return load()["edf"].header(path).n_samples
        except RecordingFailed as error:
            return error.failure, error.detail

    def test_records_that_follow_each_other_are_continuous_whatever_the_file_calls_itself(self, tmp_path: Path) -> None:
        for kind in ("EDF+D", "EDF+C"):
            for onsets in (["0", "1", "2"], ["7.25", "8.25", "9.25"], ["0"]):
                assert self.outcome(tmp_path, plus(onsets, kind=kind)) == 100 * len(onsets)

    @pytest.mark.parametrize("kind", ["EDF+D", "EDF+C"])
    def test_a_gap_is_not_continuous_and_said(self, tmp_path: Path, kind: str) -> None:
        assert self.outcome(tmp_path, plus(["0", "1", "12.5", "13.5"], kind=kind)) == (
            FailureCode.NOT_CONTINUOUS,
            "the data records of x.edf leave gaps, the largest of 10.5 s",
        )

    def test_a_slow_clock_is_no_gap(self, tmp_path: Path) -> None:
        assert self.outcome(tmp_path, plus([f"{i * 1.004:.3f}" for i in range(60)])) == 6000

    def test_a_duration_that_its_field_cannot_hold_is_no_gap(self, tmp_path: Path) -> None:
        onsets = [f"{i / 3:.6f}" for i in range(3000)]
        assert self.outcome(tmp_path, plus(onsets, record_s="0.333333")) == 300_000

    def test_onsets_that_cannot_be_read_are_not_judged(self, tmp_path: Path) -> None:
        assert self.outcome(tmp_path, plus(["0", "x", "9"])) == 300
        assert self.outcome(tmp_path, plus(["x", "1", "9"])) == 300

    def test_blocks_of_mef3_that_leave_a_gap_are_not_continuous(self, tmp_path: Path) -> None:
        folder = mefd(tmp_path / "x.mefd", tones(1, 2560, 256.0), 256.0)
        index = next(folder.rglob("*.tidx"))
        data = bytearray(index.read_bytes())
        assert (len(data) - 1024) // 56 > 5
        at = 1024 + 5 * 56
        for entry in range(at, len(data) - 55, 56):
            (start_us,) = struct.unpack_from("<q", data, entry + 8)
            # a time below zero is one whose offset is hidden
            struct.pack_into("<q", data, entry + 8, start_us + (30_000_000 if start_us > 0 else -30_000_000))
        index.write_bytes(bytes(data))
        assert load()["mef3"].header(folder).n_samples == 2560, "no block says that it is a discontinuity"
        data[at + 44] |= 1
        index.write_bytes(bytes(data))
        assert failure(load()["mef3"].header, folder) is FailureCode.NOT_CONTINUOUS


class TestNames:
    """Readers insist on names; they get links, and the source stays as it is."""

    def target(self, name: str, primary: Path, work: Path) -> Path:
        work.mkdir()
        return load()[name].read_target(primary, load()[name].header(primary), work)

    def test_folders_and_endings(self, recordings: Path, tmp_path: Path) -> None:
        mefd(tmp_path / "x.mefd", tones(1, 256, 256.0), 256.0).rename(tmp_path / "x.MEFD")
        assert self.target("mef3", tmp_path / "x.MEFD", tmp_path / "a").name == "x.mefd"
        dotted = tmp_path / "sub-01_task-v1.2_meg"
        shutil.copytree(recordings / "bti/4Dsim", dotted)
        assert "." not in self.target("bti", dotted, tmp_path / "b").name

    def test_a_renamed_ctf_folder_shows_its_files_under_its_own_name(self, recordings: Path, tmp_path: Path) -> None:
        folder = continuous_ctf(recordings, tmp_path / "old.ds").rename(tmp_path / "sub-01_meg.DS")
        target = self.target("ctf", folder, tmp_path / "work")
        assert target.name == "sub-01_meg.ds"
        assert {"sub-01_meg.res4", "sub-01_meg.meg4", "sub-01_meg.hc"} <= {path.name for path in target.iterdir()}

    def test_samples_of_another_spelling(self, tmp_path: Path) -> None:
        path = eeglab(tmp_path / "x.set", tones(4, 500, 250.0), 250.0, fdt=True)
        path.with_suffix(".fdt").rename(tmp_path / "X.FDT")
        target = self.target("eeglab", path, tmp_path / "a")
        assert target.with_suffix(".fdt").stat().st_size == 8000
        path = brainvision(tmp_path, "y", tones(3, 100, 100.0), 100.0)
        for ending in (".vhdr", ".eeg", ".vmrk"):
            (tmp_path / f"y{ending}").rename(tmp_path / f"y{ending.upper()}")
        target = self.target("brainvision", tmp_path / "y.VHDR", tmp_path / "b")
        assert sorted(p.name for p in target.parent.iterdir()) == ["y.eeg", "y.vhdr", "y.vmrk"]


class TestEdfSpelling:
    """A header that the strict reader calls corrupt for its letters is copied in plain ASCII."""

    def read(self, folder: Path, data: bytes) -> tuple[Header, list[tuple[str, str]]]:
        import pyedflib

        path = folder / "x.edf"
        path.write_bytes(data)
        one = load()["edf"]
        header = one.header(path)
        (folder / "work").mkdir(exist_ok=True)
        with pyedflib.EdfReader(str(one.read_target(path, header, folder / "work"))) as reader:
            assert path.read_bytes() == data
            return header, [(h["label"], h["dimension"]) for h in reader.getSignalHeaders()]

    @pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
    def test_letters(self, tmp_path: Path, encoding: str) -> None:
        data = edf_bytes(["Débit", "B"]).replace(
            "Débit".encode("latin-1").ljust(16), "Débit".encode(encoding).ljust(16)
        )
        data = data.replace(b"uV      uV      ", "µV".encode(encoding).ljust(8) + "°C".encode(encoding).ljust(8))
        data = data.replace(b"X X X X ", "X X Mü ".encode(encoding).ljust(8), 1)
        header, signals = self.read(tmp_path, data)
        assert signals == [("Debit", "uV"), ("B", "degC")]
        assert (header.respelled, header.channel_labels) == ({"Debit": "Débit"}, ("Débit", "B"))
        assert header.copied_bytes == len(data)

    def test_a_spelling_that_another_label_has_is_nobodys(self, tmp_path: Path) -> None:
        assert self.read(tmp_path, edf_bytes(["é", "e"]))[0].respelled == {}

    @pytest.mark.parametrize(
        "field", [(8, 80), (88, 80), (192, 44), (256, 16), (288, 80), (448, 8), (528, 80), (704, 32)]
    )
    @pytest.mark.parametrize("letter", [b"\0", b"\xe9", b"\x07"])
    def test_every_text_of_the_header(self, tmp_path: Path, field: tuple[int, int], letter: bytes) -> None:
        data = bytearray(edf_bytes())
        data[sum(field) - 1 : sum(field)] = letter
        assert len(self.read(tmp_path, bytes(data))[1]) == 2

    @pytest.mark.parametrize(
        "moment", [b"01/02/0312:30:59", b"00.00.0000.00.00", b"xx.xx.xxxx.xx.xx", b"32.01.0124.00.00"]
    )
    def test_a_start_that_is_no_moment(self, tmp_path: Path, moment: bytes) -> None:
        data = bytearray(edf_bytes())
        data[168:184] = moment
        header, _ = self.read(tmp_path, bytes(data))
        assert bool(header.notes) is (moment != b"01/02/0312:30:59")

    def test_a_plain_header_is_read_where_it_lies(self, tmp_path: Path) -> None:
        assert self.read(tmp_path, edf_bytes())[0].copied_bytes == 0


def test_what_a_reader_leaves_out_at_the_end_of_a_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "x.edf"
    path.write_bytes(edf_bytes(declared=3))
    assert load()["edf"].header(path).notes == ("the file holds 4 data records and declares 3; only these are served",)
    path.write_bytes(edf_bytes(declared=-1) + b"\0" * 10)
    header = load()["edf"].header(path)
    assert (header.n_samples, header.notes) == (400, ("the last 10 bytes are no whole data record and are not served",))


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
