"""Exports with the images of their stimuli."""

from __future__ import annotations

import io
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from export_asking import ask_for, settings_of
from export_scene import put_events, put_scene
from git_dataset import annex_repository, commit_all, git, write
from matplotlib import image as pictures
from signal_store import put_index
from vneurotk_reader import Reader

from contract.errors import Refused
from flows.export_window import export_one
from infra.storage.folder import FolderTarget

FACE, HOUSE = np.zeros((4, 5, 3), np.uint8), np.full((3, 2, 3), 200, np.uint8)


@pytest.fixture
def bids(tmp_path: Path) -> Path:
    """A dataset with images, and with what leads out of it."""
    folder = tmp_path / "bids"
    (folder / "stimuli" / "house").mkdir(parents=True)
    pictures.imsave(folder / "stimuli" / "face 1.png", FACE)
    pictures.imsave(folder / "stimuli" / "house" / "1.png", HOUSE)
    (folder / "stimuli" / "notes.png").write_text("no picture")
    (folder / "dataset_description.json").write_text("{}")
    (folder / "secret.png").write_bytes((folder / "stimuli" / "face 1.png").read_bytes())
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.png").write_bytes((folder / "stimuli" / "face 1.png").read_bytes())
    (folder / "stimuli" / "link.png").symlink_to(outside / "x.png")
    (folder / "stimuli" / "linked").symlink_to(outside)
    (folder / "stimuli" / "dangling.png").symlink_to("nothing.png")
    (folder / "stimuli" / "long.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    os.truncate(folder / "stimuli" / "long.png", (32 << 20) + 1)
    return folder


@pytest.mark.parametrize("schema", [0, 1])
def test_images_that_events_name_are_in_the_file_under_the_ids_of_their_trials(
    served: Path, tmp_path: Path, bids: Path, schema: Any, vneurotk: Reader
) -> None:
    home = tmp_path / "home"
    told = export_one(
        settings_of(home), ask_for(served, tmp_path / "a.h5", with_stimuli=True, source=str(bids), schema=schema)
    )
    assert told.stimuli == {1: "face 1.png", 2: "house/1.png"}
    assert (told.n_trials, told.without_image, told.dropped) == (4, 1, 2)
    with h5py.File(tmp_path / "a.h5") as file:
        labels = file["stim_labels"][()].reshape(4, 50)[:, 20]
        assert labels.tolist() == [2, 1, 1, 2]
        assert file["neuro_info"].attrs["stimulus_ids_from"] == "stim_file"
        assert file["neuro_info"].attrs["stimuli_source_commit"] == "unknown"
        found: list[str] = []
        file["stimuli_db"].visititems(
            lambda _, node: found.append(str(node.attrs["kind"])) if "kind" in node.attrs else None
        )
        assert found == ["image_bytes"] * 2, "a path is never written"
        if schema:
            assert file["stimuli_db"].attrs["encoding"] == "ordered_entries_v1"
            for number, (name, picture) in enumerate((("face 1.png", FACE), ("house/1.png", HOUSE))):
                entry = file[f"stimuli_db/{number}"]
                assert (entry["id/types"][()].tolist(), entry["id/values"][0]) == ([2], str(number + 1).encode())
                data = entry["image"][()].tobytes()
                assert data == (bids / "stimuli" / name).read_bytes()
                assert pictures.imread(io.BytesIO(data)).shape[:2] == picture.shape[:2]
    if not schema:
        read, _ = vneurotk.read(tmp_path / "a.h5", with_images=True)
        assert [int(number) for number in read["ids"]] == [2, 1, 1, 2]
        assert {name: np.array(image).tolist() for name, image in read["images"].items()} == {
            "1": FACE.tolist(),
            "2": HOUSE.tolist(),
        }


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../secret.png", "no path below"),
        ("/etc/passwd", "no path below"),
        ("a/../../secret.png", "no path below"),
        ("https://example.org/x.png", "no path below"),
        ("house\\1.png", "no path below"),
        ("link.png", "leads out of the dataset"),
        ("linked/x.png", "not in the dataset's stimuli folder"),
        ("dangling.png", "symbolic link to nothing"),
        ("nothing.png", "not in the dataset's stimuli folder"),
        ("house", "not in the dataset's stimuli folder"),
        ("notes.png", "no PNG"),
        ("long.png", "longer than"),
    ],
)
def test_an_image_is_read_from_the_stimuli_of_the_dataset_and_from_nowhere_else(
    tmp_path: Path, home: Path, bids: Path, name: str, why: str
) -> None:
    target = FolderTarget(tmp_path / "served", port=8321)
    put_scene(target, tmp_path)
    put_events(target, tmp_path, [{"onset_s": 2.0, "trial_type": "a", "stim_file": name}])
    with pytest.raises(Refused, match=f"^--with-stimuli: stim_file .* {why}"):
        export_one(settings_of(home), ask_for(target.url, tmp_path / "a.h5", with_stimuli=True, source=str(bids)))
    assert not (tmp_path / "a.h5").exists()


def test_images_need_a_source_and_events_that_name_them(served: Path, tmp_path: Path, home: Path, bids: Path) -> None:
    with pytest.raises(Refused, match="--source"):
        export_one(settings_of(home), ask_for(served, tmp_path / "a.h5", with_stimuli=True))
    asked: dict[str, Any] = {"with_stimuli": True, "source": str(bids), "trial_types": ("7",)}
    with pytest.raises(Refused, match=r"no event of .* has a stim_file"):
        export_one(settings_of(home), ask_for(served, tmp_path / "a.h5", **asked))


def test_annexed_images_of_a_repository_are_those_of_the_commit_of_the_index(
    tmp_path: Path, home: Path, bids: Path, require: Any
) -> None:
    if shutil.which("git-annex") is None:
        require("git-annex", "git-annex is not installed")
    folder = annex_repository(tmp_path / "repository")
    git(folder, "config", "annex.largefiles", "include=*.png")
    image = (bids / "stimuli" / "face 1.png").read_bytes()
    commits = []
    for content in (image, b"another"):
        (folder / "stimuli" / "face 1.png").unlink(missing_ok=True)
        write(folder, {"stimuli/face 1.png": content})
        git(folder, "annex", "add", ".")
        commits.append(commit_all(folder))
    assert (folder / "stimuli" / "face 1.png").is_symlink()
    target = FolderTarget(tmp_path / "served", port=8321)
    put_scene(target, tmp_path)
    put_index(target, source_commit=commits[0])
    put_events(target, tmp_path, [{"onset_s": 2.0, "trial_type": "a", "stim_file": "face 1.png"}])
    asked = ask_for(target.url, tmp_path / "a.h5", with_stimuli=True, source=str(folder))
    export_one(settings_of(home), asked)
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["stimuli_db/0/image"][()].tobytes() == image
        assert file["neuro_info"].attrs["stimuli_source_commit"] == commits[0]
    with pytest.raises(Refused, match="no PNG"):
        export_one(settings_of(home), replace(asked, commit=commits[1]))
