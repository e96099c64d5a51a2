from __future__ import annotations

import json
from dataclasses import replace

from contract.codes import FailureCode
from tasks.adoption.served_index import ServedIndex, read_served_index
from tasks.adoption.trust import trust
from tasks.bids.discovery import discover
from tasks.sources.protocol import TreeEntry

COMMIT = "ab" * 20
KEYS = {name: f"SHA256E-s100--{name * 32}.edf" for name in ("01", "02", "03")}


def path_of(name: str) -> str:
    return f"sub-{name}/eeg/sub-{name}_task-rest_eeg.edf"


TREE = {path_of(name): TreeEntry(100, f"annex:{key}") for name, key in KEYS.items()}
RECORDINGS = discover(TREE).recordings


def served(*, commit: str = "cd" * 20, keys: dict[str, str] | None = None) -> ServedIndex:
    names = ("01", "02", "03", "04")
    stores = [
        {"path": path_of(name), "zarr": path_of(name).replace(".edf", ".zarr"), "derived": False} for name in names
    ]
    pending = [{"path": path_of("03"), "reason": "infra_failure", "attempts": 2}]
    failures = [{"path": path_of("02"), "code": "not_continuous"}, {"path": path_of("04"), "code": "not_continuous"}]
    document = {
        "format": "nemar-zarr-index",
        "format_version": 3,
        "dataset_id": "xx000001",
        "source_commit": commit,
        "stores": stores,
        "pending": pending,
        "failures": failures,
    }
    rows = [{"zarr": path_of(name).replace(".edf", ".zarr"), "source_key": key} for name, key in (keys or {}).items()]
    return read_served_index("xx000001", json.dumps(document).encode(), json.dumps({"stores": rows}).encode())


def test_in_the_same_state_everything_is_trusted() -> None:
    found = trust(served(commit=COMMIT), RECORDINGS, TREE, COMMIT)
    assert [one.path for one in found.stores] == [path_of(name) for name in ("01", "02", "03")]
    assert found.gone == (path_of("04"),)
    assert [one.path for one in found.pending] == [path_of("03")]
    assert [(one.path, one.code) for one in found.failures] == [(path_of("02"), FailureCode.NOT_CONTINUOUS)]


def test_in_another_state_a_store_is_trusted_by_its_key_alone() -> None:
    found = trust(served(keys={"01": KEYS["01"], "02": KEYS["03"]}), RECORDINGS, TREE, COMMIT)
    assert [one.path for one in found.stores] == [path_of("01")]
    assert found.changed == (path_of("02"), path_of("03"))
    assert (found.pending, found.failures) == ((), ())


def test_a_recording_that_shares_its_store_is_not_trusted() -> None:
    twins = [replace(one, failure=(FailureCode.STORE_PATH_COLLISION, "x")) for one in RECORDINGS]
    assert trust(served(commit=COMMIT), twins, TREE, COMMIT).stores == ()


def test_a_store_that_lies_elsewhere_now_is_not_trusted() -> None:
    moved = [replace(one, zarr=f"other/{one.zarr}") for one in RECORDINGS]
    assert trust(served(commit=COMMIT), moved, TREE, COMMIT).stores == ()
