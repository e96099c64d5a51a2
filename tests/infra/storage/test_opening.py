from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contract.errors import Refused
from infra.storage import open_target

SETTINGS: Any = SimpleNamespace(port=8400)


@pytest.mark.parametrize("spelling", ["{}", "file://{}", "file://localhost{}", "{}/", "{}/../{name}"])
def test_one_folder_is_one_target_however_it_is_spelt(tmp_path: Path, spelling: str) -> None:
    folder = tmp_path / "served"
    target = open_target(spelling.format(folder, name=folder.name), SETTINGS)
    assert target.url == str(folder.resolve())
    assert open_target(target.url, SETTINGS) == target
    assert not folder.exists()


def test_a_relative_folder_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_target("./served", SETTINGS).url == str(tmp_path.resolve() / "served")


def test_odd_characters_in_the_folder_survive_the_round_trip(tmp_path: Path) -> None:
    for name in ("a b", "50%41", "what?#", "ÄÖ", "~x"):
        target = open_target(str(tmp_path / name), SETTINGS)
        assert open_target(target.url, SETTINGS).url == str(tmp_path.resolve() / name)


def test_the_port_of_the_settings_stands_in_the_addresses(tmp_path: Path) -> None:
    assert ":8400/" in open_target(str(tmp_path), SETTINGS).addresses("xx000001").data_base


@pytest.mark.parametrize("url", ["gs://bucket/prefix", "https://host/x", "file://elsewhere/x", "HTTP://b"])
def test_an_unsupported_target_is_refused_with_what_is_supported(url: str) -> None:
    with pytest.raises(Refused, match=r"supported are a folder"):
        open_target(url, SETTINGS)


@pytest.mark.parametrize("url", ["", "  ", "a\x00b"])
def test_an_empty_target_is_refused(url: str) -> None:
    with pytest.raises(Refused):
        open_target(url, SETTINGS)


def test_a_file_is_no_target(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="is a file"):
        open_target(str(tmp_path / "file"), SETTINGS)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("s3://", "names no bucket"),
        ("s3:///x", "names no bucket"),
        ("s3://b/x", "b is no bucket's name"),
        ("s3://Up_1/x", "Up_1 is no"),
    ],
)
def test_a_bucket_without_a_name_and_one_of_a_wrong_name_are_told_apart(url: str, told: str) -> None:
    with pytest.raises(Refused, match=told):
        open_target(url, SETTINGS)
