"""How much of a recording is read at once, and what the header of a FIF says of it before."""

from __future__ import annotations

from pathlib import Path

import mne
import numpy as np
import pandas as pd
import pytest
from small_files import fif

from tasks.convert.pieces import EngineInput
from tasks.convert.tables import table_samples
from tasks.convert.windows import Windows, window_samples
from tasks.formats import load
from tasks.formats.memory import WINDOW_BYTES
from tasks.formats.protocol import Header, Route

CHANNELS, SAMPLES = 64, 120_000


@pytest.mark.parametrize("block", [0, 1, 5_000, 100_000])
def test_a_window_is_8_mib_or_a_whole_block_of_a_reader_that_forgets(tmp_path: Path, block: int) -> None:
    asked: list[tuple[int, int]] = []

    def read(start: int, stop: int) -> np.ndarray:
        asked.append((start, stop))
        return np.tile(np.arange(start, stop, dtype=float), (CHANNELS, 1))

    # the header tells of a band that covers the recording, as that of a VneuroTK file with one chunk a channel does
    header = Header(n_channels=CHANNELS, n_samples=SAMPLES, rate_hz=1000.0, block_samples=SAMPLES)
    given = EngineInput(
        target=tmp_path / "x",
        source_format="x",
        route=Route.STREAMED,
        header=header,
        modality=None,
        channels=None,
        events=pd.DataFrame(),
        scratch=tmp_path,
    )
    samples = window_samples(Windows(CHANNELS, SAMPLES, read, np.ones(CHANNELS), block), given)
    [last] = samples.channels([CHANNELS - 1])
    assert np.array_equal(last, np.arange(SAMPLES))
    longest = max(stop - start for start, stop in asked)
    assert longest <= max(WINDOW_BYTES // (8 * CHANNELS), block)
    assert block <= 1 or all(start % block == 0 for start, _stop in asked), "a block is never read twice"


@pytest.mark.parametrize("kind", ["single", "short", "int", "double", "split", "gap", "compressed"])
def test_the_header_of_a_fif_knows_whether_its_samples_must_be_kept(tmp_path: Path, kind: str) -> None:
    data = np.random.default_rng(0).normal(size=(300, 6000)) * 1e-13
    path = tmp_path / ("x_meg.fif.gz" if kind == "compressed" else "x_meg.fif")
    fif(path, data, 1000.0, split_bytes="3MB" if kind == "split" else None)
    path = min(tmp_path.glob("*.fif*"))  # the first of the splits
    raw = mne.io.read_raw_fif(path, preload=True, verbose="ERROR")
    if kind in {"short", "int", "double"}:
        raw.save(path, fmt=kind, overwrite=True, verbose="ERROR")
    elif kind == "gap":
        raw.set_annotations(mne.Annotations(2.0, 2.0, "BAD_ACQ_SKIP"))
        raw.save(path, overwrite=True, verbose="ERROR")
    header = load()["fif"].header(path)
    is_kept = table_samples(mne.io.read_raw_fif(path, preload=False, verbose="ERROR")) is None
    assert is_kept is (kind in {"gap", "compressed"})
    assert (header.kept_sample_bytes > 0) is is_kept
    assert (header.block_samples > 0) is is_kept
