"""Recipes over HTTP: what they name is where the samples are, and what is wrong is told by its field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from loopback import Answer, ask, running
from signal_store import DATASET, GROUP, PATH, ZARR, put_index, put_version

from api.app import create_app
from infra.settings import Settings
from infra.storage.folder import FolderTarget

SETTINGS = Settings()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> FolderTarget:
    root = tmp_path_factory.mktemp("recipes")
    target = FolderTarget(root / "served", port=8321)
    put_index(target)
    put_version(target, root, 2)
    return target


@pytest.fixture(scope="module")
def port(target: FolderTarget) -> Iterator[int]:
    with running(create_app(target, SETTINGS)) as port:
        yield port


def recipe(port: int, dataset: str = DATASET, **query: Any) -> Answer:
    return ask(port, f"/datasets/{quote(dataset, safe='')}/recipe?{urlencode(query, doseq=True)}")


def test_a_recipe_names_the_slices_and_the_objects_of_its_window(port: int) -> None:
    answer = recipe(port, recording=PATH, start=11.5, stop=25, channels="Cz,Fp1")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    told = json.loads(answer.body)
    base = f"http://127.0.0.1:8321/{DATASET}/zarr/"
    assert (told["contract_base"], told["zarr"], told["group"], told["level"]) == (base, ZARR, GROUP, "0")
    assert told["array_path"] == f"{ZARR}/{GROUP}/0"
    assert (told["sample_slice"], told["channel_slice"]) == ({"start": 1150, "end": 2500}, {"start": 0, "end": 3})
    assert [(channel["row"], channel["label"]) for channel in told["channels"]] == [(2, "Cz"), (0, "Fp1")]
    assert told["scale_offset"]["scale"] == [2.0, 0.5]
    assert told["objects"] == [f"{told['store_url']}{GROUP}/0/c/0/{shard}" for shard in (0, 1, 2)]
    assert (told["n_objects"], told["n_chunks"]) == (3, 5)
    assert (told["chunk_samples"], told["shard_samples"], told["dtype"]) == (400, 1200, "int16")
    assert told["bytes_estimate"] == 3 * 2 * 5 * 400 + 3 * (3 * 16 + 4)
    assert told["provenance"]["license"] == "CC0"
    assert (told["provenance"]["lossy"], told["provenance"]["effective_rate_hz"]) == (True, 100.0)
    assert told["how_to"]["python_s3"] is None, "a folder has no bucket"


def test_a_recipe_for_a_view_level_counts_in_columns(port: int) -> None:
    told = json.loads(recipe(port, recording=PATH, start=10, stop=20, level=1).body)
    assert (told["level"], told["array_path"]) == (1, f"{ZARR}/{GROUP}/view/1")
    assert (told["sample_slice"], told["rate_hz"]) == ({"start": 250, "end": 500}, 25.0)
    assert told["objects"] == [f"{told['store_url']}{GROUP}/view/1/c/0/0/{chunk}" for chunk in (1, 2, 3)]


@pytest.mark.parametrize(
    ("query", "status", "code", "word"),
    [
        ({"recording": "sub-02/eeg/sub-02_eeg.edf"}, 404, "store_failed", "It is cut off."),
        ({"recording": "sub-03/eeg/sub-03_eeg.edf"}, 404, "store_pending", "not enough memory"),
        ({"recording": "nothing"}, 404, "not_served", "recording"),
        ({"recording": PATH, "dataset": "xx000099"}, 404, "not_served", "xx000099"),
        ({"recording": PATH, "dataset": "XX000005"}, 400, "refused", "two lower-case letters"),
        ({"recording": PATH, "group": "meg_250hz"}, 400, "refused", GROUP),
        ({"recording": PATH, "level": 3}, 400, "refused", "view levels [1]"),
        ({"recording": PATH, "channels": "Pz"}, 400, "refused", "Fp1, 7, Cz"),
        ({"recording": PATH, "start": 30}, 400, "refused", "29.5 s long"),
        ({"recording": PATH, "start": 5, "stop": 4}, 400, "refused", "stop: "),
        ({"recording": "a\0b"}, 400, "refused", "recording: "),
    ],
)
def test_what_cannot_be_answered_says_which_field_and_what_would_do(
    port: int, query: dict[str, Any], status: int, code: str, word: str
) -> None:
    answer = recipe(port, **query)
    told = json.loads(answer.body)
    assert (answer.status, told["code"]) == (status, code), told
    assert word in told["message"]
    assert "/data/secret" not in answer.body.decode()


def test_a_failed_or_pending_recording_is_answered_with_its_own_code(port: int) -> None:
    failed = json.loads(recipe(port, recording="sub-02/eeg/sub-02_eeg.edf").body)
    pending = json.loads(recipe(port, recording="sub-03/eeg/sub-03_eeg.edf").body)
    assert failed["store"] == {"state": "failed", "code": "corrupt_or_truncated"}
    assert pending["store"] == {"state": "pending", "code": "memory_budget"}


@pytest.mark.parametrize("query", [{}, {"recording": PATH, "start": "soon"}, {"recording": PATH, "level": "high"}])
def test_a_question_that_cannot_be_read_is_the_askers_fault(port: int, query: dict[str, Any]) -> None:
    assert recipe(port, **query).status in (400, 422)
