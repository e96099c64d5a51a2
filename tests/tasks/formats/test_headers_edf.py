"""Headers of EDF and BDF: records, gaps, letters, and what is left out."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from header_failure import failure
from hypothesis import assume, given
from hypothesis import strategies as st
from small_files import edf_bytes, mefd, tones

from contract.codes import FailureCode
from contract.errors import RecordingFailed
from tasks.formats import load
from tasks.formats.protocol import Header, NativeGroup, Route


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
