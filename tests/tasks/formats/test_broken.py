"""What every header reader says of what is no header: one documented error, within bounded memory, and nothing else."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from format_samples import MAKERS, Sample
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import savemat
from small_files import edf_bytes

from contract.codes import FailureCode
from contract.errors import RecordingFailed
from tasks.formats import load
from tasks.formats.protocol import Header

CORRUPT = FailureCode.CORRUPT_OR_TRUNCATED
MISSING = FailureCode.ANNEX_OBJECT_MISSING
MAX_BYTES = 64 * 1024**2

INSTEAD = {
    "nothing": (b"", CORRUPT),
    "an error page": (b"<!DOCTYPE html>\n<html><head><title>403 Forbidden</title></head></html>\n", CORRUPT),
    "a long error page": (b"<!DOCTYPE html>\n" + b"<p>The object is not here.</p>\n" * 4000, CORRUPT),
    "another format": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40, CORRUPT),
    "one byte": (b"0", CORRUPT),
    "text": (b"This is not a recording.\r\n" * 200, CORRUPT),
    "zeros": (bytes(20_000), CORRUPT),
    "ones": (b"\xff" * 20_000, CORRUPT),
    "a git-annex pointer": (b"/annex/objects/SHA256E-s123--0123456789abcdef.edf\n", MISSING),
    "a git-lfs pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n", MISSING),
}


@pytest.fixture
def sample(request: pytest.FixtureRequest, recordings: Path, tmp_path: Path) -> Sample:
    return MAKERS[request.param](tmp_path, recordings)


@pytest.fixture(scope="module", params=list(MAKERS))
def kept(request: pytest.FixtureRequest, recordings: Path, tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """A recording that is damaged and mended again, many times."""
    return MAKERS[request.param](tmp_path_factory.mktemp("kept"), recordings)


def outcome(sample: Sample) -> Header | FailureCode:
    try:
        return load()[sample.format].header(sample.primary)
    except RecordingFailed as error:
        failed = error
    assert failed.detail, "a verdict says why"
    assert str(sample.primary.parent) not in failed.detail, "and no local path"
    return failed.failure


@contextmanager
def little_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MAX_BYTES
    finally:
        tracemalloc.stop()


every = pytest.mark.parametrize("sample", list(MAKERS), indirect=True)


@every
def test_an_intact_recording_says_what_it_is(sample: Sample) -> None:
    header = outcome(sample)
    assert isinstance(header, Header)
    assert (header.n_channels, header.n_samples, header.rate_hz) == (
        *sample.shape[:2],
        pytest.approx(sample.shape[2]),
    )
    assert header.exact_samples
    (group,) = header.native_groups()
    assert (len(group.rows), group.n_samples) == sample.shape[:2]


@every
def test_other_content_in_the_place_of_the_header_is_told_apart(sample: Sample) -> None:
    for name, (content, code) in INSTEAD.items():
        sample.header.write_bytes(content)
        with little_memory():
            assert outcome(sample) is (sample.instead if code is CORRUPT and content else code), name


@every
def test_a_header_that_is_only_a_link_to_nothing_is_missing_content(sample: Sample) -> None:
    sample.header.unlink()
    sample.header.symlink_to("../.git/annex/objects/aa/bb/SHA256E-s1--00/SHA256E-s1--00")
    assert outcome(sample) is MISSING


@every
def test_samples_that_are_only_a_pointer_are_missing_content(sample: Sample) -> None:
    sample.samples.write_bytes(INSTEAD["a git-annex pointer"][0])
    assert outcome(sample) is MISSING


@every
def test_a_missing_file_is_a_read_error(sample: Sample) -> None:
    sample.samples.unlink()
    assert outcome(sample) is FailureCode.FILE_READ_ERROR


@every
def test_a_missing_header_is_a_read_error(sample: Sample) -> None:
    sample.header.unlink()
    assert outcome(sample) is FailureCode.FILE_READ_ERROR


@every
def test_samples_that_end_early_are_truncated(sample: Sample) -> None:
    data = sample.samples.read_bytes()
    for left in (len(data) - 1, len(data) // 2 + 1):
        sample.samples.write_bytes(data[:left])
        assert outcome(sample) is CORRUPT, left


@every
def test_a_header_cut_anywhere_is_read_or_refused(sample: Sample) -> None:
    data = sample.header.read_bytes()
    for part in range(1, 20):
        sample.header.write_bytes(data[: len(data) * part // 20])
        with little_memory():
            found = outcome(sample)
        if isinstance(found, Header):
            assert (found.n_channels, found.n_samples) == sample.shape[:2], part


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_wrong_bytes_in_a_header_are_read_or_refused(kept: Sample, data: st.DataObject) -> None:
    """Anywhere in the first kilobytes, or, where the header stands at the end, in the last."""
    whole = kept.header.read_bytes()
    reach = min(len(whole), 4000)
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, reach - 1))
        at = len(whole) - reach + at if kept.format == "bti" else at
        new = data.draw(
            st.one_of(st.binary(min_size=1, max_size=8), st.sampled_from([b"\xff" * 4, b"\x7f\xff\xff\xff"]))
        )
        changed[at : at + len(new)] = new
    kept.header.write_bytes(bytes(changed))
    try:
        with little_memory():
            found = outcome(kept)
    finally:
        kept.header.write_bytes(whole)
    if isinstance(found, Header):
        assert found.n_channels is None or found.n_channels > 0
        assert found.n_samples is None or found.n_samples > 0
        assert found.rate_hz is None or 0 < found.rate_hz < float("inf")


def _replaced(path: Path, *changes: tuple[bytes, bytes]) -> None:
    data = path.read_bytes()
    for old, new in changes:
        assert data.count(old) == 1, old
        data = data.replace(old, new)
    path.write_bytes(data)


def _at(path: Path, position: int, value: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[position : position + len(value)] = value
    path.write_bytes(bytes(data))


class TestCountsThatLie:
    """A count of two thousand million is a number in a header, not a reason to allocate anything."""

    def refused(self, sample: Sample, *codes: FailureCode) -> None:
        with little_memory():
            assert outcome(sample) in codes

    @pytest.mark.parametrize("sample", ["edf", "bdf"], indirect=True)
    @pytest.mark.parametrize(
        ("at", "text"), [(252, b"9999"), (252, b"-1  "), (236, b"99999999"), (256 + 216 * 2, b"99999999")]
    )
    def test_edf(self, sample: Sample, at: int, text: bytes) -> None:
        _at(sample.header, at, text)
        self.refused(sample, CORRUPT)

    @pytest.mark.parametrize("sample", ["brainvision"], indirect=True)
    @pytest.mark.parametrize("count", [b"2147483648", b"99999999999999999999"])
    def test_brainvision(self, sample: Sample, count: bytes) -> None:
        _replaced(sample.header, (b"NumberOfChannels=3", b"NumberOfChannels=" + count))
        self.refused(sample, CORRUPT)

    @pytest.mark.parametrize("fdt", [True, False])
    @pytest.mark.parametrize("field", ["nbchan", "pnts"])
    def test_eeglab(self, tmp_path: Path, field: str, fdt: bool) -> None:
        """Embedded samples are their own witness; those in a .fdt have only these fields and its size."""
        path = tmp_path / "x.set"
        fields = {
            "nbchan": 3.0,
            "pnts": 4.0,
            "trials": 1.0,
            "srate": 100.0,
            "data": "x.fdt" if fdt else [[1.0] * 4] * 3,
        }
        (tmp_path / "x.fdt").write_bytes(bytes(48))
        savemat(path, {"EEG": {**fields, field: 2.0**31}})
        with little_memory():
            found = outcome(Sample("eeglab", path, path, path, (3, 4, 100.0)))
        assert found is CORRUPT if fdt else (found.n_channels, found.n_samples) == (3, 4)

    @pytest.mark.parametrize("sample", ["fif"], indirect=True)
    def test_fif(self, sample: Sample) -> None:
        tag = struct.pack(">iIii", 200, 3, 4, 0)
        _replaced(sample.header, (tag + struct.pack(">i", 3), tag + struct.pack(">i", 2**31 - 1)))
        self.refused(sample, CORRUPT, FailureCode.EMPTY_RECORDING)

    @pytest.mark.parametrize("sample", ["ctf"], indirect=True)
    @pytest.mark.parametrize(
        ("at", "value"),
        [(1292, b"\x7f\xff"), (1288, b"\x7f\xff\xff\xff"), (1836, b"\x7f\xff\xff\xff"), (1845, b"\x7f\xff")],
    )
    def test_ctf(self, sample: Sample, at: int, value: bytes) -> None:
        _at(sample.header, at, value)
        self.refused(sample, CORRUPT)

    @pytest.mark.parametrize("sample", ["ctf"], indirect=True)
    def test_ctf_of_very_many_very_short_trials(self, sample: Sample) -> None:
        """Their clock's row is then something else, and the file a million trials."""
        _at(sample.header, 1288, struct.pack(">i", 1))
        with little_memory():
            outcome(sample)

    @pytest.mark.parametrize("sample", ["kit"], indirect=True)
    def test_kit(self, sample: Sample) -> None:
        acquisition = struct.unpack_from("<I", sample.header.read_bytes(), 16 * 8)[0]
        _at(sample.header, acquisition + 16, struct.pack("<i", 2**31 - 1))
        self.refused(sample, CORRUPT)

    @pytest.mark.parametrize("sample", ["mef3"], indirect=True)
    def test_mef3(self, sample: Sample) -> None:
        for metadata in sample.primary.rglob("*.tmet"):
            _at(metadata, 2560 + 6360, struct.pack("<q", 2**62))
        self.refused(sample, CORRUPT)


def test_a_header_of_every_size_around_its_least_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.edf"
    for left in (1, 7, 8, 255, 256, 257, 767):
        path.write_bytes(edf_bytes()[:left])
        assert outcome(Sample("edf", path, path, path, (2, 400, 100.0))) is CORRUPT
