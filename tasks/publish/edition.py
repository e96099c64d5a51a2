"""What one publication of a dataset says about itself; the rest comes from the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from db.datasets import Dataset

__all__ = ["Edition"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """One publication of one dataset.

    Parameters
    ----------
    dataset
        With the facts that the documents state (DOI, licence, citation, HED version).
    source_commit
        40 hex characters of the source's state.
    updated_utc
        ``YYYY-MM-DDTHH:MM:SSZ``, the start of the run.
    errors
        Recordings that did not succeed in this run, for whatever cause.
    deterministic
        Whether something failed, and nothing of it because of a machine.
    remove_vanished
        Whether stores that nothing names any more are removed. False for a run that looked at a part of the source only.
    """

    dataset: Dataset
    source_commit: str
    updated_utc: str
    errors: int = 0
    deterministic: bool = False
    remove_vanished: bool = True
