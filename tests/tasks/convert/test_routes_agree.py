"""By either route a recording becomes the same store: the same attributes, values within one step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import zarr
from small_files import brainvision, edf_bytes, fif, mefd

from tasks.convert.engine import write_store
from tasks.convert.pieces import EngineInput
from tasks.formats import load
from tasks.formats.protocol import Route


def noise(n_channels: int, n_samples: int, spread: float) -> np.ndarray:
    """Noise on constants that are 100,000 times as large: single precision would show."""
    rng = np.random.default_rng(0)
    return spread * (rng.normal(size=(n_channels, n_samples)) + 1e4 * np.arange(n_channels)[:, None])


def an_edf(folder: Path, _recordings: Path) -> Path:
    path = folder / "x.edf"
    path.write_bytes(edf_bytes(["A", "B", "B"], per_record=[400, 400, 400], n_records=20))
    return path


def a_bdf(folder: Path, recordings: Path) -> Path:
    path = folder / "x.bdf"
    path.write_bytes((recordings / "bdf/multiple_annotation_chans.bdf").read_bytes())
    return path


def a_vhdr(folder: Path, _recordings: Path) -> Path:
    return brainvision(folder, "x", noise(3, 8000, 0.3) % 3000, 400.0)


def a_fif(folder: Path, _recordings: Path) -> Path:
    return fif(folder / "x_meg.fif", noise(4, 8000, 1e-12), 400.0)


def a_mefd(folder: Path, _recordings: Path) -> Path:
    return mefd(folder / "x.mefd", noise(2, 8000, 20.0), 1600.0)


WRITTEN: dict[str, Callable[[Path, Path], Path]] = {
    "edf": an_edf,
    "bdf": a_bdf,
    "brainvision": a_vhdr,
    "fif": a_fif,
    "mef3": a_mefd,
    "kit": lambda _, recordings: recordings / "kit/MQKIT_125_2sec.con",
    "bti": lambda _, recordings: recordings / "bti/4Dsim",
}


def documents(store: Path) -> dict[str, Any]:
    """Every attribute of a store but its time, scales and offsets, by node and name."""
    found = {}
    for path in sorted(store.rglob("zarr.json")):
        values = json.loads(path.read_bytes())
        own = dict(values.get("attributes", {}))
        for name in ("created_utc", "scale", "offset"):
            own.pop(name, None)
        for channel in own.get("channels", ()):
            del channel["scale"], channel["offset"]
        found[path.parent.relative_to(store).as_posix()] = (values.get("shape"), own)
    return found


@pytest.mark.parametrize("name", WRITTEN)
def test_both_routes_give_the_same_store(name: str, tmp_path: Path, recordings: Path) -> None:
    source = WRITTEN[name](tmp_path, recordings)
    one = load()[name]
    header = one.header(source)
    assert one.route(header) is Route.STREAMED
    (tmp_path / "readable").mkdir()
    stores = {}
    for route in Route:
        scratch = tmp_path / f"scratch-{route.value}"
        scratch.mkdir()
        stores[route] = tmp_path / f"{route.value}.zarr"
        given = EngineInput(
            target=one.read_target(source, header, tmp_path / "readable"),
            source_format=one.source_format,
            route=route,
            header=header,
            modality="ieeg" if name == "mef3" else "eeg",
            channels=pd.DataFrame({"name": ["A", "E2", "MEG0001"], "type": ["EEG"] * 3, "units": ["mV", "nV", "fT"]}),
            events=pd.DataFrame({"onset": [1.5, 0.5], "duration": [0.0, 1.0], "description": ["b", "a"]}),
            scratch=scratch,
        )
        write_store(given, stores[route])
        assert sorted(p.name for p in scratch.iterdir()) == []
    held, streamed = stores[Route.IN_MEMORY], stores[Route.STREAMED]
    assert documents(held) == documents(streamed)
    objects = [{p.relative_to(s).as_posix() for p in s.rglob("*") if p.is_file()} for s in (held, streamed)]
    assert objects[0] == objects[1]
    groups = [zarr.open_group(store, mode="r") for store in (held, streamed)]
    for group in groups[0].attrs["channel_groups"]:
        own, other = (g[group]["0"] for g in groups)
        scale, offset = (np.array(own.attrs[k])[:, None] for k in ("scale", "offset"))
        values = own[:] * scale + offset
        others = other[:] * np.array(other.attrs["scale"])[:, None] + np.array(other.attrs["offset"])[:, None]
        assert (np.abs(values - others) <= 1.01 * scale + np.abs(values) * 2.0**-48).all()
        # a comparison that could not see one step would not see this either
        moved = others + 1.5 * scale
        assert (np.abs(values - moved).max(axis=1) > 1.01 * scale[:, 0]).all()
