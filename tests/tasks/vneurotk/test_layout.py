from __future__ import annotations

import math

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.errors import Refused
from tasks.vneurotk.layout import CHUNK_TARGET_BYTES, MOST_NAMES, Compression, chunk_shape, require_writable_channels


def test_a_long_recording_is_cut_along_time() -> None:
    assert chunk_shape((1_000_000, 64), 4) == (3907, 64)
    assert chunk_shape((100, 8), 4) == (100, 8)
    assert chunk_shape((0, 8), 4) == (1, 8)


@given(st.lists(st.integers(1, 10**7), min_size=2, max_size=3), st.sampled_from([1, 2, 4, 8]))
def test_a_chunk_fits_and_none_that_is_longer_would(shape: list[int], itemsize: int) -> None:
    chunk = chunk_shape(tuple(shape), itemsize)
    assert math.prod(chunk) * itemsize <= CHUNK_TARGET_BYTES
    assert all(1 <= part <= whole for part, whole in zip(chunk, shape, strict=True))


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("gzip", ("gzip", 4, True)),
        ("gzip-9", ("gzip", 9, True)),
        ("GZIP-0", ("gzip", 0, True)),
        ("lzf", ("lzf", None, True)),
        ("none", (None, None, False)),
    ],
)
def test_every_compression_is_one_that_hdf5_has(text: str, filters: tuple[str | None, int | None, bool]) -> None:
    with h5py.File("memory.h5", "w", driver="core", backing_store=False) as file:
        array = file.create_dataset("neuro", data=np.zeros((8, 2)), chunks=(4, 2), **Compression.parse(text).options())
        assert (array.compression, array.compression_opts, array.shuffle) == filters


@pytest.mark.parametrize("text", ["", "zip", "gzip-", "gzip-10", "gzip--1", "lzf-4", "none-1", "gzip-²"])
def test_another_compression_is_refused_with_those_there_are(text: str) -> None:
    with pytest.raises(Refused, match="gzip, gzip-0 to gzip-9, lzf or none"):
        Compression.parse(text)


def test_more_channels_than_one_attribute_can_name_are_refused_early() -> None:
    require_writable_channels(MOST_NAMES)
    with pytest.raises(Refused, match="4096 channels cannot be named"):
        require_writable_channels(4096)
    with h5py.File("memory.h5", "w", driver="core", backing_store=False) as file:
        file.attrs["fit"] = ["a"] * MOST_NAMES
        with pytest.raises(OSError, match="too large"):
            file.attrs["do not"] = ["a"] * 4096
