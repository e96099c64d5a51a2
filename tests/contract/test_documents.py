from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from contract.callback import ZarrReady
from contract.catalog import Catalog
from contract.codes import PendingReason
from contract.documents import compact, dump, parse, read_attributes, write_index
from contract.errors import Refused
from contract.index import (
    FailureEntry,
    GroupEntry,
    Index,
    IndexHead,
    LocalIndex,
    LocalIndexHead,
    PendingEntry,
    StoreEntry,
)
from contract.index_check import check_index
from contract.layout import store_path
from contract.manifest import Manifest, ManifestFile, ManifestStore
from contract.store import GroupAttributes, Provenance, RootAttributes

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


NAMES = st.lists(
    st.text("abcé漢-_ .", min_size=1, max_size=6).filter(lambda t: t not in (".", "..")), min_size=1, max_size=3
).map(lambda parts: "/".join(parts) + ".edf")
NUMBERS = st.floats(0.001, 1e9, allow_nan=False)
GROUPS = st.builds(
    GroupEntry,
    name=st.just("eeg_250hz"),
    modality=st.none() | st.just("EEG"),
    rate=st.none() | NUMBERS,
    n_samples=st.none() | st.integers(0, 10**9),
    duration_s=st.none() | NUMBERS | st.just(-0.0),
    source_rate_hz=st.none() | NUMBERS,
    n_view_levels=st.none() | st.integers(0, 12),
)


def stores_of(paths: list[str]) -> st.SearchStrategy[list[StoreEntry]]:
    def store(path: str) -> st.SearchStrategy[StoreEntry]:
        return st.builds(
            StoreEntry,
            path=st.just(path),
            zarr=st.just(store_path(path)),
            derived=st.just(False),
            groups=st.none() | st.lists(GROUPS, max_size=2),
            power_line_frequency=st.none() | st.sampled_from([50.0, 60]),
            trial_types=st.none() | st.dictionaries(st.text(max_size=4), st.integers(0, 9), max_size=3),
            split_members=st.none() | st.just([path]),
        )

    return st.tuples(*map(store, paths)).map(lambda entries: sorted(entries, key=lambda entry: entry.zarr))


@st.composite
def indexes(draw: st.DrawFn) -> Index:
    paths = draw(st.lists(NAMES, unique_by=store_path, max_size=6))
    first, second = sorted((draw(st.integers(0, len(paths))), draw(st.integers(0, len(paths)))))
    stores = draw(stores_of(paths[:first]))
    failures = [
        FailureEntry(
            path=path, code="empty_recording", reason="No channels.", detail=draw(st.none() | st.text(max_size=9))
        )
        for path in sorted(paths[first:second])
    ]
    pending = [
        PendingEntry(path=path, zarr=store_path(path), reason=draw(st.sampled_from(PendingReason)), attempts=1)
        for path in sorted(paths[second:])
    ]
    events = draw(st.booleans())
    extra = {"events_parquet": f"{ADDRESSES['data_base']}events.parquet", "events_row_count": 7} if events else {}
    counted = facts(len(stores), len(failures), len(pending), doi=draw(st.none() | st.text(max_size=5)), **extra)
    return Index.model_validate({**counted, "stores": stores, "failures": failures, "pending": pending})


@given(document=indexes())
def test_an_index_survives_being_written_and_read(document: Index) -> None:
    data = dump(document)
    again = parse(Index, data)
    assert again == document
    assert dump(again) == data
    data.decode("ascii")


@given(document=indexes())
def test_an_index_written_from_its_entries_has_the_same_bytes(document: Index) -> None:
    shared = {name: getattr(document, name) for name in IndexHead.model_fields}
    written = write_index(
        IndexHead(**shared),
        (dump(entry) for entry in document.stores),
        (dump(entry) for entry in document.failures),
        (dump(entry) for entry in document.pending),
    )
    assert written == dump(document)


@given(document=indexes(), data=st.data())
def test_the_bytes_do_not_depend_on_how_a_document_was_built(document: Index, data: st.DataObject) -> None:
    fields = list(json.loads(dump(document)).items())
    shuffled = dict(data.draw(st.permutations(fields)))
    assert dump(Index.model_validate(shuffled)) == dump(document)


def test_equal_documents_have_equal_bytes_whatever_the_order_or_sign_of_what_they_were_given() -> None:
    here = StoreEntry(
        path="a.edf",
        zarr="a.zarr",
        derived=False,
        trial_types={"b": 1, "a": 2},
        groups=[GroupEntry(name="g", duration_s=-0.0)],
    )
    there = StoreEntry(
        path="a.edf",
        zarr="a.zarr",
        derived=False,
        trial_types={"a": 2, "b": 1},
        groups=(GroupEntry(name="g", duration_s=0),),
    )
    assert here == there
    assert dump(here) == dump(there)


SPOILT = (
    lambda d: d["stores"].reverse(),
    lambda d: d["stores"].append(d["stores"][-1]),
    lambda d: d.update(store_count=d["store_count"] + 1),
    lambda d: d.update(store_count=d["store_count"] + 1, discovered_count=d["discovered_count"] + 1),
    lambda d: d["stores"][0].update(derived="no"),
    lambda d: d["stores"][0].update(path=d["pending"][0]["path"]),
    lambda d: d["stores"][0].update(surplus=1),
    lambda d: d["failures"][0].update(code="no_such_code"),
    lambda d: d["pending"][0].pop("reason"),
    lambda d: d.update(surplus=1),
    lambda d: d.pop("failures"),
    lambda d: d.update(events_row_count=1),
    lambda d: d.update(contract_base=LOCAL["contract_base"]),
    lambda d: d.update(citation=',"stores":['),
)


@pytest.mark.parametrize("spoil", SPOILT)
@given(document=indexes())
def test_an_index_checked_by_its_entries_is_checked_as_a_whole_one_is(document: Index, spoil: Any) -> None:
    """The verdicts agree on sound documents and on spoilt ones."""
    check_index(dump(document), local=False)
    fields = json.loads(dump(document))
    try:
        spoil(fields)
    except (IndexError, KeyError):
        return
    data = compact(fields)
    for local, model in ((False, Index), (True, LocalIndex)):
        try:
            parse(model, data)
        except Refused:
            with pytest.raises(Refused):
                check_index(data, local=local)
        else:
            check_index(data, local=local)


def test_an_index_that_was_cut_is_refused_wherever() -> None:
    data = dump(index())
    for end in range(0, len(data), 7):
        with pytest.raises(Refused):
            check_index(data[:end], local=False)


def test_entries_of_another_number_than_the_head_says_are_not_written() -> None:
    head = IndexHead.model_validate(facts(1, 0, 0))
    with pytest.raises(ValueError, match="stores"):
        write_index(head, [], [], [])
    with pytest.raises(ValueError, match="pending"):
        write_index(head, [b"{}"], [], [b"{}"])


def test_the_examples_of_the_contract_are_valid_and_keep_their_bytes() -> None:
    for model, example in ((StoreEntry, STORE), (FailureEntry, FAILURE), (PendingEntry, PENDING), (Catalog, CATALOG)):
        data = compact(example)
        assert dump(parse(model, data)) == data
    assert dump(Provenance(**provenance())) == compact(provenance())


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
