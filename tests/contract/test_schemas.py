from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
import pytest

from contract.schemas import DOCUMENTS, json_schema, schema_text

INDEX: dict[str, Any] = {
    "format": "nemar-zarr-index",
    "format_version": 3,
    "dataset_id": "nm000103",
    "contract_base": "https://zarr.nemar.org/nm000103/zarr/",
    "data_base": "https://nemar.s3.us-east-2.amazonaws.com/nm000103/zarr/",
    "data_base_kind": "s3-public",
    "s3_uri": "s3://nemar/nm000103/zarr/",
    "s3_region": "us-east-2",
    "s3_anonymous": True,
    "source_commit": "d14ae5eb3881e368ee328bc1312d3fa51f7e70a9",
    "engine_version": "3",
    "updated_utc": "2026-08-30T04:12:09Z",
    "layout": {
        "level0": "<zarr>/<group>/0",
        "view": "<zarr>/<group>/view/<L>",
        "view_levels": "1..n_view_levels from the group attrs",
        "scale_offset": "level-0 array attrs scale[] and offset[]; physical = digital * scale + offset",
    },
    "discovered_count": 1,
    "store_count": 1,
    "n_recordings": 1,
    "errors": 0,
    "failure_count": 0,
    "pending_count": 0,
    "stores": [{"path": "a.edf", "zarr": "a.zarr", "source_tree": "raw", "derived": False}],
    "failures": [],
    "pending": [],
}


def accepts(name: str, document: dict[str, Any]) -> bool:
    return jsonschema.Draft202012Validator(json_schema(name)).is_valid(document)


@pytest.mark.parametrize("name", list(DOCUMENTS))
def test_every_object_is_closed_and_every_field_explained(name: str) -> None:
    schema = json_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    objects = [schema, *(part for part in schema.get("$defs", {}).values() if "properties" in part)]
    for part in objects:
        assert part["additionalProperties"] is False
        assert part["description"]
        assert all(prop.get("description") for prop in part["properties"].values())


def test_the_least_index_is_accepted_and_each_required_field_is_required() -> None:
    assert accepts("zarr-index-v3", INDEX)
    for field in INDEX:
        assert not accepts("zarr-index-v3", {name: value for name, value in INDEX.items() if name != field}), field
    for field in INDEX["stores"][0]:
        without = copy.deepcopy(INDEX)
        del without["stores"][0][field]
        assert not accepts("zarr-index-v3", without), field


@pytest.mark.parametrize(
    "changes",
    [
        {"unheard_of": 1},
        {"doi": 3},
        {"events_parquet": "https://x/events.parquet"},
        {"events_row_count": 3},
        {"events_parquet": None, "events_row_count": None},
        {"errors": True},
        {"errors": 0.5},
        {"source_commit": ""},
        {"data_base_kind": "local-http"},
        {"contract_base": "http://127.0.0.1:8321/nm000103/zarr/"},
        {"stores": [{**INDEX["stores"][0], "derived": True}]},
        {"stores": [{**INDEX["stores"][0], "source_key": None}]},
        {"stores": [{**INDEX["stores"][0], "n_events": None}]},
        {"pending": [{"path": "b.edf", "zarr": "b.zarr", "reason": "tired", "attempts": 0}]},
    ],
)
def test_the_published_schema_refuses_what_the_model_refuses(changes: dict[str, Any]) -> None:
    assert not accepts("zarr-index-v3", {**INDEX, **changes})


def test_the_published_schema_accepts_what_the_contract_lets_be_null_or_pairs() -> None:
    nulls = dict.fromkeys(("biosigio_version", "doi", "license", "citation", "hed_version"))
    events = {"events_parquet": "https://x/events.parquet", "events_row_count": 3}
    assert accepts("zarr-index-v3", {**INDEX, **nulls, **events})


def test_the_local_schema_widens_the_addresses_only() -> None:
    published, local = json_schema("zarr-index-v3"), json_schema("zarr-index-v3-local")
    changed = {name for name in local["properties"] if local["properties"][name] != published["properties"][name]}
    assert changed == {"contract_base", "data_base", "data_base_kind", "events_parquet"}
    assert local["properties"].keys() == published["properties"].keys()
    assert local["$defs"] == published["$defs"]
    addresses = {
        "contract_base": "http://127.0.0.1:8321/x/",
        "data_base": "http://127.0.0.1:8321/x/",
        "s3_anonymous": False,
    }
    assert accepts(
        "zarr-index-v3-local", {**INDEX, **addresses, "data_base_kind": "local-http", "s3_uri": "s3://local/x/"}
    )
    assert json.loads(schema_text("zarr-index-v3"))["$id"].endswith("/schemas/zarr-index-v3.json")
