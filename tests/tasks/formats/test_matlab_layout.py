"""Where the fields of an uncompressed MATLAB file stand, and the file without some of them."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import loadmat, savemat

from tasks.formats.matlab_layout import plain_layout

FIELDS = {
    "setname": "some name",
    "data": np.arange(15, dtype=np.float32).reshape(3, 5),
    "chanlocs": np.array([("A",), ("B",)], dtype=[("labels", object)]),
    "times": np.arange(40.0),
    "nothing": np.empty((0, 0)),
    "complex": np.ones((2, 2)) * 1j,
}


def written(path: Path, *, nested: bool) -> Path:
    savemat(path, {"EEG": FIELDS} if nested else FIELDS)
    return path


@cache
def content(*, nested: bool) -> bytes:
    with TemporaryDirectory() as folder:
        return written(Path(folder) / "x.set", nested=nested).read_bytes()


@pytest.mark.parametrize("nested", [True, False])
def test_a_matrix_is_found_and_the_file_is_sound_without_it(tmp_path: Path, nested: bool) -> None:
    path = written(tmp_path / "x.set", nested=nested)
    layout = plain_layout(path, "EEG")
    assert layout is not None
    assert [field.name for field in layout.fields] == list(FIELDS)
    matrix = layout.matrix("data")
    assert matrix is not None
    assert np.array_equal(np.memmap(path, matrix.dtype, "r", matrix.offset, matrix.shape, "F"), FIELDS["data"])
    assert [layout.matrix(name) for name in ("setname", "chanlocs", "nothing", "complex", "other")] == [None] * 5
    rest = loadmat(io.BytesIO(layout.without(path, lambda field: field.name in {"data", "times"})))
    found = {name: rest["EEG"][name][0, 0] for name in rest["EEG"].dtype.names} if nested else rest
    assert (found["setname"][0], found["chanlocs"].size, found["complex"][1, 1]) == ("some name", 2, 1j)
    assert all(name not in found or found[name].size == 0 for name in ("data", "times"))


@given(st.booleans(), st.integers(0, 2000), st.integers(0, 255), st.integers(0, 2000))
def test_a_broken_file_is_no_layout_or_one_within_it(nested: bool, at: int, value: int, kept: int) -> None:
    broken = bytearray(content(nested=nested))
    broken[at % len(broken)] = value
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.set"
        path.write_bytes(broken[: max(len(broken) - kept, 0)] if kept % 2 else broken)
        layout = plain_layout(path, "EEG")
        size = path.stat().st_size
    for field in () if layout is None else layout.fields:
        assert 0 <= field.start < field.end <= size
        matrix = field.matrix
        if matrix is not None:
            length = matrix.shape[0] * matrix.shape[1] * np.dtype(matrix.dtype).itemsize
            assert field.start < matrix.offset < matrix.offset + length <= field.end
