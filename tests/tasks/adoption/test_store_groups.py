"""Channel groups of a store whose index entry tells none, from the store's own metadata, in a folder and in a bucket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fault_proxy import Fault
from s3_server import S3Place

from contract.documents import dump, parse
from contract.errors import StorageDenied
from contract.index import StoreEntry
from infra.storage.folder import FolderTarget
from infra.storage.opening import open_target
from infra.storage.protocol import Target
from tasks.adoption.served_index import ServedStore
from tasks.adoption.store_groups import with_groups

SSS = {
    "applied": True,
    "method": "maxwell_filter",
    "calibration": "a.dat",
    "cross_talk": "b.fif",
    "mne_version": "1.12.0",
}
GROUP = {"modality": "EEG", "rate": 250.0, "original_rate": 1000.0, "n_view_levels": 3, "view_chunk_columns": 1024}
LEVEL0 = {"source_rate_hz": 1000.0, "chunk_samples": 1000, "shard_samples": 75000}


def served(name: str) -> ServedStore:
    path = f"sub-{name}/eeg/sub-{name}_task-rest_eeg.edf"
    entry = StoreEntry(path=path, zarr=path.replace(".edf", ".zarr"), derived=False)
    return ServedStore(path=path, entry=entry, source_key=None)


def documents(**attributes: Any) -> dict[str, bytes]:
    """Metadata of a store of two groups; the second is of an older release, which says less."""
    found = {
        "": {"attributes": {"channel_groups": ["eeg_250hz", "misc_5hz"], **attributes}},
        "eeg_250hz/": {"attributes": GROUP},
        "eeg_250hz/0/": {"shape": [4, 500], "attributes": LEVEL0},
        "misc_5hz/": {"attributes": {"modality": "MISC", "rate": 5, "original_rate": 5}},
        "misc_5hz/0/": {"shape": [1, 11], "attributes": {}},
    }
    return {f"{name}zarr.json": json.dumps(document).encode() for name, document in found.items()}


@pytest.fixture(params=["folder", "bucket"])
def target(request: pytest.FixtureRequest, tmp_path: Path, s3: S3Place) -> Target:
    if request.param == "folder":
        return FolderTarget(tmp_path / "served", port=8321)
    return open_target(f"s3://{s3.name}/served", s3.settings())


def put(target: Target, store: ServedStore, named: dict[str, bytes]) -> None:
    for name, data in named.items():
        target.put(f"xx000001/zarr/{store.entry.zarr}/{name}", data, content_type="application/json")


def test_groups_modalities_and_a_correction_come_from_the_store(target: Target) -> None:
    plain, corrected = served("01"), served("02")
    put(target, plain, documents())
    put(target, corrected, documents(sss=SSS))
    (first, second), silent = with_groups(target, "xx000001", [plain, corrected])
    assert silent == ()
    assert [json.loads(dump(group)) for group in first.entry.groups or ()] == [
        {
            "name": "eeg_250hz", "modality": "EEG", "rate": 250.0, "n_channels": 4, "n_samples": 500, "duration_s": 2.0,
            "source_rate_hz": 1000.0, "n_view_levels": 3, "view_chunk_columns": 1024,
            "chunk_samples": 1000, "shard_samples": 75000,
        },
        {
            "name": "misc_5hz", "modality": "MISC", "rate": 5.0, "n_channels": 1, "n_samples": 11, "duration_s": 2.2,
            "source_rate_hz": 5.0,
        },
    ]  # fmt: skip
    assert (first.entry.modalities, first.entry.derived) == (("eeg", "misc"), False)
    assert second.entry.derived
    assert second.entry.sss is not None
    assert parse(StoreEntry, dump(second.entry)) == second.entry
    again, _ = with_groups(target, "xx000001", [first])
    assert again == (first,), "an entry that tells its groups is not looked at"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d.clear(),
        lambda d: d.pop("eeg_250hz/0/zarr.json"),
        lambda d: d.update({"zarr.json": b"[]"}),
        lambda d: d.update({"zarr.json": b"{"}),
        lambda d: d.update(documents(channel_groups=[])),
        lambda d: d.update(documents(channel_groups=["../../xx000002/zarr/a"])),
        lambda d: d.update(documents(channel_groups=[7])),
        lambda d: d.update(documents(channel_groups="eeg_250hz")),
        lambda d: d.update({"eeg_250hz/zarr.json": b'{"attributes": {"rate": 0}}'}),
        lambda d: d.update({"eeg_250hz/0/zarr.json": b'{"attributes": {}, "shape": ["4", "5"]}'}),
        lambda d: d.update(documents(sss={"applied": False})),
    ],
)
def test_a_store_that_tells_nothing_keeps_its_entry_and_is_named(tmp_path: Path, spoil: Any) -> None:
    target = FolderTarget(tmp_path / "served", port=8321)
    store, sound = served("01"), served("02")
    spoilt = documents()
    spoil(spoilt)
    put(target, store, spoilt)
    put(target, sound, documents())
    (first, second), silent = with_groups(target, "xx000001", [store, sound])
    assert (first, silent) == (store, (store.path,))
    assert second.entry.groups


def test_a_denial_is_no_silence(s3: S3Place) -> None:
    target = open_target(f"s3://{s3.name}/served", s3.settings())
    store = served("01")
    put(target, store, documents())
    s3.proxy.faults = [Fault(kind="denied", method="GET", pattern="eeg_250hz/0/")]
    with pytest.raises(StorageDenied):
        with_groups(target, "xx000001", [store])
