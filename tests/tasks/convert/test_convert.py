"""Whole conversions of small recordings: attributes, sidecars, the gate, and what is no fault of the file."""

from __future__ import annotations

import json
import resource
import subprocess
from pathlib import Path

import numpy as np
import pytest
import zarr
from conversion import Bench, recording_at, verdict_within, with_sidecars
from open_store import served
from reference_signal import disagreements, expected, read_mne
from small_files import brainvision, edf_bytes, eeglab, eeglab_v73, fif, mefd, shielded, tones, vectorview

from contract.codes import FailureCode, PendingReason
from contract.errors import RecordingFailed
from contract.store import EventsAttributes, GroupAttributes, Level0Attributes, RootAttributes
from tasks.convert.verdict import VerdictKind, classify

EEG = "sub-01/eeg/sub-01_task-a_eeg"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def attributes(store: Path, node: str = "") -> dict[str, object]:
    return dict(json.loads((store / node / "zarr.json").read_bytes())["attributes"])


def edf_of(bench: Bench, **changes: object) -> None:
    bench.put(f"{EEG}.edf", edf_bytes(**changes))  # type: ignore[arg-type]  # the callers' keywords


RECORDING = recording_at(f"{EEG}.edf", "edf", "eeg")


def test_a_full_recording_with_every_sidecar_is_described_whole(bench: Bench) -> None:
    edf_of(bench, labels=["A", "B", "C"])
    bench.put(f"{EEG[:-4]}_channels.tsv", "name\ttype\tunits\nA\tEEG\tuV\nB\tEEG\tmV\nC\tTRIG\tn/a\n")
    bench.put(
        f"{EEG[:-4]}_events.tsv",
        "onset\tduration\ttrial_type\tvalue\n2.0\tn/a\tgo\t1\nn/a\t1\tstop\t2\n0.5\t0.25\tn/a\t3\n0.5\t0\tgo\t1\n",
    )
    bench.put(f"{EEG}.json", '{"PowerLineFrequency": 50, "InstitutionName": "x"}')
    bench.put("task-a_events.json", '{"trial_type": {"Levels": {"go": "press now", "stop": "hold"}}}')
    bench.put("sub-01/eeg/sub-01_electrodes.tsv", "name\tx\ty\tz\nA\t1\t2\t3\nB\tn/a\tn/a\tn/a\n")
    bench.put("sub-01/eeg/sub-01_coordsystem.json", '{"EEGCoordinateSystem": "CapTrak", "EEGCoordinateUnits": "mm"}')
    done = bench.convert(
        with_sidecars(
            RECORDING,
            channels=f"{EEG[:-4]}_channels.tsv",
            events=f"{EEG[:-4]}_events.tsv",
            signal_json=(f"{EEG}.json",),
            events_json=("task-a_events.json",),
            electrodes="sub-01/eeg/sub-01_electrodes.tsv",
            coordsystem="sub-01/eeg/sub-01_coordsystem.json",
        )
    )
    root = attributes(bench.store)
    RootAttributes.model_validate_json(json.dumps(root))
    assert root["power_line_frequency"] == 50.0
    assert root["electrode_positions"] == {"A": [1.0, 2.0, 3.0]}
    assert (root["electrode_coordinate_system"], root["electrode_coordinate_units"]) == ("CapTrak", "mm")
    assert root["subject_info_excluded"] is True
    assert root["source_format"] == "edf"
    assert root["recording_metadata"]["source_file"] == f"{EEG}.edf"  # type: ignore[index]  # a JSON object
    assert root["nemar"]["contract_url"].endswith(f"/{EEG}.zarr/")  # type: ignore[index]  # a JSON object
    group = attributes(bench.store, "eeg_100hz")
    assert [c["prefilter"] for c in group["channels"]] == ["HP:0.1Hz"] * 3  # type: ignore[attr-defined]  # a list
    assert [c["usable_for_inference"] for c in group["channels"]] == [True, True, False]  # type: ignore[attr-defined]  # a list
    GroupAttributes.model_validate_json(json.dumps(group))
    Level0Attributes.model_validate_json(json.dumps(attributes(bench.store, "eeg_100hz/0")))
    events = zarr.open_group(bench.store, mode="r")["events"]
    described = EventsAttributes.model_validate_json(json.dumps(dict(events.attrs)))
    assert described.n_events == 4
    assert described.value_descriptions == {"go": "press now", "stop": "hold"}
    np.testing.assert_array_equal(events["onset"][:], [0.5, 0.5, 2.0, np.nan])
    np.testing.assert_array_equal(events["duration"][:], [0.25, 0.0, 0.0, 1.0])
    assert [described.label_map[str(code)] for code in events["code"][:]] == ["3", "go", "go", "stop"]
    entry = done.entry
    assert (entry.n_events, entry.trial_types, entry.event_description_count) == (4, {"go": 2, "stop": 1}, 2)
    assert entry.units_report is not None
    assert (entry.units_report.converted, entry.units_report.sidecar_supplied) == (1, False)
    assert done.events is not None
    assert done.events_row_count == 4


def test_without_sidecars_nothing_is_claimed(bench: Bench) -> None:
    edf_of(bench)
    done = bench.convert(RECORDING)
    assert not (bench.store / "events").exists()
    assert done.events is None
    entry = done.entry
    claimed = (entry.n_events, entry.trial_types, entry.units_report, entry.channels_tsv_read_error)
    assert claimed == (None, None, None, None)
    assert not {"power_line_frequency", "electrode_positions", "sss"} & attributes(bench.store).keys()


def test_a_sidecar_beside_the_file_that_does_not_apply_is_not_used(bench: Bench) -> None:
    edf_of(bench)
    bench.put(f"{EEG[:-4]}_channels.tsv", "name\ttype\tunits\nA\tEEG\tV\n")
    bench.convert(RECORDING)
    assert attributes(bench.store, "eeg_100hz")["channels"][0]["unit"] == "uV"  # type: ignore[index]  # a JSON list
    assert "channels_tsv_units" not in attributes(bench.store)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\x01\x02",
        b"nonsense\n",
        b"name\tunits\nA\n",
        b'name\tunits\n"A\tuV\n',
        "name\tunits\nA\tµV\n".encode("latin-1"),
    ],
    ids=["empty", "binary", "no name", "ragged", "unclosed quote", "latin-1"],
)
def test_no_channels_tsv_fails_a_recording(bench: Bench, content: bytes) -> None:
    edf_of(bench)
    bench.put("channels.tsv", content)
    done = bench.convert(with_sidecars(RECORDING, channels="channels.tsv"))
    usable = content.startswith(b"name")
    assert done.entry.channels_tsv_read_error is (None if usable else True)


def test_sidecars_that_were_not_fetched_are_disclosed_and_no_failure(bench: Bench) -> None:
    edf_of(bench)
    done = bench.convert(
        with_sidecars(RECORDING, channels="gone.tsv", events="gone2.tsv", signal_json=("a.json",), electrodes="e.tsv")
    )
    assert done.entry.channels_tsv_read_error is True
    assert done.entry.n_events is None
    assert len(done.notes) == 4


def test_equal_source_gives_equal_bytes_and_no_local_path(tmp_path: Path) -> None:
    objects = []
    for name in ("first", "second-with-another-name"):
        bench = Bench(tmp_path / name)
        edf_of(bench)
        done = bench.convert(RECORDING)
        objects.append({k: v for k, v in done.objects.items() if k != "zarr.json"})
        root = attributes(bench.store)
        root.pop("created_utc")
        objects.append(root)
        for path in bench.store.rglob("zarr.json"):
            assert str(tmp_path) not in path.read_text()
        assert not (bench.scratch / "work").exists()
    assert objects[:2] == objects[2:]


def test_digests_are_those_of_the_files(bench: Bench) -> None:
    edf_of(bench)
    done = bench.convert(RECORDING)
    on_disk = {p.relative_to(bench.store).as_posix() for p in bench.store.rglob("*") if p.is_file()}
    assert set(done.objects) == on_disk
    lines = subprocess.run(["sha256sum", *sorted(on_disk)], cwd=bench.store, capture_output=True, text=True, check=True)
    assert lines.stdout.split()[::2] == [done.objects[name].sha256 for name in sorted(on_disk)]


def test_a_rate_that_is_no_whole_number_is_declared_true(bench: Bench) -> None:
    edf_of(bench, per_record=[1000, 1000], record_s="3", n_records=4)
    done = bench.convert(RECORDING)
    assert done.entry.groups is not None
    (group,) = done.entry.groups
    assert (group.name, group.rate, group.source_rate_hz) == ("eeg_250hz", 250.0, 1000 / 3)
    assert (group.n_samples, group.duration_s) == (3000, 12.0)
    for node in ("eeg_250hz", "eeg_250hz/0"):
        assert attributes(bench.store, node)["rate"] == group.rate
    view = attributes(bench.store, "eeg_250hz/view/1")
    assert view["rate_effective"] == 62.5
    own = attributes(bench.store, "eeg_250hz")
    channel = own["channels"][0]  # type: ignore[index]  # a JSON list
    assert (channel["original_rate"], channel["target_rate"]) == (group.source_rate_hz, group.rate)
    assert (own["chunk_seconds"], own["shard_seconds"], group.chunk_samples) == (4.0, 300.0, 1000)


def test_repeated_labels_are_all_served_and_keep_their_electrode(bench: Bench) -> None:
    data = np.round(tones(3, 400, 100.0) * 10).astype(np.int16)
    edf_of(bench, labels=["A", "B", "B"], data=data)
    bench.put("electrodes.tsv", "name\tx\ty\tz\nB\t1\t2\t3\n")
    bench.convert(with_sidecars(RECORDING, electrodes="electrodes.tsv"))
    signal = served(bench.store, "eeg_100hz")
    assert signal.labels == ("A", "B-0", "B-1")
    np.testing.assert_allclose(signal.physical, data * 0.1, atol=0.01)
    positions = attributes(bench.store)["electrode_positions"]
    assert positions == {"B": [1.0, 2.0, 3.0], "B-0": [1.0, 2.0, 3.0], "B-1": [1.0, 2.0, 3.0]}


def test_a_channels_tsv_that_lists_more_is_served_and_disclosed(bench: Bench) -> None:
    edf_of(bench)
    bench.put("channels.tsv", "name\tunits\n" + "".join(f"{name}\tuV\n" for name in "ABCDE"))
    done = bench.convert(with_sidecars(RECORDING, channels="channels.tsv"))
    declared = {"channels_tsv": 5, "in_file": 2, "in_store": 2}
    assert attributes(bench.store)["channels_tsv_count_mismatch"] == declared
    assert any("5 channels" in note for note in done.notes)


def test_a_split_fif_is_one_recording(bench: Bench) -> None:
    data = np.random.default_rng(0).normal(size=(20, 60_000)) * 1e-12
    fif(bench.source / "sub-01/meg/sub-01_meg.fif", data, 1000.0, split_bytes="3MB")
    parts = tuple(sorted(p.relative_to(bench.source).as_posix() for p in (bench.source / "sub-01/meg").glob("*.fif")))
    recording = recording_at(parts[0], "fif", "meg", members=parts, split_members=parts)
    done = bench.convert(recording)
    assert done.entry.split_members == parts
    assert done.entry.groups is not None
    assert [(g.name, g.n_samples) for g in done.entry.groups] == [("meg_250hz", 15_000)]
    assert attributes(bench.store)["source_format"] == "meg"
    signal = served(bench.store, "meg_250hz")
    assert disagreements(signal, expected(read_mne(bench.source / parts[0]), signal, 250.0)) == []


def test_a_mef3_session_is_served(bench: Bench) -> None:
    data = tones(2, 2560, 256.0)
    folder = mefd(bench.source / "sub-01/ieeg/sub-01_ieeg.mefd", data, 256.0)
    members = tuple(sorted(p.relative_to(bench.source).as_posix() for p in folder.rglob("*") if p.is_file()))
    done = bench.convert(recording_at("sub-01/ieeg/sub-01_ieeg.mefd", "mef3", "ieeg", members=members))
    assert done.entry.modalities == ("ieeg",)
    signal = served(bench.store, "ieeg_256hz")
    assert signal.units == ("V", "V")
    np.testing.assert_allclose(signal.physical * 1e6, data.astype(int), atol=0.01)


@pytest.mark.parametrize("write", [eeglab, eeglab_v73], ids=["matlab 5", "matlab 7.3"])
def test_a_set_is_served_in_microvolt_with_every_row(bench: Bench, write: object) -> None:
    data = tones(3, 1000, 500.0)
    write(bench.source / f"{EEG}.set", data, 500.0)  # type: ignore[operator]  # the table's functions
    bench.convert(recording_at(f"{EEG}.set", "eeglab", "eeg"))
    signal = served(bench.store, "eeg_250hz")
    assert signal.units == ("uV",) * 3
    assert signal.physical.shape == (3, 500)


def test_a_maxshield_recording_without_calibration_is_not_served(bench: Bench) -> None:
    shielded(fif(bench.source / "sub-01/meg/sub-01_meg.fif", tones(3, 3000, 1000.0) * 1e-12, 1000.0))
    recording = recording_at("sub-01/meg/sub-01_meg.fif", "fif", "meg")
    bench.put("cal.dat", "1\n")
    for found in (
        recording,
        with_sidecars(recording, calibration="cal.dat"),
        with_sidecars(recording, calibration="cal.dat", crosstalk="gone.fif"),
        with_sidecars(recording, calibration="cal.dat", crosstalk="cal.dat"),
    ):
        with pytest.raises(RecordingFailed) as caught:
            bench.convert(found)
        assert caught.value.failure is FailureCode.MAXSHIELD_UNCALIBRATED


def test_a_maxshield_recording_with_calibration_is_corrected_and_disclosed(bench: Bench, recordings: Path) -> None:
    calibration = recordings / "fif/sss_cal_mgh.dat"
    path = vectorview(bench.source / "sub-01/meg/sub-01_meg.fif", calibration, 200, 100.0, sensors=130)
    before = read_mne(path).data
    shielded(path)
    bench.put("sub-01/meg/sub-01_acq-calibration_meg.dat", calibration)
    bench.put("sub-01/meg/sub-01_acq-crosstalk_meg.fif", recordings / "fif/ct_sparse_mgh.fif")
    done = bench.convert(
        with_sidecars(
            recording_at("sub-01/meg/sub-01_meg.fif", "fif", "meg"),
            calibration="sub-01/meg/sub-01_acq-calibration_meg.dat",
            crosstalk="sub-01/meg/sub-01_acq-crosstalk_meg.fif",
        )
    )
    assert done.entry.derived
    assert done.entry.sss is not None
    root = attributes(bench.store)
    assert root["sss"] == done.entry.sss.model_dump(mode="json")
    assert root["sss"]["cross_talk"] == "sub-01_acq-crosstalk_meg.fif"  # type: ignore[index]  # a JSON object
    assert root["nemar"]["derived"] is True  # type: ignore[index]  # a JSON object
    assert root["recording_metadata"]["source_file"] == "sub-01/meg/sub-01_meg.fif"  # type: ignore[index]  # a JSON object
    signal = served(bench.store, "meg_100hz")
    assert signal.physical.shape == before.shape
    assert np.abs(signal.physical - before).max() > 10 * signal.scale.max()


def test_an_error_of_a_reader_without_a_type_is_the_files_fault(bench: Bench) -> None:
    path = fif(bench.source / "sub-01/meg/sub-01_meg.fif", tones(3, 3000, 1000.0) * 1e-12, 1000.0)
    data = path.read_bytes()
    channel_tag = (203).to_bytes(4, "big")
    assert data.count(channel_tag) >= 3
    path.write_bytes(data.replace(channel_tag, (9203).to_bytes(4, "big")))
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - biosigIO's errors are ValueErrors; the verdict is what counts
        bench.convert(recording_at("sub-01/meg/sub-01_meg.fif", "fif", "meg"))
    verdict = classify(caught.value)
    assert (verdict.kind, verdict.code) == (VerdictKind.FAILED, FailureCode.FILE_READ_ERROR)


def test_a_disk_that_takes_no_more_is_a_condition_of_the_machine(bench: Bench) -> None:
    edf_of(bench, n_records=200, data=np.random.default_rng(0).integers(-9000, 9000, (2, 20_000)).astype(np.int16))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            bench.convert(RECORDING)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    verdict = classify(caught.value)
    assert (verdict.kind, verdict.reason, verdict.counted) == (VerdictKind.PENDING, PendingReason.INFRA_FAILURE, True)


def test_a_kdf_is_served_like_the_con_that_it_is(bench: Bench, recordings: Path) -> None:
    bench.put("sub-01/meg/sub-01_meg.kdf", recordings / "kit/MQKIT_125_2sec.con")
    done = bench.convert(recording_at("sub-01/meg/sub-01_meg.kdf", "kit", "meg"))
    assert done.entry.groups is not None
    assert [(g.name, g.n_channels, g.n_samples) for g in done.entry.groups] == [("meg_250hz", 193, 500)]
    assert attributes(bench.store)["source_format"] == "meg"


def test_a_renamed_brainvision_recording_is_served_from_its_own_samples(bench: Bench) -> None:
    data = tones(3, 1000, 500.0)
    brainvision(bench.source / "sub-01/eeg", "sub-01_task-a_eeg", data, 500.0, data_file="before.eeg")
    bench.convert(recording_at(f"{EEG}.vhdr", "brainvision", "eeg", companions=(f"{EEG}.eeg", f"{EEG}.vmrk")))
    signal = served(bench.store, "eeg_250hz")
    assert signal.physical.shape == (3, 500)
    assert attributes(bench.store)["source_format"] == "brainvision"
    assert "before" not in (bench.store / "zarr.json").read_text()


def test_a_memory_limit_is_a_condition_of_the_machine(bench: Bench) -> None:
    names = (f"{EEG}.set", f"{EEG.replace('-01', '-02')}.set")
    small, large = (recording_at(name, "eeglab", "eeg") for name in names)
    for name, n_samples in zip(names, (1_000, 400_000), strict=True):
        signal = np.random.default_rng(0).normal(size=(16, n_samples))
        (bench.source / name).parent.mkdir(parents=True, exist_ok=True)
        eeglab(bench.source / name, signal, 500.0, compressed=False)
    verdict = verdict_within(bench, small, large, spare_bytes=4_000_000)
    assert verdict is not None
    assert (verdict.kind, verdict.reason) == (VerdictKind.PENDING, PendingReason.MEMORY_BUDGET)
