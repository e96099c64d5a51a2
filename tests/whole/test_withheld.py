"""A rebuild whose store is withheld: what was served before is left as it is until no index names it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from command import ROOT, Zarrmill
from fan_out_bench import FORMAT, SUPPORT
from fault_proxy import Fault
from s3_server import S3Place
from small_dataset import write_recording, write_root

BASE = "kept/xx000043/zarr/"
INDEX = f"{BASE}index.json"


def write_claiming(folder: Path, subject: str, *steps: dict[str, object]) -> str:
    """A recording of three channels whose header is read as the steps say; its path in the dataset."""
    edf = Path(write_recording(folder, subject))
    path = edf.with_suffix(".flt")
    (folder / edf).rename(folder / path)
    (folder / path.with_suffix(".fault")).write_text(json.dumps(steps))
    return str(path)


def objects(s3: S3Place, prefix: str) -> dict[str, bytes]:
    """Every object below the prefix, read past the proxy and past the product."""
    return {key: s3.get(key) for key in s3.keys(prefix)}


def test_a_rebuild_that_the_gate_withholds_leaves_the_served_objects_until_no_index_names_them(
    zarrmill: Zarrmill, s3: S3Place, tmp_path: Path
) -> None:
    settings = {**zarrmill.settings, **s3.environment(), "PYTHONPATH": f"{ROOT}:{SUPPORT}:{FORMAT}"}
    bucketed = replace(zarrmill, settings=settings)
    dataset, target = tmp_path / "xx000043", f"s3://{s3.name}/kept"
    write_root(dataset)
    path, other = write_claiming(dataset, "01"), write_claiming(dataset, "02")
    first = bucketed.run("convert", dataset, "--to", target, "--json").summary
    assert (first["stores"], first["failures"]) == (2, 0), s3.get(INDEX)
    store, kept = (f"{BASE}{one.removesuffix('.flt')}.zarr/" for one in (path, other))
    before, beside = objects(s3, store), objects(s3, kept)
    assert any("/c/" in key for key in before)

    # from now on the header declares a fourth channel, which no store of the file can have
    (dataset / path).with_suffix(".fault").write_text(json.dumps([{"do": "claim", "channels": 4}]))
    standing: list[dict[str, bytes]] = []
    s3.proxy.forget()
    s3.proxy.faults = [
        Fault(method="PUT", pattern=r"zarr/index\.json", before=lambda: standing.append(objects(s3, store)))
    ]
    done = bucketed.run("convert", dataset, "--to", target, "--json", code=None).summary
    assert (done["converted"], done["stores"], done["failures"]) == (0, 1, 1)
    assert standing == [before], "when the index that names it no more is put, every object is what it was"
    earlier = s3.proxy.asked[: s3.proxy.asked.index(("PUT", INDEX))]
    assert not [key for word, key in earlier if word in {"PUT", "COPY", "DELETE"} and key.startswith(store)]

    index = json.loads(s3.get(INDEX))
    assert [entry["path"] for entry in index["stores"]] == [other]
    assert [(entry["path"], entry["code"]) for entry in index["failures"]] == [(path, "channel_count_mismatch")]
    assert (objects(s3, store), objects(s3, kept)) == ({}, beside)
    said = bucketed.run("why", "xx000043", path, "--to", target).stdout
    assert "channel_count_mismatch" in said
    assert "the store has 3 channels, the file's header 4" in said
