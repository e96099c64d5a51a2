"""Mixed rates are served whatever the file calls its channels, and whoever finds them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import zarr
from conversion import Bench, recording_at
from small_files import edf_bytes

from tasks.convert.engine import EngineInput, write_store
from tasks.formats.protocol import Route

RATES = (256, 256, 60)
STEM = "sub-01/eeg/sub-01_eeg"


def bdf_bytes(labels: list[str], n_records: int = 4) -> bytes:
    """A plain BDF with the header of an EDF but for its mark, and three bytes a sample."""
    head = edf_bytes(labels, per_record=RATES, n_records=0, declared=n_records, reserved="24BIT")
    record = b"".join((sample % 97 * 7).to_bytes(3, "little") for samples in RATES for sample in range(samples))
    return b"\xffBIOSEMI" + head[8:] + record * n_records


@pytest.mark.parametrize("ending", ["edf", "bdf"])
def test_a_plain_file_with_a_channel_called_annotations_is_served(tmp_path: Path, ending: str) -> None:
    bench = Bench(tmp_path)
    labels = ["A", "B", f"{ending.upper()} Annotations"]
    bench.put(f"{STEM}.{ending}", edf_bytes(labels, per_record=RATES) if ending == "edf" else bdf_bytes(labels))
    done = bench.convert(recording_at(f"{STEM}.{ending}", ending, "eeg"))
    assert [(g.rate, g.n_channels, g.n_samples) for g in done.entry.groups or ()] == [(250.0, 3, 1000)]
    group = json.loads((bench.store / "eeg_250hz" / "zarr.json").read_bytes())["attributes"]
    assert [channel["original_rate"] for channel in group["channels"]] == [256.0, 256.0, 60.0]


def test_mixed_rates_that_only_the_engine_finds_are_read_in_memory(tmp_path: Path) -> None:
    source, scratch = tmp_path / "x.edf", tmp_path / "mapped"
    source.write_bytes(edf_bytes(per_record=[200, 25]))
    scratch.mkdir()
    for route in (Route.STREAMED, Route.IN_MEMORY):
        given = EngineInput(
            target=source,
            source_format="edf",
            route=route,
            modality="eeg",
            channels=None,
            events=pd.DataFrame({"onset": [], "duration": [], "description": []}),
            scratch=scratch,
        )
        write_store(given, tmp_path / f"{route.value}.zarr")
    streamed, held = (zarr.open_array(tmp_path / f"{r.value}.zarr" / "eeg_200hz" / "0", mode="r")[:] for r in Route)
    np.testing.assert_array_equal(streamed, held)
