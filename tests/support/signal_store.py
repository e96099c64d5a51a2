"""Small stores laid out as real ones are, made by zarr-python alone, and an index that names them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr
from zarr.codecs import BloscCodec

from contract.layout import index_key, store_key

if TYPE_CHECKING:
    from infra.storage.protocol import Target

DATASET, ZARR, PATH, GROUP = "xx000005", "sub-01/eeg/sub-01_eeg.zarr", "sub-01/eeg/sub-01_eeg.edf", "eeg_100hz"
RATE_HZ, CHUNK, SHARD, N_SAMPLES, FACTOR = 100.0, 400, 1200, 2950, 4
LABELS = ("Fp1", "7", "Cz")
SCALE, OFFSET = (0.5, 0.25, 2.0), (10.0, -3.0, 0.0)
COMMIT = "a" * 40


def digital(version: int) -> np.ndarray:
    """The samples of a version, (channels, samples); the second shard of an odd one is zero, so its object is not written."""
    samples = np.random.default_rng(version).integers(-3000, 3000, (len(LABELS), N_SAMPLES), dtype=np.int16)
    if version % 2:
        samples[:, SHARD : 2 * SHARD] = 0
    return samples


def physical(version: int) -> np.ndarray:
    return digital(version) * np.array(SCALE)[:, None] + np.array(OFFSET)[:, None]


def envelope(version: int) -> np.ndarray:
    """Least and greatest physical values of each column of view level 1, (2, channels, columns)."""
    starts = range(0, N_SAMPLES, FACTOR)
    columns = [physical(version)[:, start : start + FACTOR] for start in starts]
    return np.stack([np.stack([c.min(1) for c in columns], 1), np.stack([c.max(1) for c in columns], 1)])


def write_signal_store(folder: Path, version: int) -> dict[str, str]:
    """Write a version of the store into a folder; SHA-256 by object name."""
    root = zarr.open_group(folder, mode="w", zarr_format=3)
    root.attrs.update(
        {
            "format": "biosigio-zarr",
            "format_version": 2,
            "biosigio_version": "1.2.13",
            "channel_groups": [GROUP],
            "publish_id": f"version-{version}",
        }
    )
    group = root.create_group(GROUP, attributes=_group_attributes())
    blosc = BloscCodec(cname="zstd", clevel=5, typesize=2)
    signal = group.create_array(
        "0",
        shape=(len(LABELS), N_SAMPLES),
        chunks=(len(LABELS), CHUNK),
        shards=(len(LABELS), SHARD),
        dtype="int16",
        compressors=blosc,
        attributes={"level": 0, "scale": SCALE, "offset": OFFSET},
        config={"write_empty_chunks": False},
    )
    signal[:] = digital(version)
    columns = (envelope(version) - np.array(OFFSET)[:, None]) / np.array(SCALE)[:, None]
    view = group.create_group("view").create_array(
        "1",
        shape=columns.shape,
        chunks=(2, len(LABELS), 128),
        dtype="int16",
        compressors=blosc,
        attributes={"level": 1, "downsample_factor": FACTOR, "kind": "minmax_envelope", "usable_for_inference": False},
    )
    view[:] = columns.astype(np.int16)
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _group_attributes() -> dict[str, Any]:
    channels = [
        {
            "label": label,
            "channel_type": "EEG",
            "modality": "EEG",
            "unit": "uV",
            "row_index": row,
            "scale": SCALE[row],
            "offset": OFFSET[row],
            "usable_for_inference": True,
        }
        for row, label in enumerate(LABELS)
    ]
    return {
        "modality": "EEG",
        "rate": RATE_HZ,
        "original_rate": 500.0,
        "n_channels": len(LABELS),
        "n_samples": N_SAMPLES,
        "channels": channels,
        "n_view_levels": 1,
        "view_levels": [1],
        "view_downsample": FACTOR,
        "view_chunk_columns": 128,
        "chunk_seconds": CHUNK / RATE_HZ,
        "shard_seconds": SHARD / RATE_HZ,
    }


def put_version(target: Target, scratch: Path, version: int) -> None:
    """Publish a version of the store at its address, over what stands there."""
    put_written(target, scratch, version, write_version(scratch, version))


def write_version(scratch: Path, version: int) -> Any:
    """Write a version and publish it not yet: who reads with zarr must not write with it in the same thread."""
    return write_signal_store(scratch / f"version-{version}", version)


def put_written(target: Target, scratch: Path, version: int, objects: Any) -> None:
    """Publish a version that was written."""
    folder = scratch / f"version-{version}"
    key = store_key(DATASET, ZARR)
    target.put_store(key, folder, objects, token=f"version-{version}", may_write=lambda: None)


def put_index(target: Target, **changes: Any) -> dict[str, Any]:
    """Publish an index that names the store, a failure and a pending recording."""
    group = {
        "name": GROUP,
        "modality": "EEG",
        "rate": RATE_HZ,
        "n_channels": len(LABELS),
        "n_samples": N_SAMPLES,
        "duration_s": N_SAMPLES / RATE_HZ,
        "source_rate_hz": 500.0,
        "n_view_levels": 1,
        "chunk_samples": CHUNK,
        "shard_samples": SHARD,
    }
    index = {
        "format": "nemar-zarr-index",
        "format_version": 3,
        "dataset_id": DATASET,
        "contract_base": f"http://127.0.0.1:8321/{DATASET}/zarr/",
        "data_base": f"http://127.0.0.1:8321/{DATASET}/zarr/",
        "data_base_kind": "local-http",
        "s3_uri": f"s3://local/{DATASET}/zarr/",
        "s3_region": "local",
        "s3_anonymous": False,
        "source_commit": COMMIT,
        "engine_version": "4",
        "updated_utc": "2026-11-30T08:00:00Z",
        "doi": "10.0000/made.up",
        "license": "CC0",
        "citation": None,
        "hed_version": None,
        "discovered_count": 3,
        "store_count": 1,
        "failure_count": 1,
        "pending_count": 1,
        "a_field_of_later": {"is": "ignored"},
        "stores": [
            {"path": PATH, "zarr": ZARR, "source_tree": "raw", "derived": False, "groups": [group], "n_events": 4}
        ],
        "failures": [
            {
                "path": "sub-02/eeg/sub-02_eeg.edf",
                "code": "corrupt_or_truncated",
                "reason": "It is cut off.",
                "attempts": 0,
            }
        ],
        "pending": [
            {
                "path": "sub-03/eeg/sub-03_eeg.edf",
                "zarr": "sub-03/eeg/sub-03_eeg.zarr",
                "reason": "memory_budget",
                "attempts": 2,
                "last_error": "not enough at /data/secret/place",
            }
        ],
    } | changes
    target.put(index_key(DATASET), json.dumps(index).encode(), content_type="application/json")
    return index
