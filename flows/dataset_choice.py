"""Which dataset a source is: its id, and what is registered under it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from contract.errors import Refused
from contract.layout import is_dataset_id
from db import datasets

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from db.datasets import Dataset

__all__ = ["Choice", "choose"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The id, and the dataset registered under it at the target; None when it is new."""

    dataset_id: str
    registered: Dataset | None


def choose(c: Connection, *, given: str | None, source: str, target: str) -> Choice:
    """The id given, else the folder's name (of a bare clone without its ``.git``) when it is an id, else the one registered for this source, else the next free one.

    Raises
    ------
    Refused
        The id given is none, or the folder's name belongs to another source.
    """
    if given is not None:
        if not is_dataset_id(given):
            raise Refused(
                f"--dataset-id {given!r} is no dataset id: two lower-case letters and six digits, such as xx000001."
            )
        return Choice(dataset_id=given, registered=datasets.find(c, dataset_id=given, target=target))
    name = PurePath(source).name.removesuffix(".git")
    if is_dataset_id(name):
        found = datasets.find(c, dataset_id=name, target=target)
        if found is not None and found.source != source:
            raise Refused(
                f"{name} at {target} was made from {found.source}, and {source} has the same name. "
                f"If the dataset has moved, say so with --dataset-id {name}; if it is another one, give it an id of its own."
            )
        return Choice(dataset_id=name, registered=found)
    found = datasets.find(c, source=source, target=target)
    if found is not None:
        return Choice(dataset_id=found.dataset_id, registered=found)
    return Choice(dataset_id=datasets.next_free_id(c, target=target), registered=None)
