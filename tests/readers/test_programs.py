"""Standard readers, and the programs that recipes give, read what is served, value for value."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
import zarr
from demo_server import BROKEN, GROUP, ODDBALL, REST, Demo
from open_store import served
from s3_server import S3Place
from zarr.storage import FsspecStore

from contract.recipe_text import ProgramFacts, python_s3

WINDOWS = [
    pytest.param({"start": 296, "stop": 304, "channels": "O1,Fp1"}, id="over the edge of a shard"),
    pytest.param({"start": 1.002, "stop": 3, "channels": "1:3"}, id="rows"),
    pytest.param({"stop": 0.5}, id="every channel"),
    pytest.param({"start": 100, "stop": 200, "level": 2, "channels": "STIM,Cz"}, id="a view level"),
]


def recipe(demo: Demo, **query: Any) -> dict[str, Any]:
    return demo.get(f"/datasets/xx000001/recipe?{urlencode({'recording': REST, **query})}")


def expected(demo: Demo, told: dict[str, Any]) -> np.ndarray:
    """The window of a recipe, read from the folder without any of it but the level, the rows and the slice."""
    rows = [channel["row"] for channel in told["channels"]]
    start, end = told["sample_slice"].values()
    store = demo.served.store(REST)
    if told["level"] == "0":
        return served(store, GROUP).physical[rows, start:end]
    level0 = zarr.open_group(store, mode="r")[f"{GROUP}/0"]
    scale, offset = (np.asarray(level0.attrs[name], dtype=float)[rows, None] for name in ("scale", "offset"))
    return zarr.open_group(store, mode="r")[f"{GROUP}/view/{told['level']}"][:, rows, start:end] * scale + offset


def run_python(program: str, **environment: str) -> np.ndarray:
    """What a pasted program leaves in ``physical``."""
    told = f"{program}\nimport json\nprint(json.dumps(physical.tolist()))\n"
    command = [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", told]
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment}
    )
    assert ran.returncode == 0, ran.stderr
    return np.array(json.loads(ran.stdout))


def test_zarr_python_reads_every_store_over_http_as_it_stands(demo: Demo) -> None:
    for recording in (REST, ODDBALL):
        url = f"{demo.base}{demo.served.store(recording).relative_to(demo.served.base)}"
        there = zarr.open_group(FsspecStore.from_url(url), mode="r", zarr_format=3)
        here = zarr.open_group(demo.served.store(recording), mode="r")
        assert dict(there.attrs) == dict(here.attrs)
        for path in [f"{GROUP}/0", *(f"{GROUP}/view/{level}" for level in here[GROUP].attrs["view_levels"])]:
            assert np.array_equal(there[path][:], here[path][:]), path


def test_zarrita_reads_every_array_over_http_as_it_stands(demo: Demo, node: Callable[[str], str]) -> None:
    store = demo.served.store(REST)
    levels = zarr.open_group(store, mode="r")[GROUP].attrs["view_levels"]
    paths = [f"{GROUP}/0", *(f"{GROUP}/view/{level}" for level in levels)]
    url = f"{demo.base}{store.relative_to(demo.served.base)}"
    told = json.loads(
        node(f"""
        import * as zarr from "zarrita";
        const root = zarr.root(new zarr.FetchStore({json.dumps(url)}));
        const found = {{}};
        for (const path of {json.dumps(paths)}) {{
          const {{ data, shape }} = await zarr.get(await zarr.open.v3(root.resolve(path), {{ kind: "array" }}));
          found[path] = {{ data: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64"), shape }};
        }}
        console.log(JSON.stringify(found));
        """)
    )
    import base64

    for path in paths:
        values = np.frombuffer(base64.b64decode(told[path]["data"]), dtype="<i2").reshape(told[path]["shape"])
        assert np.array_equal(values, zarr.open_array(store, path=path, mode="r")[:]), path


@pytest.mark.parametrize("query", WINDOWS)
def test_the_programs_of_a_recipe_give_its_window(
    demo: Demo, node: Callable[[str], str], query: dict[str, Any]
) -> None:
    told = recipe(demo, **query)
    window = expected(demo, told)
    assert np.array_equal(run_python(told["how_to"]["python_zarr"]), window)
    got = node(
        told["how_to"]["zarrita"]
        + "console.log(JSON.stringify(physical, (_, v) => ArrayBuffer.isView(v) ? [...v] : v));"
    )
    assert np.array_equal(np.array(json.loads(got)), window)


def test_a_recipe_names_exactly_the_objects_that_its_window_needs(demo: Demo) -> None:
    told = recipe(demo, start=299, stop=301)
    assert [url.rsplit("/", 1)[1] for url in told["objects"]] == ["0", "1"]
    assert all(url.startswith(told["store_url"]) for url in told["objects"])
    assert (told["n_objects"], told["n_chunks"]) == (2, 2)
    sizes = [(demo.served.base / url.removeprefix(demo.base)).stat().st_size for url in told["objects"]]
    assert 0 < told["bytes_estimate"] < sum(sizes)


def test_the_program_for_a_bucket_reads_the_same_from_one(demo: Demo, s3: S3Place) -> None:
    store = demo.served.store(ODDBALL)
    for path in store.rglob("*"):
        if path.is_file():
            s3.put(f"kept/x.zarr/{path.relative_to(store).as_posix()}", path.read_bytes())
    signal = served(store, GROUP)
    level0 = zarr.open_group(store, mode="r")[f"{GROUP}/0"]
    facts = ProgramFacts(
        store_url="",
        s3_store=f"{s3.name}/kept/x.zarr",
        s3_region="us-east-2",
        s3_anonymous=False,
        version_token="",
        inside=f"{GROUP}/0",
        rows=(2, 0),
        enclosing=(0, 3),
        columns=(500, 1500),
        is_view=False,
        scale=tuple(level0.attrs["scale"][row] for row in (2, 0)),
        offset=tuple(level0.attrs["offset"][row] for row in (2, 0)),
    )
    got = run_python(python_s3(facts), **s3.environment())
    assert np.array_equal(got, signal.physical[[2, 0], 500:1500])


def test_a_recording_that_failed_is_answered_with_its_code(demo: Demo) -> None:
    import urllib.error

    with pytest.raises(urllib.error.HTTPError) as raised:
        demo.get(f"/datasets/xx000001/recipe?recording={BROKEN}")
    told = json.loads(raised.value.read())
    assert (raised.value.code, told["code"], told["store"]["code"]) == (404, "store_failed", "corrupt_or_truncated")


def test_the_demo_is_what_these_tests_take_it_for(demo: Demo) -> None:
    lists = demo.served.lists()
    assert lists == {REST: "served", ODDBALL: "served", BROKEN: "corrupt_or_truncated"}
    assert isinstance(demo.served.target, Path)
