"""What a recipe says about chunks, samples and channels, against counting them one by one."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from product import ROOT
from pydantic import BaseModel

from contract.array_layout import ArrayLayout
from contract.errors import Refused
from contract.reading import ReadChannel
from contract.recipe import ChannelRow, Envelope, HowTo, Recipe, ScaleOffset, Slice
from contract.recipe_making import version_token
from contract.recipe_text import ProgramFacts, python_s3, python_zarr, zarrita
from contract.window import WindowAsked, columns_of, rows_of, samples_of


def metadata(shape: list[int], chunk: list[int], shard: list[int] | None) -> dict[str, Any]:
    codecs: list[Any] = [{"name": "bytes"}, {"name": "blosc"}]
    if shard is not None:
        codecs = [{"name": "sharding_indexed", "configuration": {"chunk_shape": chunk, "codecs": codecs}}]
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shard or chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": codecs,
    }


@given(data=st.data())
def test_what_is_touched_is_what_holds_an_asked_sample(data: st.DataObject) -> None:
    shape = [data.draw(st.integers(1, 6)), data.draw(st.integers(1, 60))]
    chunk = [data.draw(st.integers(1, 6)), data.draw(st.integers(1, 12))]
    shard = [size * data.draw(st.integers(1, 3)) for size in chunk] if data.draw(st.booleans()) else None
    part = []
    for size in shape:
        start = data.draw(st.integers(0, size - 1))
        part.append((start, data.draw(st.integers(start + 1, size))))
    touched = ArrayLayout.read(metadata(shape, chunk, shard)).touched(part)

    asked = list(product(*(range(start, end) for start, end in part)))
    outer = shard or chunk
    objects = {(row // outer[0], column // outer[1]) for row, column in asked}
    chunks = {(row // chunk[0], column // chunk[1]) for row, column in asked}
    assert touched.keys == tuple(f"c/{row}/{column}" for row, column in sorted(objects))
    assert touched.n_chunks == len(chunks)
    held = [place for place in product(*map(range, shape)) if (place[0] // chunk[0], place[1] // chunk[1]) in chunks]
    index = len(objects) * (16 * (outer[0] // chunk[0]) * (outer[1] // chunk[1]) + 4) if shard else 0
    assert touched.bytes_at_most == 2 * len(held) + index


@pytest.mark.parametrize(
    "change",
    [
        {"zarr_format": 2},
        {"node_type": "group"},
        {"chunk_grid": {"name": "rectilinear"}},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0, 4]}}},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}}},
        {"codecs": []},
        {"shape": None},
    ],
)
def test_metadata_of_something_else_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        ArrayLayout.read(metadata([2, 9], [2, 4], None) | change)


def asked(**fields: Any) -> WindowAsked:
    return WindowAsked(recording="sub-01_eeg.edf", **fields)


@given(start=st.integers(0, 500), length=st.integers(1, 500), rate_hz=st.sampled_from([1.0, 250.0, 333.33, 512.0]))
def test_whole_samples_are_found_again_from_their_seconds(start: int, length: int, rate_hz: float) -> None:
    window = asked(start_s=start / rate_hz, stop_s=(start + length) / rate_hz)
    assert samples_of(window, rate_hz=rate_hz, n_samples=600) == (start, min(600, start + length)) or start >= 600


@given(start=st.integers(0, 99), length=st.integers(1, 100), factor=st.sampled_from([2, 4, 16]))
def test_the_columns_of_a_view_level_show_every_asked_sample(start: int, length: int, factor: int) -> None:
    n_samples = 100
    end = min(n_samples, start + length)
    first, last = columns_of((start, end), downsample_factor=factor, n_columns=-(-n_samples // factor))
    assert {sample // factor for sample in range(start, end)} == set(range(first, last))


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"start_s": -1.0}, "start"),
        ({"start_s": float("nan")}, "start"),
        ({"start_s": 6.0}, "start"),
        ({"start_s": 1e300}, "start"),
        ({"stop_s": float("inf")}, "stop"),
        ({"start_s": 2.0, "stop_s": 2.0}, "stop"),
        ({"start_s": 2.0, "stop_s": 2.0001}, "stop"),
        ({"level": -1}, "level"),
        ({"group": ""}, "group"),
        ({"channels": ("x",) * 5000}, "channels"),
    ],
)
def test_a_window_outside_the_recording_is_refused_by_its_field(fields: dict[str, Any], field: str) -> None:
    if fields.get("group") == "":
        fields = {"group": "\0"}
    with pytest.raises(Refused) as raised:
        samples_of(asked(**fields), rate_hz=100.0, n_samples=600)
    assert raised.value.sentence.startswith(f"{field}: ")


def channels(*labels: str) -> list[ReadChannel]:
    return [ReadChannel(label=label, row_index=row, scale=1.0, offset=0.0) for row, label in enumerate(labels)]


def test_channels_are_named_by_label_first_and_by_row_where_there_is_no_such_label() -> None:
    there = channels("Fp1", "0", "Cz", "O1")
    assert rows_of([], there) == [0, 1, 2, 3]
    assert rows_of(["Cz", "Fp1", "Cz"], there) == [2, 0]
    assert rows_of(["0"], there) == [1], "a channel may be called 0"
    assert rows_of(["3", "1:3"], there) == [3, 1, 2]
    for wrong in ("fp1", "4", "2:5", "3:3", "-1", "1:", "٣", "9" * 30):
        with pytest.raises(Refused, match="channels: "):
            rows_of([wrong], there)


def test_nothing_but_numbers_and_literals_gets_into_a_program() -> None:
    hostile = 'x"; import os; os.remove("y")\n\\\u2028'
    facts = ProgramFacts(
        store_url=hostile,
        s3_store=hostile,
        s3_region=hostile,
        s3_anonymous=True,
        version_token=hostile,
        inside=hostile,
        rows=(1, 3),
        enclosing=(1, 4),
        columns=(0, 9),
        is_view=False,
        scale=(1.0, 2.0),
        offset=(0.0, 0.0),
    )
    literal = json.dumps(hostile)
    for program in (python_zarr(facts), python_s3(facts), zarrita(facts)):
        assert "import os" not in program.replace(literal, "").replace(json.dumps(f"?v={hostile}"), "")
    for program in (python_zarr(facts), python_s3(facts)):
        compile(program, "recipe", "exec")


def test_a_version_token_holds_only_what_a_query_can() -> None:
    assert version_token("2026-11-30T08:00:00.5Z") == "2026-11-30T080000.5Z"
    assert version_token("&a=1#" + "x" * 100) == "a1" + "x" * 62


def test_every_field_of_a_recipe_is_explained() -> None:
    models: tuple[type[BaseModel], ...] = (Recipe, Envelope, HowTo, ScaleOffset, Slice, ChannelRow)
    page = (ROOT / "docs" / "read" / "recipes.md").read_text(encoding="utf-8")
    for model in models:
        for name, field in model.model_fields.items():
            assert f"| `{name}` | {field.description} |" in page, f"docs/read/recipes.md: {name}"
