"""Headers of FIF and KIT, and of the formats that are folders."""

from __future__ import annotations

import gzip
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from ctf_files import ORIGIN, clock_row, continuous_ctf
from header_failure import failure
from small_files import fif, mefd, tones

from contract.codes import FailureCode
from contract.errors import RecordingFailed
from tasks.formats import load
from tasks.formats.protocol import Route


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
