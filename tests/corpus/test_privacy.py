"""Nothing that is served says whose a recording is, where it was made or converted, or what it was called before."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus_found import Outcomes
from corpus_privacy import ROWS, WORDS
from privacy_scan import found, places

pytestmark = pytest.mark.timeout(900)  # the first to come waits for the conversion of the corpus


def test_every_word_stands_in_the_recordings(corpus: Outcomes) -> None:
    said = {hit.rpartition(": ")[2] for hit in found(corpus.source, WORDS)}
    assert said == set(WORDS)
    folders = {hit.split("/", 1)[0] for hit in found(corpus.source, WORDS)}
    assert folders == {f"sub-{row.name}" for row in ROWS}


def test_none_of_them_and_no_place_of_this_machine_is_served(corpus: Outcomes) -> None:
    target = corpus.dataset.target
    words = [*WORDS, *places(corpus.source, target, target.parent), "elsewhere.edf", "s2_run1", "run1.eeg"]
    assert len(list(target.rglob("zarr.json"))) > 300
    assert found(target, words) == []


def test_the_scan_finds_what_is_planted(corpus: Outcomes, tmp_path: Path) -> None:
    entry = next(entry for entry in corpus.dataset.index["stores"] if entry["path"].startswith("sub-whoedf/"))
    shutil.copytree(corpus.dataset.base / entry["zarr"], tmp_path / "a.zarr")
    assert found(tmp_path, WORDS) == []
    metadata = tmp_path / "a.zarr" / "zarr.json"
    root = json.loads(metadata.read_text())
    root["attributes"]["recording_metadata"]["x"] = "QUILLFEATHER"
    metadata.write_text(json.dumps(root))
    table = pa.table({"x": pa.array(["ward9ward"]).dictionary_encode()}).replace_schema_metadata({"m": "secretclinic"})
    pq.write_table(table, tmp_path / "events.parquet", compression="zstd")
    (tmp_path / "index.json").write_text(json.dumps({"source": str(tmp_path / "ds")}))
    assert set(found(tmp_path, [*WORDS, *places(tmp_path)])) >= {
        "a.zarr/zarr.json: Quillfeather",
        "events.parquet: ward9ward",
        "events.parquet: secretclinic",
        f"index.json: {tmp_path}",
    }
