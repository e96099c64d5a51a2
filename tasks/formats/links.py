"""Gives a reader the name it insists on: links in a work folder, never a change of the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["linked", "linked_folder"]


def linked(work: Path, name: str, target: Path) -> Path:
    """``target`` under ``name`` in ``work``."""
    link = work / name
    link.symlink_to(target.absolute(), target_is_directory=target.is_dir())
    return link


def linked_folder(work: Path, name: str, targets: Mapping[str, Path]) -> Path:
    """A folder ``name`` in ``work`` that holds every target under its new name."""
    folder = work / name
    folder.mkdir()
    for inner, target in targets.items():
        linked(folder, inner, target)
    return folder
