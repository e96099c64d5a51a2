"""What readers are known to do wrong without a word, each kept from happening."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import zarr
from biosigio.exceptions import FileReadError
from conversion import Bench, recording_at, with_sidecars
from open_store import served
from scipy.io import savemat
from small_files import brainvision, edf_bytes, eeglab, tones
from written_store import write_engine_store

from contract.codes import FailureCode
from contract.errors import RecordingFailed
from tasks.convert.pieces import EngineInput
from tasks.convert.verdict import VerdictKind, classify
from tasks.formats import load

STEM = "sub-01/eeg/sub-01_task-a_eeg"


@pytest.mark.parametrize("fdt", [True, False])
def test_epochs_are_never_served_as_a_continuous_recording(tmp_path: Path, fdt: bool) -> None:
    bench = Bench(tmp_path)
    eeglab(bench.source / f"{STEM}.set", tones(4, 600, 250.0), 250.0, trials=3, fdt=fdt)
    companions = (f"{STEM}.fdt",) if fdt else ()
    with pytest.raises(RecordingFailed) as caught:
        bench.convert(recording_at(f"{STEM}.set", "eeglab", "eeg", companions=companions))
    assert caught.value.failure is FailureCode.NOT_CONTINUOUS
    assert not bench.store.exists()


def test_channels_without_a_location_are_served(tmp_path: Path) -> None:
    """The streaming reader would keep four of the six rows and say nothing."""
    bench = Bench(tmp_path)
    data = tones(6, 1000, 250.0).astype(np.float32)
    path = bench.source / f"{STEM}.set"
    path.parent.mkdir(parents=True)
    located = np.array([(f"E{i}",) for i in range(4)], dtype=[("labels", object)])
    fields = {"nbchan": 6.0, "pnts": 1000.0, "trials": 1.0, "srate": 250.0, "data": data, "chanlocs": located}
    savemat(path, {"EEG": {**fields, "event": np.empty((0, 0)), "setname": "x", "xmin": 0.0, "xmax": 3.996}})
    done = bench.convert(recording_at(f"{STEM}.set", "eeglab", "eeg"))
    assert [group.n_channels for group in done.entry.groups or ()] == [6]
    signal = served(bench.store, "eeg_250hz")
    assert np.abs(signal.physical - data).max() <= signal.scale.max()


def test_a_conversion_that_fails_leaves_no_store_and_no_work(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    header = brainvision(bench.source / "sub-01/eeg", "sub-01_task-a_eeg", tones(3, 1000, 250.0), 250.0)
    # a resolution, which only the engine's reader looks at
    header.write_text(header.read_text().replace(",0.1,", ",nonsense,"))
    bench.store.mkdir()
    (bench.store / "zarr.json").write_text("{}")
    companions = (f"{STEM}.eeg", f"{STEM}.vmrk")
    with pytest.raises(FileReadError, match="nonsense") as caught:
        bench.convert(recording_at(f"{STEM}.vhdr", "brainvision", "eeg", companions=companions))
    verdict = classify(caught.value)
    assert (verdict.kind, verdict.code) == (VerdictKind.FAILED, FailureCode.FILE_READ_ERROR)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"]


def test_one_file_is_never_read_twice_at_once_in_a_process(tmp_path: Path) -> None:
    """Its library would refuse the second reader and give the first one junk."""
    source = tmp_path / "x.edf"
    codes = np.random.default_rng(0).integers(-20_000, 20_000, (4, 60 * 250))
    source.write_bytes(edf_bytes(["A", "B", "C", "D"], per_record=[250] * 4, n_records=60, data=codes))
    one = load()["edf"]
    header = one.header(source)

    def convert(number: int) -> np.ndarray:
        scratch = tmp_path / f"scratch-{number}"
        scratch.mkdir()
        given = EngineInput(
            target=source,
            source_format=one.source_format,
            route=one.route(header),
            header=header,
            modality="eeg",
            channels=None,
            events=pd.DataFrame({"onset": [], "duration": [], "description": []}),
            scratch=scratch,
        )
        store = tmp_path / f"{number}.zarr"
        (group,) = write_engine_store(given, store)
        return np.asarray(zarr.open_array(store / group.name / "0", mode="r")[:])

    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(convert, range(4))
    assert abs(np.corrcoef(first[0], codes[0])[0, 1]) > 0.9999
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_channels_tsv_is_matched_by_the_files_own_letters(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.put(f"{STEM}.edf", edf_bytes(["Débit", "B"]))
    sidecar = "sub-01/eeg/sub-01_task-a_channels.tsv"
    bench.put(sidecar, "name\ttype\tunits\nDébit\tECG\tmV\nB\tEEG\tuV\n")
    bench.convert(with_sidecars(recording_at(f"{STEM}.edf", "edf", "eeg"), channels=sidecar))
    signal = served(bench.store, "eeg_100hz")
    assert (signal.labels, signal.units, signal.types) == (("Débit", "B"), ("mV", "uV"), ("ECG", "EEG"))


def test_what_a_file_leaves_out_is_said_with_its_conversion(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.put(f"{STEM}.edf", edf_bytes(declared=3))
    done = bench.convert(recording_at(f"{STEM}.edf", "edf", "eeg"))
    assert "the file holds 4 data records and declares 3; only these are served" in done.notes


def test_a_source_is_never_changed(tmp_path: Path) -> None:
    """Copies and links are made in scratch: the source may be the only copy there is."""
    bench = Bench(tmp_path)
    data = edf_bytes(["Débit", "B"])
    origin = tmp_path / "origin.edf"
    origin.write_bytes(data)
    (bench.source / "sub-01/eeg").mkdir(parents=True)
    (bench.source / f"{STEM}.edf").symlink_to(origin)
    bench.convert(recording_at(f"{STEM}.edf", "edf", "eeg"))
    assert origin.read_bytes() == data
