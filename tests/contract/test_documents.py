"""What a document of the contract may hold, and what is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from document_examples import (
    ADDRESSES,
    CATALOG,
    COMMIT,
    FAILURE,
    LOCAL,
    PENDING,
    SSS,
    STAMP,
    STORE,
    UNITS,
    facts,
    index,
    provenance,
)
from pydantic import BaseModel, ValidationError

from contract.callback import ZarrReady
from contract.catalog import Catalog
from contract.documents import compact, dump, parse, read_attributes, write_index
from contract.errors import Refused
from contract.index import (
    FailureEntry,
    GroupEntry,
    Index,
    LocalIndex,
    LocalIndexHead,
    PendingEntry,
    StoreEntry,
)
from contract.manifest import Manifest, ManifestFile, ManifestStore
from contract.store import GroupAttributes, Provenance, RootAttributes


def test_the_examples_of_the_contract_are_valid_and_keep_their_bytes() -> None:
    for model, example in ((StoreEntry, STORE), (FailureEntry, FAILURE), (PendingEntry, PENDING), (Catalog, CATALOG)):
        data = compact(example)
        assert dump(parse(model, data)) == data
    assert dump(Provenance(**provenance())) == compact(provenance())


def test_an_index_is_written_in_the_order_of_its_producers() -> None:
    document = index(events_parquet=f"{ADDRESSES['data_base']}events.parquet", events_row_count=3)
    assert list(json.loads(dump(document))) == [
        "format", "format_version", "dataset_id", "contract_base", "data_base", "data_base_kind", "s3_uri", "s3_region",
        "s3_anonymous", "source_commit", "engine_version", "biosigio_version", "updated_utc", "doi", "license", "citation",
        "hed_version", "layout", "discovered_count", "store_count", "n_recordings", "errors", "failure_count",
        "pending_count", "stores", "failures", "pending", "events_parquet", "events_row_count",
    ]  # fmt: skip


def test_what_has_no_value_is_left_out_or_null_as_the_contract_says() -> None:
    entry = StoreEntry(path="a.edf", zarr="a.zarr", derived=False)
    assert json.loads(dump(entry)) == {"path": "a.edf", "zarr": "a.zarr", "source_tree": "raw", "derived": False}
    failure = json.loads(dump(FailureEntry(path="a.edf", code="file_read_error", reason="Unreadable.")))
    assert failure == {
        "path": "a.edf",
        "code": "file_read_error",
        "reason": "Unreadable.",
        "detail": None,
        "attempts": 0,
    }
    head = json.loads(dump(index()))
    assert {head[name] for name in ("biosigio_version", "doi", "license", "citation", "hed_version")} == {None}
    assert "events_parquet" not in head


INTEGERS = [
    (index, "errors"), (index, "discovered_count"),
    (lambda **c: StoreEntry.model_validate({**STORE, **c}), "n_events"),
    (lambda **c: PendingEntry.model_validate({**PENDING, **c}), "attempts"),
    (lambda **c: GroupEntry(name="g", **c), "n_channels"),
    (lambda **c: ManifestStore(zarr="a.zarr", **c), "size_bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "field"), INTEGERS, ids=[field for _, field in INTEGERS])
@pytest.mark.parametrize("value", [True, 1.0, "1", -1, math.nan])
def test_an_integer_is_an_integer(build: Any, field: str, value: object) -> None:
    with pytest.raises(ValidationError):
        build(**{field: value})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, True, "250", 0.0, -1.0])
def test_a_rate_is_a_finite_positive_number(value: object) -> None:
    with pytest.raises(ValidationError):
        GroupEntry.model_validate({"name": "g", "rate": value})


def test_nan_is_refused_in_bytes_too() -> None:
    with pytest.raises(Refused, match=r"groups\.0\.rate"):
        parse(StoreEntry, compact(STORE).replace(b'"rate":250.0', b'"rate":NaN'))
    with pytest.raises(ValueError, match="JSON"):
        compact({"x": math.nan})


@pytest.mark.parametrize(
    ("model", "example"),
    [
        (StoreEntry, STORE),
        (FailureEntry, FAILURE),
        (PendingEntry, PENDING),
        (Catalog, CATALOG),
        (Provenance, provenance()),
    ],
)
def test_a_field_that_the_contract_does_not_name_is_refused(model: type[BaseModel], example: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="unheard_of"):
        parse(model, compact({**example, "unheard_of": 1}))


@pytest.mark.parametrize("field", ["channels_tsv_count_mismatch", "source_key"])
def test_newer_and_older_fields_of_a_store_are_refused(field: str) -> None:
    with pytest.raises(Refused, match=field):
        parse(StoreEntry, compact({**STORE, field: None}))
    with pytest.raises(Refused, match="unmatched_channels"):
        parse(StoreEntry, compact({**STORE, "units_report": {**UNITS, "unmatched_channels": 0}}))


@pytest.mark.parametrize(
    "field", ["updated_utc", "n_events", "units_report", "split_members", "channels_tsv_read_error"]
)
def test_a_field_that_may_be_left_out_may_not_be_null(field: str) -> None:
    with pytest.raises(Refused, match=field):
        parse(StoreEntry, compact({**STORE, field: None}))


def test_a_null_is_read_where_others_write_one() -> None:
    assert parse(StoreEntry, compact({**STORE, "power_line_frequency": None})).power_line_frequency is None
    assert parse(PendingEntry, compact({**PENDING, "last_error": None})).last_error is None


@pytest.mark.parametrize("field", ["format", "format_version", "layout", "engine_version", "source_commit"])
def test_a_document_must_say_what_it_is(field: str) -> None:
    fields = json.loads(dump(index()))
    del fields[field]
    with pytest.raises(Refused, match=field):
        parse(Index, compact(fields))


OTHER = {**STORE, "path": "sub-02/x_eeg.edf", "zarr": "sub-02/x_eeg.zarr"}
BROKEN: dict[str, dict[str, Any]] = {
    "the sum": {"discovered_count": 4},
    "the alias": {"n_recordings": 2},
    "the store count": {"stores": [STORE, OTHER]},
    "the failure count": {"failures": []},
    "the pending count": {"pending": []},
    "a path in two lists": {"failures": [{**FAILURE, "path": STORE["path"]}]},
    "the order of stores": {**facts(2, 1, 1), "stores": [OTHER, STORE]},
    "a store twice": {**facts(2, 1, 1), "stores": [STORE, {**STORE, "path": "a.edf"}]},
    "events without rows": {"events_parquet": f"{ADDRESSES['data_base']}events.parquet"},
    "rows without events": {"events_row_count": 1},
    "events elsewhere": {"events_parquet": "https://example.org/events.parquet", "events_row_count": 1},
    "no commit": {"source_commit": ""},
    "a commit in capitals": {"source_commit": COMMIT.upper()},
    "another dataset's base": {"contract_base": "https://zarr.nemar.org/nm000104/zarr/"},
    "a local base": LOCAL,
    "a bad id": {"dataset_id": "nm00103"},
    "a time without a zone": {"updated_utc": "2026-08-30 04:12:09"},
    "another version": {"format_version": 2},
    "an unknown reason": {"pending": [{**PENDING, "reason": "tired"}]},
    "a path that leaves": {"pending": [{**PENDING, "path": "../x.edf"}]},
    "an absolute store": {"pending": [{**PENDING, "zarr": "/x.zarr"}]},
    "a store without its ending": {"pending": [{**PENDING, "zarr": "x"}]},
    "derived without its disclosure": {"stores": [{**STORE, "derived": True}]},
    "a disclosure without derived": {"stores": [{**STORE, "sss": SSS}]},
    "another tree": {"stores": [{**STORE, "source_tree": "derivatives"}]},
}  # fmt: skip


@pytest.mark.parametrize("changes", BROKEN.values(), ids=BROKEN.keys())
def test_an_index_that_breaks_a_rule_cannot_be_made(changes: dict[str, Any]) -> None:
    index()
    with pytest.raises(ValidationError):
        index(**changes)


def test_a_corrected_recording_discloses_its_correction() -> None:
    assert index(stores=[{**STORE, "derived": True, "sss": SSS}]).stores[0].sss is not None


def test_a_folder_is_served_from_this_machine_only() -> None:
    document = LocalIndex.model_validate({**json.loads(dump(index())), **LOCAL})
    assert parse(LocalIndex, dump(document)) == document
    head = LocalIndexHead.model_validate({**facts(0, 0, 0), **LOCAL})
    assert parse(LocalIndex, write_index(head, [], [], [])).discovered_count == 0
    for base in ("http://example.org/nm000103/zarr/", "http://127.0.0.1.example.org/nm000103/zarr/"):
        with pytest.raises(ValidationError):
            LocalIndex.model_validate({**json.loads(dump(document)), "contract_base": base})


def test_no_model_can_hold_a_secret_or_a_local_path_in_the_text_of_an_error() -> None:
    text = "OSError: /scratch/abc/x.edf https://h/k?X-Amz-Signature=abcd"
    said = "OSError: <path> https://h/k?X-Amz-Signature=[redacted]"
    assert FailureEntry.model_validate({**FAILURE, "detail": text}).detail == said
    assert PendingEntry.model_validate({**PENDING, "last_error": text}).last_error == said
    assert ZarrReady(dataset_id="nm000103", status="failed", error=text).error == said


def test_a_manifest_lists_each_store_once_in_order() -> None:
    stores = [ManifestStore(zarr="a.zarr", source_key="MD5E-s3--x.edf", size_bytes=3), ManifestStore(zarr="b.zarr")]
    manifest = Manifest(dataset_id="nm000103", updated_utc=STAMP, stores=stores)
    assert dump(manifest) == (
        b'{"format":"nemar-zarr-manifest","format_version":1,"dataset_id":"nm000103","updated_utc":"2026-08-30T04:12:09Z",'
        b'"stores":[{"zarr":"a.zarr","source_key":"MD5E-s3--x.edf","size_bytes":3},'
        b'{"zarr":"b.zarr","source_key":null,"size_bytes":null}]}'
    )
    files = [ManifestFile(name="events.parquet", size_bytes=10, row_count=2)]
    assert parse(Manifest, dump(manifest.model_copy(update={"files": tuple(files)}))).files == tuple(files)
    for wrong in ([stores[1], stores[0]], [stores[0], stores[0]]):
        with pytest.raises(ValidationError):
            Manifest(dataset_id="nm000103", stores=wrong)


@pytest.mark.parametrize(
    "changes",
    [
        {"count": 2},
        {"datasets": [], "count": 1},
        {"datasets": CATALOG["datasets"] * 2, "count": 2},
        {"contract_base": "https://zarr.nemar.org"},
        {"datasets": [{**CATALOG["datasets"][0], "store_count": 0}]},
        {"datasets": [{**CATALOG["datasets"][0], "index_url": "https://example.org/index.json"}]},
    ],
)
def test_a_catalog_that_breaks_a_rule_cannot_be_made(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Catalog.model_validate({**CATALOG, **changes})


def test_a_callback_says_what_its_status_allows() -> None:
    assert (
        dump(ZarrReady(dataset_id="nm000103", status="converting"))
        == b'{"dataset_id":"nm000103","status":"converting"}'
    )
    ended = {
        "store_count": 1,
        "commit": COMMIT,
        "converted": ["a.zarr"],
        "removed": [],
        "errors": 0,
        "pending_count": 0,
    }
    ready = ZarrReady.model_validate({"dataset_id": "nm000103", "status": "ready", **ended})
    assert json.loads(dump(ready)) == {"dataset_id": "nm000103", "status": "ready", **ended}
    for wrong in (
        {"status": "converting", "errors": 0},
        {"status": "ready"},
        {"status": "ready", **ended, "error": "x"},
    ):
        with pytest.raises(ValidationError):
            ZarrReady.model_validate({"dataset_id": "nm000103", **wrong})


def test_attributes_of_a_store_are_read_tolerantly_but_not_blindly() -> None:
    attributes = {
        "format": "biosigio-zarr", "format_version": 2, "biosigio_version": "1.2.13", "channel_groups": ["eeg_250hz"],
        "created_utc": "2026-01-01", "dtype": "int16", "nemar": provenance(), "electrode_positions": {"Fp1": [0.0, 1.0, 2.0]},
    }  # fmt: skip
    root = read_attributes(RootAttributes, attributes)
    assert root.nemar == Provenance(**provenance())
    assert root.electrode_positions == {"Fp1": (0.0, 1.0, 2.0)}
    for field, value in (("format_version", 1), ("nemar", {**provenance(), "x": 1}), ("channel_groups", "eeg_250hz")):
        with pytest.raises(Refused, match=field):
            read_attributes(RootAttributes, {**attributes, field: value})
    with pytest.raises(Refused, match="rate"):
        read_attributes(GroupAttributes, {"modality": "EEG"})


def test_a_document_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        index().errors = 3  # type: ignore[misc]  # the assignment is what is refused
