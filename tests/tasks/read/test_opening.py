"""The opening of a store: its metadata and events in one piece and of one version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import zarr
from signal_store import DATASET, GROUP, ZARR, put_version

from contract.errors import Refused, StorageUnavailable
from contract.layout import store_key
from infra.storage.folder import FolderTarget
from infra.storage.opened import Opened
from tasks.read.opening import MOST_EVENTS, read_opening
from tasks.read.place import Place, target_place, version_of


@pytest.fixture
def target(tmp_path: Path) -> FolderTarget:
    made = FolderTarget(tmp_path / "served", port=8321)
    put_version(made, tmp_path, 1)
    return made


def events_of(store: Path, onsets: list[float]) -> None:
    group = zarr.open_group(store, mode="r+").create_group("events")
    group.attrs.update(
        {"label_map": {"0": "go", "1": "<b>"}, "value_descriptions": {"0": "begin"}, "n_events": len(onsets)}
    )
    for name, kind in (("onset", "f8"), ("duration", "f8"), ("code", "i4")):
        values = onsets if name == "onset" else [float(at % 2) for at in range(len(onsets))]
        array = group.create_array(name, shape=(len(onsets),), dtype=kind)
        array[:] = values


def test_it_has_the_documents_as_they_stand_and_the_version_of_the_root(target: FolderTarget) -> None:
    place, store = target_place(target), target.root / store_key(DATASET, ZARR)
    opening = read_opening(place, DATASET, ZARR)
    assert opening.version == version_of(place, f"{store_key(DATASET, ZARR)}/zarr.json")
    assert opening.root == json.loads((store / "zarr.json").read_bytes())["attributes"]
    (group,) = opening.groups
    assert group.name == GROUP
    assert list(group.documents) == [f"{GROUP}/{path}zarr.json" for path in ("", "0/", "view/1/")]
    assert all(document == json.loads((store / path).read_bytes()) for path, document in group.documents.items())
    assert opening.events is None


def test_events_come_with_their_labels_and_an_onset_that_is_not_known_is_none(target: FolderTarget) -> None:
    store = target.root / store_key(DATASET, ZARR)
    events_of(store, [1.5, 2.5, float("nan")])
    events = read_opening(target_place(target), DATASET, ZARR).events
    assert events is not None
    assert (events["onset"], events["duration"], events["code"]) == ([1.5, 2.5, None], [0.0, 1.0, 0.0], [0, 1, 0])
    assert (events["labels"]["1"], events["descriptions"], events["is_truncated"]) == ("<b>", {"0": "begin"}, False)


def test_of_very_many_events_the_first_are_given(target: FolderTarget) -> None:
    events_of(target.root / store_key(DATASET, ZARR), [float(at) for at in range(MOST_EVENTS + 1)])
    events = read_opening(target_place(target), DATASET, ZARR).events
    assert events is not None
    assert (len(events["onset"]), events["onset"][-1], events["is_truncated"]) == (MOST_EVENTS, MOST_EVENTS - 1, True)


def test_a_store_that_is_replaced_while_it_is_opened_is_opened_anew(target: FolderTarget, tmp_path: Path) -> None:
    place, replaced = target_place(target), []

    def open_object(key: str) -> Opened | None:
        if key.endswith("/0/zarr.json") and not replaced:
            replaced.append(key)
            put_version(target, tmp_path, 2)
        return place.open_object(key)

    opening = read_opening(Place(place.url, open_object), DATASET, ZARR)
    assert opening.root["publish_id"] == "version-2"
    assert opening.version == version_of(place, f"{store_key(DATASET, ZARR)}/zarr.json")


def test_what_is_no_store_is_refused_and_what_is_not_there_is_not_there_now(target: FolderTarget) -> None:
    root = target.root / store_key(DATASET, ZARR) / "zarr.json"
    told = json.loads(root.read_bytes())
    for names in ([], "eeg", ["../../other"], [7]):
        root.write_text(json.dumps({**told, "attributes": {**told["attributes"], "channel_groups": names}}))
        with pytest.raises(Refused):
            read_opening(target_place(target), DATASET, ZARR)
    root.unlink()
    with pytest.raises(StorageUnavailable):
        read_opening(target_place(target), DATASET, ZARR)
