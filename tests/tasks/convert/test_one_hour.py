"""Where the samples of a long recording are when its rate is no whole number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conversion import Bench, recording_at
from open_store import served
from small_files import edf_bytes

from contract.samples import sample_index

HOUR_S = 3600
ONSETS_S = (100.0, 1800.0, 3590.0)
STEM = "sub-01/eeg/sub-01_eeg"


@pytest.mark.parametrize(
    ("record", "native", "rate", "at"),
    [
        # 3590 s at 333.33 Hz is sample 1,196,654.7 of the source
        ((100, 33_333), 333.33, 250.0, (25_000, 450_000, 897_500)),
        ((2, 5), 2.5, 2.5, (250, 4_500, 8_975)),
    ],
)
def test_an_hour_is_true_to_its_last_sample(
    tmp_path: Path, record: tuple[int, int], native: float, rate: float, at: tuple[int, ...]
) -> None:
    record_s, samples = record
    n_records = HOUR_S // record_s
    data = np.random.default_rng(0).integers(-50, 50, size=(1, samples * n_records)).astype(np.int16)
    data[0, [round(onset_s * native) for onset_s in ONSETS_S]] = 30_000
    bench = Bench(tmp_path)
    bench.put(
        f"{STEM}.edf", edf_bytes(["A"], per_record=[samples], n_records=n_records, record_s=str(record_s), data=data)
    )
    done = bench.convert(recording_at(f"{STEM}.edf", "edf", "eeg"))
    (group,) = done.entry.groups or ()
    assert (group.rate, group.source_rate_hz) == (rate, native)
    assert (group.n_samples, group.duration_s) == (round(HOUR_S * rate), HOUR_S)
    (signal,) = served(bench.store, group.name).physical
    assert signal.shape == (group.n_samples,)
    assert tuple(sorted(int(peak) for peak in np.argsort(signal)[-3:])) == at
    assert tuple(sample_index(onset_s, group.rate) for onset_s in ONSETS_S) == at
