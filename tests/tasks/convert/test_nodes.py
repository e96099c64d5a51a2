"""What is written in zarr's place is, byte for byte, what zarr writes; whatever else is asked for is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numcodecs.blosc  # type: ignore[import-untyped]  # it has no annotations
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from zarr.codecs import BloscCodec, GzipCodec

from tasks.convert.documents import Documents, indented
from tasks.convert.nodes import AnotherRelease, Zarr

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int16": st.sampled_from([0, 0, 0, 1, -1, 32767, -32768]),
    "int32": st.sampled_from([0, 0, 0, 5, -(2**31)]),
    "float32": st.sampled_from([0.0, 0.0, -0.0, 1.5, float("nan"), float("inf")]),
    "float64": st.sampled_from([0.0, 0.0, -0.0, 1e-300, float("nan"), float("-inf")]),
}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | FINITE | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
ATTRIBUTES = st.dictionaries(TEXT, JSON, max_size=4)


@st.composite
def array(draw: st.DrawFn) -> dict[str, Any]:
    """An array as biosigIO may ask for one: chunks, and shards if any, divide its last axis."""
    dtype = draw(st.sampled_from(sorted(VALUES)))
    before = draw(st.sampled_from([(), (1,), (3,), (2, 2)]))
    length, chunk = draw(st.integers(1, 60)), draw(st.integers(1, 20))
    shards = draw(st.sampled_from([None, 1, 2, 5]))
    data = np.zeros((*before, length), dtype)
    # islands of samples, so that whole chunks and shards stay empty
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, length - 1))
        island = draw(arrays.arrays(dtype, (*before, min(length - start, 4)), elements=VALUES[dtype]))
        data[..., start : start + 4] = island
    return {
        "data": data,
        "chunks": (*before, chunk),
        "shards": None if shards is None else (*before, chunk * shards),
        "compressors": draw(st.sampled_from([None, 1, 5])),
        "attributes": draw(st.lists(ATTRIBUTES, max_size=2)),
    }


def write(module: Any, folder: Path, tree: dict[str, list[dict[str, Any]]], root: dict[str, Any]) -> None:
    """Ask ``module`` for a store as biosigIO does."""
    group = module.create_group(store=module.storage.LocalStore(str(folder)), overwrite=True)
    for name, members in tree.items():
        child = group.create_group(name)
        for number, one in enumerate(members):
            data, more = one["data"], {}
            if one["shards"] is not None:
                more["shards"] = one["shards"]
            if one["compressors"] is not None:
                more["compressors"] = [BloscCodec(cname="zstd", clevel=one["compressors"])]
            own = child.create_array(str(number), shape=data.shape, chunks=one["chunks"], dtype=data.dtype, **more)
            own[:] = data
            for values in one["attributes"]:
                own.attrs.update(values)
        child.attrs["members"] = len(members)
    group.attrs.update(root)


def objects(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@settings(max_examples=40, deadline=None)
@given(
    tree=st.dictionaries(st.sampled_from(["a", "b", "view"]), st.lists(array(), max_size=3), max_size=2),
    root=ATTRIBUTES,
)
def test_the_whole_tree_is_zarrs_own(tree: dict[str, list[dict[str, Any]]], root: dict[str, Any]) -> None:
    with TemporaryDirectory() as folder:
        theirs, ours = Path(folder) / "theirs.zarr", Path(folder) / "ours.zarr"
        threads, numcodecs.blosc.use_threads = numcodecs.blosc.use_threads, False
        try:
            write(zarr, theirs, tree, root)
            instead = Zarr()
            write(instead, ours, tree, root)
        finally:
            numcodecs.blosc.use_threads = threads
        (store,) = instead.stores
        assert not list(ours.rglob("zarr.json")), "a document was written before all were complete"
        store.documents.write(ours)
        assert objects(ours) == objects(theirs)
        read = zarr.open_group(str(ours), mode="r")
        for name, members in tree.items():
            for number, one in enumerate(members):
                np.testing.assert_array_equal(read[name][str(number)][:], one["data"])  # type: ignore[index]  # it is a group


@settings(max_examples=200, deadline=None)
@given(JSON)
def test_a_document_is_indented_as_the_library_does(value: Any) -> None:
    assert indented(value) == json.dumps(value, indent=2, allow_nan=False)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": {"b": -float("inf")}}])
def test_no_document_holds_what_is_no_json(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        indented(value)
    with pytest.raises(TypeError):
        indented({1: "a"})


def root_of(instead: Zarr, folder: Path) -> Any:
    return instead.create_group(store=instead.storage.LocalStore(str(folder)), overwrite=True)


def made(root: Any, **changes: Any) -> Any:
    asked = {"shape": (2, 8), "chunks": (2, 4), "dtype": np.dtype("int16"), **changes}
    return root.create_array("0", **asked)


ASKED: dict[str, Callable[[Any], Any]] = {
    "another name of zarr": lambda _: Zarr().open_group,
    "another name of its storage": lambda _: Zarr().storage.ZipStore,
    "another method of a group": lambda root: root.require_group("a"),
    "another keyword of a group": lambda root: root.create_group("a", attributes={}),
    "a node twice": lambda root: (root.create_group("a"), root.create_group("a")),
    "a name outside": lambda root: root.create_group("../a"),
    "another keyword of an array": lambda root: made(root, fill_value=1),
    "chunks of the first axis": lambda root: made(root, chunks=(1, 4)),
    "shards of the first axis": lambda root: made(root, chunks=(2, 4), shards=(4, 8)),
    "another type": lambda root: made(root, dtype=np.dtype("complex64")),
    "another order of bytes": lambda root: made(root, dtype=np.dtype(">i2")),
    "another compressor": lambda root: made(root, compressors=[GzipCodec()]).__setitem__(
        slice(None), np.ones((2, 8), "i2")
    ),
    "no compressor": lambda root: made(root, compressors=None),
    "a part of an array": lambda root: made(root).__setitem__(slice(0, 1), np.zeros((2, 8), "i2")),
    "samples of another type": lambda root: made(root).__setitem__(slice(None), np.zeros((2, 8), "f8")),
    "samples of another shape": lambda root: made(root).__setitem__(slice(None), np.zeros((1, 8), "i2")),
    "another method of an array": lambda root: made(root).append(np.zeros((2, 8), "i2")),
    "another method of attributes": lambda root: root.attrs.put({}),
}


@pytest.mark.parametrize("what", ASKED)
def test_whatever_else_is_asked_for_is_refused(what: str, tmp_path: Path) -> None:
    with pytest.raises(AnotherRelease):
        ASKED[what](root_of(Zarr(), tmp_path / "x.zarr"))
    assert not (tmp_path / "x.zarr").exists(), "something was written nevertheless"


def test_shards_that_chunks_do_not_divide_are_zarrs_error(tmp_path: Path) -> None:
    errors = []
    for module in (zarr, Zarr()):
        with pytest.raises(ValueError, match="divi") as caught:
            made(root_of(module, tmp_path / "x.zarr"), chunks=(2, 3), shards=(2, 4))  # type: ignore[arg-type]  # zarr's own is one, too
        errors.append(str(caught.value))
        shutil.rmtree(tmp_path / "x.zarr", ignore_errors=True)
    assert errors[0] == errors[1]


def test_the_root_is_written_last(tmp_path: Path) -> None:
    documents = Documents()
    for node in ("", "a", "a/0", "view"):
        documents.put(node, {"attributes": {}})
    documents.edit("a", lambda values: values.update(n=float("nan")))
    with pytest.raises(ValueError, match="not JSON compliant"):
        documents.write(tmp_path / "x.zarr")
    assert sorted(objects(tmp_path / "x.zarr")) == ["a/0/zarr.json", "view/zarr.json"]
