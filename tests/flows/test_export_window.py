"""Exports as people ask for them: from a folder, a bucket and an archive, with images, of many recordings, and how many bytes that moves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from command import Zarrmill
from export_asking import EXPECTED, WINDOW, ask_for, samples, settings_of
from export_scene import EVENTS, put_events, put_scene
from fault_proxy import Fault
from loopback import running
from prefect.deployments import run_deployment
from product import ROOT
from s3_server import S3Place
from signal_store import DATASET, GROUP, LABELS, PATH, ZARR, physical, put_index
from sqlalchemy import Engine
from zarr.codecs import BloscCodec

from api.app import create_app
from contract.array_layout import ArrayLayout
from contract.errors import NotServed, Refused, StorageError
from contract.layout import store_key
from flows.deployments import EXPORT
from flows.export_request import NotExported
from flows.export_window import export_one, export_several
from flows.inbox import Inbox
from flows.prefect_adopted import asking
from flows.stop import StopSignal
from infra.settings import Settings
from infra.storage import open_target
from infra.storage.folder import FolderTarget


@pytest.mark.parametrize("where", ["folder", "bucket", "http", "http over a bucket", "http sent on to a bucket"])
def test_the_same_file_comes_from_everywhere(
    served: Path, tmp_path: Path, home: Path, where: str, request: pytest.FixtureRequest
) -> None:
    settings = settings_of(home)
    if where in {"folder", "http"}:
        target: Any = FolderTarget(served, port=8321)
    else:
        s3: S3Place = request.getfixturevalue("s3")
        settings = s3.settings(home=home, redirect="signed" if "sent on" in where else "never")
        target = open_target(f"s3://{s3.name}/kept", settings)
        put_scene(target, tmp_path)
    if where.startswith("http"):
        with running(create_app(target, settings)) as port:
            export_one(settings_of(home), ask_for(f"http://127.0.0.1:{port}", tmp_path / "a.h5"))
    else:
        export_one(settings, ask_for(target.url, tmp_path / "a.h5"))
    assert np.array_equal(samples(tmp_path / "a.h5"), EXPECTED.astype(np.float32))


def test_a_bucket_that_anybody_can_read_and_nobody_can_list_is_read_without_a_signature(
    s3: S3Place, tmp_path: Path, home: Path
) -> None:
    settings = s3.settings(home=home)
    target = open_target(f"s3://{s3.name}/kept", settings)
    put_scene(target, tmp_path, version=3)
    # moto asks for a right to HEAD, which S3 has not
    actions = ["s3:GetObject", "s3:HeadObject"]
    policy = {"Effect": "Allow", "Principal": "*", "Action": actions, "Resource": f"arn:aws:s3:::{s3.name}/*"}
    s3.plain.put_bucket_policy(Bucket=s3.name, Policy=json.dumps({"Version": "2012-10-17", "Statement": [policy]}))
    s3.proxy.forget()
    # whoever signs is refused, as with keys of another account; of chunks of zeros, which are not there, nobody is told so
    s3.proxy.faults = [Fault(kind="denied", times=1), Fault(kind="denied", pattern=r"/c/0/1\?")]
    export_one(settings, ask_for(target.url, tmp_path / "a.h5", window_s=None, start_s=8.0, stop_s=20.0))
    assert np.array_equal(samples(tmp_path / "a.h5"), physical(3)[:, 800:2000].T.astype(np.float32))
    signed = ["authorization" in {name.lower() for name in headers} for headers in s3.proxy.seen_headers]
    assert signed == [True, *[False] * (len(signed) - 1)]
    assert (s3.proxy.faults[1].struck, len(signed) > 5) == (1, True)
    s3.proxy.faults = [Fault(kind="denied")]
    with pytest.raises(StorageError):
        export_one(settings, ask_for(target.url, tmp_path / "b.h5"))


def test_thirty_windows_of_two_hours_move_their_chunks_and_little_more(s3: S3Place, tmp_path: Path, home: Path) -> None:
    """The second of each window lies in one chunk of 4 s; its neighbours hold as much noise."""
    rate, n_channels, n_samples = 250, 64, 2 * 3600 * 250
    onsets = [60 + 232 * number for number in range(30)]  # seconds
    settings = s3.settings(home=home)
    target = open_target(f"s3://{s3.name}", settings)
    folder = tmp_path / "store"
    write_long_store(folder, rate=rate, n_channels=n_channels, n_samples=n_samples, around_s=onsets)
    objects = {path.relative_to(folder).as_posix(): "" for path in folder.rglob("*") if path.is_file()}
    index = put_index(target)
    group = {"name": GROUP, "rate": float(rate), "n_channels": n_channels, "n_samples": n_samples}
    put_index(target, stores=[{**index["stores"][0], "groups": [group]}])
    put_events(target, tmp_path, [{"onset_s": float(onset), "trial_type": "go"} for onset in onsets], rate_hz=rate)
    key = store_key(DATASET, ZARR)
    needed = sum(chunk_bytes(folder / GROUP / "0", onset * rate) for onset in onsets)
    for name in objects:
        s3.put(f"{key}/{name}", (folder / name).read_bytes())
    s3.proxy.forget()
    told = export_one(settings, ask_for(target.url, tmp_path / "a.h5", window_s=(0.0, 1.0)))
    assert told.shape == (30, rate, n_channels)
    fetched = s3.proxy.sent_bytes
    assert needed <= fetched <= 1.2 * needed, fetched / needed
    signal = zarr.open_array(folder / GROUP / "0", mode="r", zarr_format=3)
    expected = np.stack([signal[:, onset * rate : onset * rate + rate].T * 0.5 + 1.0 for onset in onsets])
    assert np.array_equal(samples(tmp_path / "a.h5"), expected.astype(np.float32))


def write_long_store(folder: Path, *, rate: int, n_channels: int, n_samples: int, around_s: list[int]) -> None:
    root = zarr.open_group(folder, mode="w", zarr_format=3)
    root.attrs.update({"format": "biosigio-zarr", "format_version": 2, "channel_groups": [GROUP]})
    channels = [
        {"label": f"E{row}", "unit": "uV", "row_index": row, "scale": 0.5, "offset": 1.0} for row in range(n_channels)
    ]
    attributes = {
        "rate": float(rate),
        "n_channels": n_channels,
        "n_samples": n_samples,
        "channels": channels,
        "view_levels": [],
    }
    signal = root.create_group(GROUP, attributes=attributes).create_array(
        "0",
        shape=(n_channels, n_samples),
        chunks=(n_channels, 4 * rate),
        shards=(n_channels, 300 * rate),
        dtype="int16",
        compressors=BloscCodec(cname="zstd", clevel=1, typesize=2),
        config={"write_empty_chunks": False},
    )
    rng = np.random.default_rng(7)
    for shard in range(0, n_samples, 300 * rate):
        part = np.zeros((n_channels, 300 * rate), dtype=np.int16)
        for onset in around_s:
            first = (onset // 4 - 1) * 4 * rate - shard
            if 0 <= first < part.shape[1]:
                length = min(3 * 4 * rate, part.shape[1] - first)
                part[:, first : first + length] = rng.integers(-2000, 2000, (n_channels, length), dtype=np.int16)
        signal[:, shard : shard + 300 * rate] = part


def chunk_bytes(array: Path, sample: int) -> int:
    """Bytes of the chunk that holds a sample, as the index at the end of its shard says."""
    layout = ArrayLayout.read(json.loads((array / "zarr.json").read_text()))
    shard, inside = divmod(sample, layout.object_shape[1])
    data = (array / "c" / "0" / str(shard)).read_bytes()
    n_chunks = layout.object_shape[1] // layout.chunk_shape[1]
    index = np.frombuffer(data[-(16 * n_chunks + 4) : -4], dtype="<u8").reshape(-1, 2)
    return int(index[inside // layout.chunk_shape[1], 1])


def test_many_recordings_become_a_file_each_and_a_report_of_what_was_not(
    served: Path, tmp_path: Path, home: Path
) -> None:
    told: list[Any] = []
    recordings = (PATH, "sub-02/eeg/sub-02_eeg.edf", "sub-03/eeg/sub-03_eeg.edf", "sub-09/eeg/x.edf")
    report = export_several(
        settings_of(home), ask_for(served, tmp_path / "out", recordings=recordings, is_file=False), tell=told.append
    )
    assert [isinstance(one, NotExported) for one in told] == [False, True, True, True]
    written = json.loads((tmp_path / "out" / "export.json").read_text())
    assert (written["format"], written["format_version"]) == ("zarrmill-export", 1)
    assert written["counts"] == {"written": 1, "failed": 3, "not_reached": 0, "trials": 5, "trials_dropped": 2}
    (file,) = written["files"]
    assert (file["recording"], file["file"], file["shape"]) == (PATH, "sub-01/eeg/sub-01_eeg.h5", [5, 50, 3])
    assert file["stimuli"] == {"1": "7", "2": "face", "3": "house"}
    assert file["sha256"] == report.exported[0].sha256
    assert [(one["recording"], one["code"]) for one in written["failed"]] == [
        (each, "not_served") for each in recordings[1:]
    ]
    assert "cut off" in written["failed"][0]["reason"]
    assert written["asked"]["window_s"] == list(WINDOW)
    assert sorted(path.name for path in (tmp_path / "out").rglob("*") if path.is_file()) == [
        "export.json",
        "sub-01_eeg.h5",
    ]


def test_an_export_that_is_asked_to_stop_says_what_it_did_not_reach(served: Path, tmp_path: Path, home: Path) -> None:
    stop = StopSignal()
    recordings = (PATH, "sub-02/eeg/sub-02_eeg.edf")
    asked = ask_for(served, tmp_path / "out", recordings=recordings, is_file=False)
    report = export_several(settings_of(home), asked, tell=lambda _: stop.request("SIGTERM"), stop=stop)
    assert (len(report.exported), report.not_reached) == (1, recordings[1:])
    assert json.loads((tmp_path / "out" / "export.json").read_text())["not_reached"] == list(recordings[1:])


def test_a_dataset_that_is_not_there_and_a_place_that_is_none_are_told(
    served: Path, tmp_path: Path, home: Path
) -> None:
    with pytest.raises(NotServed, match="xx000099"):
        export_one(settings_of(home), ask_for(served, tmp_path / "a.h5", dataset_id="xx000099"))
    with pytest.raises(Refused, match="is no folder"):
        export_one(settings_of(home), ask_for(tmp_path / "nothing", tmp_path / "a.h5"))
    with pytest.raises(Refused, match="--from"):
        export_one(settings_of(home), ask_for("https://user:pw@host/", tmp_path / "a.h5"))
    with pytest.raises(Refused, match="--output: there is no folder"):
        export_one(settings_of(home), ask_for(served, tmp_path / "none" / "a.h5"))


@pytest.fixture
def zarrmill(home: Path, tmp_path: Path) -> Zarrmill:
    return Zarrmill(home, tmp_path)


def test_the_command_says_what_it_wrote(served: Path, tmp_path: Path, zarrmill: Zarrmill) -> None:
    asked = ("export", DATASET, PATH, "--from", served, "--window", "-0.2", "0.3")
    ran = zarrmill.run(*asked, "--trial-type", "face", "--trial-type", "house", "--compression", "lzf")
    assert (tmp_path / "sub-01_eeg.h5").is_file()
    for word in (
        "4 epochs of 50 samples, 3 channels, epochs, schema 1",
        "2 dropped",
        "1 event without an onset",
        "stimulus 2: house",
    ):
        assert word in ran.stdout, ran.stdout
    ran = zarrmill.run("export", DATASET, PATH, "sub-02/eeg/sub-02_eeg.edf", "--from", served, "--json", code=3)
    assert [line["event"] for line in ran.lines] == ["exported", "not_exported", "summary"]
    assert (tmp_path / f"{DATASET}-export" / "sub-01" / "eeg" / "sub-01_eeg.h5").is_file()
    assert "it has '7', 'face', 'house'" in zarrmill.run(*asked[:5], "--trial-type", "cat", code=2).stderr
    assert "--all" in zarrmill.run("export", DATASET, "--from", served, code=2).stderr


def test_what_prefect_asks_for_is_done_one_after_the_other(
    served: Path, tmp_path: Path, home: Path, prefect_url: str, engine: Engine
) -> None:
    inbox = Inbox(Settings(home=home, prefect_api_url=prefect_url), engine, prefect_url)
    asked: dict[str, Any] = {"dataset_id": DATASET, "place": str(served), "window_s": [-0.2, 0.3]}
    with asking(prefect_url) as client:
        assert not [one for one in inbox.turn(set()) if one.name == EXPORT]
        runs = []
        for name, mode in (("first", "epochs"), ("second", "patterns")):
            parameters = {**asked, "output": str(tmp_path / name), "mode": mode}
            runs.append(run_deployment(f"{EXPORT}/zarrmill", parameters=parameters, timeout=0, as_subflow=False))
        exports = lambda running: [one for one in inbox.turn(running) if one.name == EXPORT]  # noqa: E731 - asked three times
        (first,) = exports(set())
        assert first.flow_run_id == runs[0].id
        assert exports({EXPORT}) == []
        carried_out(home, prefect_url, first.flow_run_id, code=0)
        state = client.read_flow_run(first.flow_run_id).state
        assert state is not None
        assert (state.name, state.message) == (
            "Completed",
            "1 files with 5 trials written, 2 windows dropped, 0 recordings failed",
        )
        assert np.array_equal(
            samples(tmp_path / "first" / "sub-01" / "eeg" / "sub-01_eeg.h5"), EXPECTED.astype(np.float32)
        )
        (second,) = exports(set())
        carried_out(home, prefect_url, second.flow_run_id, code=1)


def carried_out(home: Path, prefect_url: str, flow_run_id: Any, *, code: int) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "flows.run_scheduled", EXPORT, str(flow_run_id)],
        cwd=ROOT,
        env={**os.environ, "ZARRMILL_HOME": str(home), "PREFECT_API_URL": prefect_url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == code, ran.stderr[-2000:]


assert (len(EVENTS), len(LABELS), StorageError.exit_code) == (9, 3, 1)
