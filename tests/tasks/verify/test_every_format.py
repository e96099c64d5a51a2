"""A clean store of every format is verified against its source, and one that is a sample late is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import zarr
from conversion import Bench
from format_cases import CASES, Case
from judging import put


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_clean_store_is_verified_and_a_late_one_is_not(case: Case, recordings: Path, tmp_path: Path) -> None:
    bench = Bench(tmp_path / "scratch")
    path = f"sub-01/{case.modality}/{case.bids}"
    primary = bench.source / path
    primary.parent.mkdir(parents=True)
    case.put(primary, recordings)
    shutil.rmtree(primary.parent / "classic", ignore_errors=True)  # for another reader only
    made = put(bench, path, tmp_path / "served")
    clean = made.judge(tmp_path)
    assert (clean.found.status, clean.found.examples) == ("verified", ()), clean.found.why
    assert clean.found.checked > 10
    group = made.converted.entry.groups[0].name  # type: ignore[index]  # every case has one
    level0 = zarr.open_group(made.store, mode="r+")[group]["0"]
    level0[:] = np.roll(level0[:], 1, axis=1)
    late = made.judge(tmp_path)
    assert "samples_mismatch" in {example["check"] for example in late.found.examples}
