"""One group per native rate, whatever the file calls its channels, and whoever finds the rates."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conversion import Bench, recording_at, with_sidecars
from open_store import served
from reference_signal import disagreements, expected, read_edf
from small_files import edf_bytes
from written_store import write_engine_store

from tasks.convert.order import ConvertedStore
from tasks.convert.pieces import EngineInput, WrittenGroup
from tasks.formats.edf_header import read_header
from tasks.formats.edf_split import split_by_rate
from tasks.formats.protocol import Header, Route

STEM = "sub-01/eeg/sub-01_eeg"
LABELS = ("a512", "b1000", "c1", "d2048", "a512", "e25", "f1000", "g333.3")
RATES = (512, 1000, 1, 2048, 512, 25, 1000, 333.3)
RECORD_S = 10
PER_RECORD = tuple(round(rate * RECORD_S) for rate in RATES)
N_RECORDS = 12
GROUPS = {
    "eeg_250hz": (512.0, 250.0, ("a512-0", "a512-1")),
    "eeg_250hz_from1000": (1000.0, 250.0, ("b1000", "f1000")),
    "eeg_1hz": (1.0, 1.0, ("c1",)),
    "eeg_250hz_from2048": (2048.0, 250.0, ("d2048",)),
    "eeg_25hz": (25.0, 25.0, ("e25",)),
    "eeg_250hz_from333.3": (333.3, 250.0, ("g333.3",)),
}
IMPULSES_S = (3.0, 40.0, 77.0, 113.0)


def signal(rate_hz: float, seed: int) -> np.ndarray:
    """Noise with impulses at whole seconds, as int16."""
    count = round(rate_hz * RECORD_S) * N_RECORDS
    data = np.random.default_rng(seed).normal(scale=20.0, size=count)
    for onset_s in IMPULSES_S:
        data[round(onset_s * rate_hz)] += 20_000
    return np.round(data).astype(np.int16)


def mixed_edf() -> bytes:
    rows = [signal(rate, seed) for seed, rate in enumerate(RATES)]
    padded = np.zeros((len(rows), max(map(len, rows))), dtype=np.int16)
    for into, row in zip(padded, rows, strict=True):
        into[: len(row)] = row
    return edf_bytes(LABELS, per_record=PER_RECORD, n_records=N_RECORDS, record_s=str(RECORD_S), data=padded)


@dataclass(frozen=True)
class Mixed:
    result: ConvertedStore
    store: Path
    source: Path


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Mixed:
    """Eight channels at six rates, of which four are served at one, with a channels.tsv."""
    bench = Bench(tmp_path_factory.mktemp("mixed"))
    source = bench.put(f"{STEM}.edf", mixed_edf())
    bench.put("channels.tsv", "name\ttype\tunits\nA512-0\tEEG\tmV\nb1000\tEEG\tV\nd2048\tTRIG\tn/a\nc1\tTEMP\tµV\n")
    result = bench.convert(with_sidecars(recording_at(f"{STEM}.edf", "edf", "eeg"), channels="channels.tsv"))
    return Mixed(result, bench.store, source)


def root(store: Path, node: str = "") -> dict[str, object]:
    return dict(json.loads((store / node / "zarr.json").read_bytes())["attributes"])


def test_each_native_rate_is_a_group_in_the_order_of_the_file(mixed: Mixed) -> None:
    assert root(mixed.store)["channel_groups"] == list(GROUPS)
    groups = mixed.result.entry.groups or ()
    assert [(g.name, g.source_rate_hz, g.rate) for g in groups] == [(n, *g[:2]) for n, g in GROUPS.items()]
    assert [g.n_samples for g in groups] == [round(120 * g[1]) for g in GROUPS.values()]
    assert {g.duration_s for g in groups} == {120.0}
    for name, (native_hz, served_hz, labels) in GROUPS.items():
        own = root(mixed.store, name)
        assert (own["rate"], own["original_rate"]) == (served_hz, native_hz)
        channels = own["channels"]
        assert tuple(c["label"] for c in channels) == labels  # type: ignore[attr-defined]  # a JSON list
        assert {(c["original_rate"], c["target_rate"]) for c in channels} == {(native_hz, served_hz)}  # type: ignore[attr-defined]  # a JSON list
        assert {c["prefilter"] for c in channels} == {"HP:0.1Hz"}  # type: ignore[attr-defined]  # a JSON list


def test_the_root_speaks_of_the_whole_recording(mixed: Mixed) -> None:
    values = root(mixed.store)
    metadata = values["recording_metadata"]
    assert isinstance(metadata, dict)
    assert (metadata["number_of_signals"], metadata["file_duration"]) == (8, 120.0)
    assert metadata["channel_labels_deduplicated"] == {"a512-0": "a512", "a512-1": "a512"}
    assert "mixed_rate_resampled" not in metadata
    account = values["channels_tsv_units"]
    assert account == metadata["channels_tsv_units"]
    assert isinstance(account, dict)
    # to mV and to V; from uV to the other sign for micro
    assert (account["converted"], account["relabelled"], account["kept_importer_unit"]) == (2, 1, 0)
    assert account["matched_case_insensitive"] == {"A512-0": "a512-0"}
    assert values["modality_rates"] == {"EEG": 250, "EMG": 1000, "IEEG": 1000, "MEG": 250}
    assert sorted(p.name for p in mixed.store.iterdir()) == sorted([*GROUPS, "zarr.json"])


@pytest.mark.parametrize("name", GROUPS)
def test_values_are_those_of_the_source(mixed: Mixed, name: str) -> None:
    group = served(mixed.store, name)
    wanted = expected(read_edf(mixed.source, GROUPS[name][0]), group, 250.0)
    assert disagreements(group, wanted) == []
    late = replace(group, physical=np.roll(group.physical, 1, axis=1))
    assert disagreements(late, wanted) == list(group.labels)


@pytest.mark.parametrize("name", [name for name in GROUPS if name != "eeg_1hz"])
def test_an_impulse_stays_at_its_time(mixed: Mixed, name: str) -> None:
    group = served(mixed.store, name)
    around = round(group.rate_hz * 0.5)
    for onset_s in IMPULSES_S:
        # by hand: at 250 Hz second 77 is sample 19,250
        at = int(onset_s * GROUPS[name][1])
        for row in group.physical:
            assert at - around + int(np.argmax(row[at - around : at + around])) == at


def test_both_routes_give_the_same_store(mixed: Mixed, tmp_path: Path) -> None:
    header = read_header(mixed.source, sample_width=2)
    stores = {}
    for route in Route:
        scratch = tmp_path / route.value
        scratch.mkdir()
        written = write_engine_store(given(mixed.source, header, route, scratch), tmp_path / f"{route.value}.zarr")
        assert [group.name for group in written] == list(GROUPS)
        stores[route] = tmp_path / f"{route.value}.zarr"
    for name in GROUPS:
        held, streamed = (served(stores[route], name) for route in (Route.IN_MEMORY, Route.STREAMED))
        assert (held.labels, held.units, held.types) == (streamed.labels, streamed.units, streamed.types)
        assert (np.abs(held.physical - streamed.physical) <= 1.001 * held.scale[:, None]).all()


def given(source: Path, header: Header, route: Route, scratch: Path) -> EngineInput:
    return EngineInput(
        target=source,
        source_format="edf",
        route=route,
        header=header,
        modality="eeg",
        channels=None,
        events=pd.DataFrame({"onset": [], "duration": [], "description": []}),
        scratch=scratch,
    )


@pytest.mark.parametrize("route", Route)
def test_mixed_rates_that_only_the_engine_finds_are_groups_as_well(tmp_path: Path, route: Route) -> None:
    source, scratch = tmp_path / "x.edf", tmp_path / "mapped"
    source.write_bytes(edf_bytes(per_record=[200, 25]))
    scratch.mkdir()
    blind = Header(n_channels=2, n_samples=800, rate_hz=200.0, rates_hz=(200.0,))
    written = write_engine_store(given(source, blind, route, scratch), tmp_path / "x.zarr")
    assert written == (
        WrittenGroup(name="eeg_200hz", rows=(0,), losses=written[0].losses),
        WrittenGroup(name="eeg_25hz", rows=(1,), losses=written[1].losses),
    )
    assert served(tmp_path / "x.zarr", "eeg_25hz").rate_hz == 25.0


PLAIN = (256, 256, 60)


def bdf_bytes(labels: list[str], n_records: int = 4) -> bytes:
    """A plain BDF with the header of an EDF but for its mark, and three bytes a sample."""
    head = edf_bytes(labels, per_record=PLAIN, n_records=0, declared=n_records, reserved="24BIT")
    record = b"".join((sample % 97 * 7).to_bytes(3, "little") for samples in PLAIN for sample in range(samples))
    return b"\xffBIOSEMI" + head[8:] + record * n_records


@pytest.mark.parametrize("ending", ["edf", "bdf"])
def test_a_plain_file_with_a_channel_called_annotations_is_served(tmp_path: Path, ending: str) -> None:
    bench = Bench(tmp_path)
    labels = ["A", "B", f"{ending.upper()} Annotations"]
    bench.put(f"{STEM}.{ending}", edf_bytes(labels, per_record=PLAIN) if ending == "edf" else bdf_bytes(labels))
    done = bench.convert(recording_at(f"{STEM}.{ending}", ending, "eeg"))
    groups = [(g.name, g.rate, g.n_channels, g.n_samples) for g in done.entry.groups or ()]
    assert groups == [("eeg_250hz", 250.0, 2, 1000), ("eeg_60hz", 60.0, 1, 240)]


def test_a_discontinuous_file_of_mixed_rates_is_served_rate_by_rate(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    content = bytearray(edf_bytes(["A", "B"], per_record=[100, 4], n_records=6, reserved="EDF+D"))
    bench.put(f"{STEM}.edf", bytes(content))
    done = bench.convert(recording_at(f"{STEM}.edf", "edf", "eeg"))
    assert [(g.name, g.n_samples) for g in done.entry.groups or ()] == [("eeg_100hz", 600), ("eeg_4hz", 24)]
    np.testing.assert_allclose(served(bench.store, "eeg_4hz").physical[0], np.tile([0, 1.4, 2.8, 4.2], 6), atol=1e-3)


@pytest.mark.parametrize("record_s", [10, 3])
def test_rates_below_one_hertz_are_served(tmp_path: Path, record_s: int) -> None:
    bench = Bench(tmp_path)
    bench.put(f"{STEM}.edf", edf_bytes(["A", "B"], per_record=[1, 1000], n_records=50, record_s=str(record_s)))
    done = bench.convert(recording_at(f"{STEM}.edf", "edf", "eeg"))
    slow, fast = done.entry.groups or ()
    assert (slow.name, slow.rate, slow.n_samples) == (
        ("eeg_0.1hz", 0.1, 50) if record_s == 10 else ("eeg_0.3333333333333333hz", 1 / 3, 50)
    )
    assert slow.duration_s == pytest.approx(fast.duration_s) == 50 * record_s


def test_a_label_that_two_rates_repeat_is_told_apart_over_the_whole_file(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.put(f"{STEM}.edf", edf_bytes(["SpO2", "EEG", "SpO2"], per_record=[25, 200, 1]))
    bench.convert(recording_at(f"{STEM}.edf", "edf", "eeg"))
    assert [served(bench.store, name).labels for name in ("eeg_25hz", "eeg_200hz", "eeg_1hz")] == [
        ("SpO2-0",),
        ("EEG",),
        ("SpO2-1",),
    ]
    renamed = root(bench.store)["recording_metadata"]["channel_labels_deduplicated"]  # type: ignore[index]  # a JSON object
    assert renamed == {"SpO2-0": "SpO2", "SpO2-1": "SpO2"}


SPLIT = """
import resource, sys
from pathlib import Path
import numpy
from tasks.formats.edf_header import read_header
from tasks.formats.edf_split import split_by_rate
path = Path(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
split_by_rate(path, path.parent, read_header(path, sample_width=2))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_file_is_taken_apart_in_little_memory_and_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "x.edf"
    record = np.arange(-16_000, 16_000, dtype="<i2").tobytes()
    path.write_bytes(edf_bytes(per_record=[30_000, 2_000], n_records=0, declared=1500) + record * 1500)
    grown = subprocess.run([sys.executable, "-c", SPLIT, path], capture_output=True, text=True, check=True)
    assert int(grown.stdout) * 1024 < path.stat().st_size / 2
    fast, slow = split_by_rate(path, tmp_path, read_header(path, sample_width=2))
    assert (fast.rows, slow.rows) == ((0,), (1,))
    assert fast.path.read_bytes()[512:] == record[:60_000] * 1500
    assert slow.path.read_bytes()[512:] == record[60_000:] * 1500
