"""The documented formulas, worked out by the sweep for a window at a time, are what they are for a whole recording."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_signal import SourceSignal, read_edf
from scipy.signal import resample_poly

from tasks.verify.events import events_of
from tasks.verify.recording.edf import EdfReading
from tasks.verify.report import Report
from tasks.verify.samples import expected_window, windows
from tasks.verify.tables import plain_number, read_table
from tasks.verify.units import factor_between, quantity

RATIOS = st.sampled_from(
    [
        Fraction(1, 4),
        Fraction(1, 2),
        Fraction(250, 512),
        Fraction(3, 4),
        Fraction(125, 256),
        Fraction(5, 441),
        Fraction(1),
    ]
)


@given(ratio=RATIOS, n_samples=st.integers(50, 4000), data=st.data())
def test_any_window_is_that_of_the_whole(ratio: Fraction, n_samples: int, data: st.DataObject) -> None:
    length = round(n_samples * ratio)
    start = data.draw(st.integers(0, max(length - 1, 0)))
    stop = data.draw(st.integers(start, length))
    signal = np.random.default_rng(n_samples).normal(size=(2, n_samples)) * 50 + 1e4
    whole = resample_poly(signal[0], ratio.numerator, ratio.denominator)[:length]
    nearest = np.round(np.arange(length) * (ratio.denominator / ratio.numerator)).astype(int)
    discrete = signal[1][np.minimum(nearest, n_samples - 1)]
    asked: list[int] = []

    def read(first: int, last: int) -> np.ndarray:
        assert 0 <= first <= last <= n_samples
        asked.append(last - first)
        return signal[:, first:last]

    found = expected_window(read, n_samples, ratio, (start, stop), [False, True])
    if ratio == 1:
        assert np.array_equal(found, signal[:, start:stop])
    else:
        assert np.allclose(found[0], whole[start:stop], rtol=1e-12, atol=1e-9)
        assert np.array_equal(found[1], discrete[start:stop])
        span = (stop - start) * ratio.denominator / ratio.numerator
        reach = 2 * (10 * ratio.denominator / ratio.numerator + ratio.denominator + 5)
        assert asked[0] <= span + reach, "no more is read than the filter reaches"


@given(n_samples=st.integers(0, 10**7), seed=st.integers(0, 2**31))
def test_windows_are_equal_for_equal_seeds_and_lie_in_the_recording(n_samples: int, seed: int) -> None:
    found = windows(n_samples, np.random.default_rng(seed))
    assert found == windows(n_samples, np.random.default_rng(seed))
    assert all(0 <= start < stop <= n_samples for start, stop in found)
    if n_samples:
        assert (found[0][0], found[-1][1]) == (0, n_samples)
    assert sum(stop - start for start, stop in found) <= 8 * 512


@pytest.mark.parametrize("name", ["edf/chtypes_edf.edf", "edf/test_reduced.edf", "edf/test_utf8_annotations.edf"])
def test_a_reading_of_an_edf_is_pyedflibs(name: str, recordings: Path) -> None:
    reading = EdfReading(recordings / name, 2)
    for rate_hz in {channel.rate_hz for channel in reading.channels}:
        wanted: SourceSignal = read_edf(recordings / name, rate_hz)
        rows = [row for row, channel in enumerate(reading.channels) if channel.rate_hz == rate_hz]
        own = [reading.channels[row].label for row in rows]
        kept = [at for at, label in enumerate(wanted.labels) if label in own]
        length = wanted.data.shape[1]
        for start, stop in ((0, length), (length // 3, length // 2), (length - 1, length)):
            assert np.allclose(reading.read(rows, start, stop), wanted.data[kept, start:stop], rtol=1e-12, atol=1e-9)
    reading.close()


def test_units_have_a_quantity_and_a_power_of_ten() -> None:
    assert [quantity(unit) for unit in ("uV", "\u00b5V", "\u03bcV", "V", "fT/cm", "MV", "a.u.", "", None)] == [
        ("V", -6), ("V", -6), ("V", -6), ("V", 0), ("T/m", -13), ("V", 6), None, None, None,
    ]  # fmt: skip
    assert factor_between("V", "uV") == 1e6
    assert factor_between("T", "V") is None


def test_a_table_is_a_witness_only_when_it_is_plain(tmp_path: Path) -> None:
    path = tmp_path / "x_events.tsv"
    path.write_bytes(b"\xef\xbb\xbfOnset\tduration\tvalue\r\nn/a\t1\ta\r\n2\tn/a\tn/a\r\n1\t0.5\tb\r\n")
    table = read_table(path)
    assert table is not None
    events = events_of(table)
    assert events is not None
    assert [(event.onset_s, event.duration_s, event.label) for event in events] == [
        (1.0, 0.5, "b"), (2.0, None, "n/a"), (None, 1.0, "a"),
    ]  # fmt: skip
    for odd in (b"onset\tduration\n1\n", b"onset\n\xff\n", b'onset\n"1"\n', b""):
        path.write_bytes(odd)
        assert read_table(path) is None, odd
    path.write_bytes(b"onset\tduration\n1,5\t2\n")
    table = read_table(path)
    assert table is not None
    assert events_of(table) is None, "a decimal comma is read by rules of its own"
    assert plain_number("1e400") == (False, None)


def test_a_verdict_says_little_and_no_local_path() -> None:
    from contract.verification import Check

    report = Report("sub-01/a.edf")
    for number in range(50):
        report.fail(Check.METADATA, f"{number} /home/somebody/secret/file token=abcdef " + "x" * 500)
    found = report.found()
    assert (found.status, found.mismatches, len(found.examples)) == ("failed", 50, 20)
    assert all(len(example["detail"]) <= 200 and "somebody" not in example["detail"] for example in found.examples)
    assert Report("x").found().status == "unverifiable", "nothing was compared"
