from __future__ import annotations

import json
from typing import Any

import pytest

from contract.codes import FailureCode, PendingReason
from contract.errors import Refused
from tasks.adoption.served_index import read_served_index

PATH = "sub-01/eeg/sub-01_task-rest_eeg.edf"
ZARR = PATH.removesuffix(".edf") + ".zarr"
KEY = "SHA256E-s100--" + "a" * 64 + ".edf"


def index_of(**more: Any) -> bytes:
    document = {
        "format": "nemar-zarr-index",
        "format_version": 3,
        "dataset_id": "xx000001",
        "source_commit": "ab" * 20,
        "biosigio_version": "1.2.3",
        "stores": [{"path": PATH, "zarr": ZARR, "source_tree": "raw", "derived": False}],
        "failures": [],
        "pending": [],
    }
    return json.dumps(document | more).encode()


def test_an_index_of_version_3_has_its_keys_in_the_manifest() -> None:
    group = {"name": "eeg_250hz", "rate": 250, "n_samples": 1000, "duration_s": 4.0, "one_of_theirs": 1}
    store = {
        "path": PATH,
        "zarr": ZARR,
        "source_tree": "raw",
        "derived": False,
        "groups": [group],
        "n_events": 2,
        "trial_types": {"go": 2},
        "their_own": True,
    }
    manifest = json.dumps({"stores": [{"zarr": ZARR, "source_key": KEY, "size_bytes": 100}]}).encode()
    served = read_served_index("xx000001", index_of(stores=[store]), manifest)
    (found,) = served.stores
    assert (found.path, found.entry.zarr, found.source_key) == (PATH, ZARR, KEY)
    assert found.entry.groups is not None
    assert (found.entry.groups[0].rate, found.entry.groups[0].n_samples, found.entry.n_events) == (250.0, 1000, 2)
    assert (served.source_commit, served.biosigio_version, served.store_count) == ("ab" * 20, "1.2.3", 1)


def test_an_index_of_version_1_has_its_keys_in_its_entries() -> None:
    stores = [{"path": PATH, "zarr": ZARR, "source_key": KEY, "source_commit": ""}]
    served = read_served_index("xx000001", index_of(format_version=1, source_commit="", stores=stores), None)
    (found,) = served.stores
    assert (found.source_key, found.entry.derived, found.entry.groups) == (KEY, False, None)
    assert served.source_commit is None


@pytest.mark.parametrize(
    "entry",
    [
        {"path": PATH, "zarr": ZARR, "source_tree": "derivatives", "derived": True},
        {"path": f"derivatives/clean/{PATH}", "zarr": f"derivatives/clean/{ZARR}"},
        {"path": f"sourcedata/{PATH}", "zarr": f"sourcedata/{ZARR}"},
    ],
)
def test_stores_outside_the_raw_data_are_counted_and_left_out(entry: dict[str, Any]) -> None:
    served = read_served_index("xx000001", index_of(stores=[entry]), None)
    assert (served.stores, served.outside_raw, served.store_count) == ((), 1, 1)


@pytest.mark.parametrize(
    "entry",
    [
        {"path": "../../etc/passwd", "zarr": ZARR},
        {"path": PATH, "zarr": "/abs.zarr"},
        {"path": PATH, "zarr": "no-store"},
        {"path": PATH},
        "text",
        None,
        {"path": PATH, "zarr": ZARR, "derived": True},
        {"path": PATH, "zarr": ZARR, "groups": [{"name": "eeg_250hz", "rate": -1}]},
    ],
)
def test_an_entry_that_cannot_be_used_is_told_and_the_rest_is_read(entry: object) -> None:
    good = {"path": PATH, "zarr": ZARR, "derived": False}
    served = read_served_index("xx000001", index_of(stores=[entry, good]), None)
    assert len(served.stores) == 1
    assert len(served.unusable) == 1
    assert served.unusable[0].startswith("a store: ")


def test_verdicts_and_attempts_are_read_and_unknown_words_are_not() -> None:
    failures = [
        {"path": PATH, "code": "not_continuous", "reason": "x", "detail": "3 epochs"},
        {"path": "b", "code": "odd"},
    ]
    pending = [
        {"path": "c", "zarr": "c.zarr", "reason": "memory_budget", "attempts": 3, "last_error": "MemoryError"},
        {"path": "d", "zarr": "d.zarr", "reason": "mood", "attempts": 1},
    ]
    served = read_served_index("xx000001", index_of(stores=[], failures=failures, pending=pending), None)
    assert [(one.path, one.code, one.detail) for one in served.failures] == [
        (PATH, FailureCode.NOT_CONTINUOUS, "3 epochs")
    ]
    assert [(one.path, one.reason, one.attempts) for one in served.pending] == [("c", PendingReason.MEMORY_BUDGET, 3)]
    assert len(served.unusable) == 2


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        index_of(format="another"),
        index_of(dataset_id="xx000002"),
        index_of(format_version=4),
        index_of(stores={}),
    ],
)
def test_what_is_no_index_of_this_dataset_is_refused(data: bytes) -> None:
    with pytest.raises(Refused, match="xx000001"):
        read_served_index("xx000001", data, None)


@pytest.mark.parametrize("manifest", [b"", b"{}", b'{"stores": [1]}', b'{"stores": [{"source_key": "k"}]}'])
def test_a_manifest_that_cannot_be_read_counts_as_none(manifest: bytes) -> None:
    assert read_served_index("xx000001", index_of(), manifest).stores[0].source_key is None
