"""The documents of the contract's examples, and small indexes of any counts."""

from __future__ import annotations

from typing import Any

from contract.index import (
    Index,
)

COMMIT = "d14ae5eb3881e368ee328bc1312d3fa51f7e70a9"
STAMP = "2026-08-30T04:12:09Z"
UNITS = {
    "converted": 129,
    "relabelled": 0,
    "kept_importer_unit": 0,
    "units_column_present": True,
    "sidecar": "sub-01/eeg/sub-01_task-rest_channels.tsv",
    "sidecar_supplied": False,
}
SSS = {
    "applied": True,
    "method": "maxwell_filter",
    "calibration": "sub-01_acq-calibration_meg.dat",
    "cross_talk": "sub-01_acq-crosstalk_meg.fif",
    "mne_version": "1.12.0",
}
STORE: dict[str, Any] = {
    "path": "sub-01/eeg/sub-01_task-rest_eeg.set",
    "zarr": "sub-01/eeg/sub-01_task-rest_eeg.zarr",
    "source_tree": "raw",
    "derived": False,
    "updated_utc": STAMP,
    "modalities": ["eeg"],
    "groups": [
        {
            "name": "eeg_250hz",
            "modality": "EEG",
            "rate": 250.0,
            "n_channels": 129,
            "n_samples": 43034,
            "duration_s": 172.136,
            "source_rate_hz": 1000.0,
            "n_view_levels": 4,
            "view_chunk_columns": 1024,
            "chunk_samples": 1000,
            "shard_samples": 75000,
        }
    ],
    "power_line_frequency": 60.0,
    "event_description_count": 4,
    "n_events": 120,
    "trial_types": {"rest": 60, "video": 60},
    "units_report": UNITS,
}
FAILURE: dict[str, Any] = {
    "path": "sub-04/eeg/sub-04_task-rest_epo_eeg.set",
    "zarr": "sub-04/eeg/sub-04_task-rest_epo_eeg.zarr",
    "code": "not_continuous",
    "reason": "This file cannot be shown as a time series.",
    "detail": None,
    "attempts": 0,
}
PENDING: dict[str, Any] = {
    "path": "sub-05/eeg/sub-05_task-rest_eeg.set",
    "zarr": "sub-05/eeg/sub-05_task-rest_eeg.zarr",
    "reason": "memory_budget",
    "attempts": 2,
    "last_error": "RLIMIT_DATA exceeded during conversion",
    "last_attempt_utc": STAMP,
}
ADDRESSES = {
    "contract_base": "https://zarr.nemar.org/nm000103/zarr/",
    "data_base": "https://nemar.s3.us-east-2.amazonaws.com/nm000103/zarr/",
    "data_base_kind": "s3-public",
    "s3_uri": "s3://nemar/nm000103/zarr/",
    "s3_region": "us-east-2",
    "s3_anonymous": True,
}
LOCAL = {
    "contract_base": "http://127.0.0.1:8321/nm000103/zarr/",
    "data_base": "http://127.0.0.1:8321/nm000103/zarr/",
    "data_base_kind": "local-http",
    "s3_uri": "s3://local/nm000103/zarr/",
    "s3_region": "local",
    "s3_anonymous": False,
}
CATALOG: dict[str, Any] = {
    "format": "nemar-zarr-catalog",
    "format_version": 1,
    "generated_utc": "2026-09-09T03:00:04.639Z",
    "contract_base": "https://zarr.nemar.org/",
    "count": 1,
    "datasets": [
        {
            "dataset_id": "nm000103",
            "name": "A network of recordings",
            "doi": "10.82901/nemar.nm000103",
            "license": "CC-BY-NC-SA 4.0",
            "modalities": ["eeg"],
            "subject_count": 447,
            "store_count": 3522,
            "recording_count": 3522,
            "recordings_unavailable": 0,
            "total_recording_duration": 1026054.144,
            "zarr_converted_at": "2026-09-05 02:04:15",
            "zarr_source_commit": COMMIT,
            "zarr_errors": 0,
            "zarr_verify_status": "verified",
            "zarr_verified_at": "2026-09-04 03:00:41",
            "index_url": "https://zarr.nemar.org/nm000103/zarr/index.json",
        }
    ],
}


def facts(stores: int, failures: int, pending: int, **changes: Any) -> dict[str, Any]:
    counted = {
        "discovered_count": stores + failures + pending,
        "store_count": stores,
        "n_recordings": stores,
        "errors": failures,
        "failure_count": failures,
        "pending_count": pending,
    }
    rest = {"dataset_id": "nm000103", "source_commit": COMMIT, "updated_utc": STAMP}
    return {**rest, **ADDRESSES, **counted, **changes}


def index(**changes: Any) -> Index:
    lists = {"stores": [STORE], "failures": [FAILURE], "pending": [PENDING]}
    return Index.model_validate({**facts(1, 1, 1), **lists, **changes})


def provenance() -> dict[str, Any]:
    return {
        "dataset_id": "nm000103",
        "doi": "10.82901/nemar.nm000103",
        "license": "CC-BY-NC-SA 4.0",
        "citation": None,
        "source_commit": COMMIT,
        "source_tree": "raw",
        "derived": False,
        "hed_version": "8.3.0",
        "engine_version": "3",
        "contract_url": "https://zarr.nemar.org/nm000103/zarr/sub-01/eeg/sub-01_task-rest_eeg.zarr/",
        "provenance_fetch_failed": False,
    }
