"""Ways in which a served store can be wrong, each planted into a folder; what the verify sweep must call it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr


@dataclass(frozen=True)
class Planted:
    """A corruption of ``store``; ``other`` is another store of the same shape.

    ``renoted``: the state gets the digests of what then stands there, so that only its meaning can give it away.
    """

    name: str
    plant: Callable[[Path, Path], None]
    check: str
    renoted: bool = True


def edit(node: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the attributes in a ``zarr.json``."""
    document = json.loads((node / "zarr.json").read_text())
    change(document["attributes"])
    (node / "zarr.json").write_text(json.dumps(document))


def group_of(store: Path) -> Path:
    return store / json.loads((store / "zarr.json").read_text())["attributes"]["channel_groups"][0]


def rewrite(store: Path, change: Callable[[np.ndarray], np.ndarray]) -> None:
    """Change level 0, and the levels above it so that they follow."""
    group = zarr.open_group(group_of(store), mode="r+")
    codes = change(group["0"][:])
    group["0"][:] = codes
    least = greatest = codes
    for level in group.attrs["view_levels"]:
        columns = least.shape[1] // 4
        least = least[:, : columns * 4].reshape(len(codes), columns, 4).min(axis=2)
        greatest = greatest[:, : columns * 4].reshape(len(codes), columns, 4).max(axis=2)
        group[f"view/{level}"][:] = np.stack([least, greatest])


def _swapped_channels(store: Path, _other: Path) -> None:
    rewrite(store, lambda codes: codes[[1, 0, *range(2, len(codes))]])


def _wrong_scale(store: Path, _other: Path) -> None:
    group = group_of(store)
    edit(group / "0", lambda values: values.update(scale=[2 * one for one in values["scale"]]))
    edit(group, lambda values: [one.update(scale=2 * one["scale"]) for one in values["channels"]] and None)


def _stale_pyramid(store: Path, _other: Path) -> None:
    view = zarr.open_group(group_of(store), mode="r+")["view/1"]
    view[:, :, 5] = view[:, :, 5] + 1


def _truncated(store: Path, _other: Path) -> None:
    shard = group_of(store) / "0/c/0/0"
    shard.write_bytes(shard.read_bytes()[: shard.stat().st_size // 2])


def _missing(store: Path, _other: Path) -> None:
    (group_of(store) / "view/1/c/0/0/0").unlink()


def _foreign(store: Path, _other: Path) -> None:
    (group_of(store) / "0/c/0/7").write_bytes(b"left over")


def _wrong_unit(store: Path, _other: Path) -> None:
    edit(group_of(store), lambda values: values["channels"][0].update(unit="mV"))


def _wrong_type(store: Path, _other: Path) -> None:
    edit(group_of(store), lambda values: values["channels"][0].update(channel_type="MISC"))


def _renamed_channel(store: Path, _other: Path) -> None:
    edit(group_of(store), lambda values: values["channels"][0].update(label="Nose"))


def _dropped_event(store: Path, _other: Path) -> None:
    group = zarr.open_group(store, mode="r+")["events"]
    for name in ("onset", "duration", "code"):
        kept = group[name][:-1]
        del group[name]
        group.create_array(name, shape=kept.shape, chunks=kept.shape, dtype=kept.dtype)[:] = kept
    group.attrs["n_events"] = len(kept)


def _wrong_rate(store: Path, _other: Path) -> None:
    group = group_of(store)
    edit(group, lambda values: values.update(rate=values["rate"] / 2))
    edit(group / "0", lambda values: values.update(rate=values["rate"] / 2))


def _cut_short(store: Path, _other: Path) -> None:
    group = zarr.open_group(group_of(store), mode="r+")
    length = group["0"].shape[1] - 40
    group["0"].resize((group["0"].shape[0], length))
    group.attrs["n_samples"] = length


def _stale_licence(store: Path, _other: Path) -> None:
    edit(store, lambda values: values["nemar"].update(license="CC-BY-4.0"))


def _stale_mains(store: Path, _other: Path) -> None:
    edit(store, lambda values: values.update(power_line_frequency=61.0))


def _swapped_recordings(store: Path, other: Path) -> None:
    aside = store.with_name("aside")
    store.rename(aside)
    other.rename(store)
    aside.rename(other)


def _swapped_signals(store: Path, other: Path) -> None:
    """As above, and each root says what it said where it stood."""
    _swapped_recordings(store, other)
    for name in ("zarr.json",):
        aside = store / "aside.json"
        shutil.move(store / name, aside)
        shutil.move(other / name, store / name)
        shutil.move(aside, other / name)


PLANTED = (
    Planted("swapped channels", _swapped_channels, "samples_mismatch"),
    Planted("shifted samples", lambda s, _: rewrite(s, lambda codes: np.roll(codes, 1, axis=1)), "samples_mismatch"),
    Planted("wrong scale", _wrong_scale, "samples_mismatch"),
    Planted("stale pyramid", _stale_pyramid, "pyramid_mismatch"),
    Planted("truncated shard", _truncated, "object_differs", renoted=False),
    Planted("truncated shard, noted so", _truncated, "undecodable"),
    Planted("missing object", _missing, "object_missing", renoted=False),
    Planted("missing object, noted so", _missing, "pyramid_mismatch"),
    Planted("foreign object", _foreign, "object_foreign", renoted=False),
    Planted("wrong unit", _wrong_unit, "unit_mismatch"),
    Planted("wrong type", _wrong_type, "type_mismatch"),
    Planted("renamed channel", _renamed_channel, "channel_mismatch"),
    Planted("dropped event", _dropped_event, "events_mismatch"),
    Planted("wrong rate", _wrong_rate, "rate_mismatch"),
    Planted("cut short", _cut_short, "duration_mismatch"),
    Planted("stale metadata", _stale_licence, "metadata_mismatch"),
    Planted("stale metadata of a sidecar", _stale_mains, "metadata_mismatch"),
    Planted("swapped recordings", _swapped_recordings, "recording_mismatch"),
    Planted("swapped recordings under their own roots", _swapped_signals, "samples_mismatch"),
)
