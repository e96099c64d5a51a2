"""Taking over what a target serves: the source is compared as it is asked to be read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from git_dataset import commit_all, git
from small_dataset import write_recording, write_root
from sqlalchemy import Engine

from cli.status import look, status_lines
from contract.catalog import Catalog, CatalogRow
from contract.documents import dump
from contract.errors import Refused
from db import datasets, stores
from flows.adopt import adopt, adopt_all
from flows.request import ReconvertRequest
from infra.settings import Settings

BASE = "http://127.0.0.1:8321/"


@pytest.fixture
def settings(home: Path, database_url: str) -> Settings:
    return Settings(home=home, database_url=database_url)


def serve(target: Path, path: str, commit: str) -> None:
    """Documents of a dataset of one store, as an installation that is gone left them."""
    base = target / "xx000001/zarr"
    base.mkdir(parents=True)
    store = {"path": path, "zarr": path.replace(".edf", ".zarr"), "source_tree": "raw", "derived": False}
    index = {"format": "nemar-zarr-index", "format_version": 3, "dataset_id": "xx000001", "source_commit": commit}
    (base / "index.json").write_text(json.dumps({**index, "stores": [store], "failures": [], "pending": []}))
    row = CatalogRow(
        dataset_id="xx000001", modalities=("eeg",), store_count=1, index_url=f"{BASE}xx000001/zarr/index.json"
    )
    catalog = Catalog(count=1, generated_utc="2026-01-31T00:00:00Z", contract_base=BASE, datasets=(row,))
    (target / "zarr-catalog.json").write_bytes(dump(catalog))


@pytest.mark.parametrize("every", [False, True])
def test_a_repository_is_compared_at_the_commit_that_is_named(settings: Settings, tmp_path: Path, every: bool) -> None:
    sources, target = tmp_path / "sources", tmp_path / "served"
    folder = sources / "xx000001"
    write_root(folder)
    path = write_recording(folder, "01")
    git(folder, "init", "-q", "-b", "main")
    first = commit_all(folder)
    write_recording(folder, "02")
    commit_all(folder)
    serve(target, path, first)
    now = ReconvertRequest(source=str(sources if every else folder), target=str(target), dataset_id="xx000001")
    then = replace(now, commit=first)
    with pytest.raises(Refused, match="is no commit of"):
        adopt(settings, replace(now, source=str(folder), commit="a-branch-that-is-not"))
    [adopted] = adopt_all(settings, then)[0] if every else [adopt(settings, then)]
    assert (adopted.trusted, adopted.to_convert) == (1, 0), "the second recording is not of that commit"


@pytest.mark.parametrize("spelling", ["plain", "address"])
def test_bare_repositories_that_lie_side_by_side_are_found(
    settings: Settings, tmp_path: Path, engine: Engine, spelling: str
) -> None:
    sources, target, folder = tmp_path / "sources", tmp_path / "served", tmp_path / "work"
    write_root(folder)
    path = write_recording(folder, "01")
    git(folder, "init", "-q", "-b", "main")
    serve(target, path, commit_all(folder))
    sources.mkdir()
    git(folder, "clone", "-q", "--bare", ".", str(sources / "xx000001.git"))
    asked = ReconvertRequest(source=str(sources) if spelling == "plain" else sources.as_uri(), target=str(target))
    [adopted], skipped = adopt_all(settings, asked)
    assert (adopted.trusted, adopted.to_convert, skipped) == (1, 0, [])
    assert adopted.source == str(sources / "xx000001.git")
    with engine.connect() as c:
        [status] = look(c, target=str(target))
    assert next(status_lines(status, whole=False)) == "xx000001  taken over, still as it was served  changing"


def test_an_index_of_version_1_is_published_whole(settings: Settings, tmp_path: Path, engine: Engine) -> None:
    folder, target = tmp_path / "xx000001", tmp_path / "served"
    write_root(folder)
    path = write_recording(folder, "01")
    git(folder, "init", "-q", "-b", "main")
    serve(target, path, commit_all(folder))
    index = target / "xx000001/zarr/index.json"
    document = json.loads(index.read_bytes())
    [entry] = document["stores"]
    bare = {"path": path, "zarr": entry["zarr"], "source_key": None}
    index.write_text(json.dumps({**document, "format_version": 1, "stores": [bare]}))
    store = target / "xx000001/zarr" / entry["zarr"]
    for place, said in (
        ("", {"attributes": {"channel_groups": ["eeg_250hz"]}}),
        ("eeg_250hz", {"attributes": {"modality": "EEG", "rate": 250.0, "original_rate": 500.0}}),
        ("eeg_250hz/0", {"shape": [2, 1000], "attributes": {"chunk_samples": 1000, "shard_samples": 75000}}),
    ):
        (store / place).mkdir(parents=True, exist_ok=True)
        (store / place / "zarr.json").write_text(json.dumps(said))
    asked = ReconvertRequest(source=str(folder), target=str(target), dataset_id="xx000001")
    adopted = adopt(settings, asked)
    assert (adopted.format_version, adopted.trusted, adopted.notes) == (1, 1, ())
    with engine.connect() as c:
        dataset = datasets.find(c, dataset_id="xx000001", target=str(target))
        assert dataset is not None
        [(_zarr, taken)] = stores.entries(c, dataset=dataset)
    [group] = json.loads(taken)["groups"]
    assert (group["name"], group["n_samples"], group["duration_s"], group["source_rate_hz"]) == (
        "eeg_250hz",
        1000,
        4.0,
        500.0,
    )
