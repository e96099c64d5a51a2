"""What a dataset's standing forbids: a withdrawn one is not published, a private one not where anybody can read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract.errors import Refused

if TYPE_CHECKING:
    from db.datasets import Dataset

__all__ = ["check_standing"]


def check_standing(dataset: Dataset | None, *, is_open: bool | None = None) -> None:
    """Refuse to publish what may not be published; a dataset that is not known yet is public.

    Parameters
    ----------
    is_open
        Whether anybody can, or is to, read the target without credentials; None when that is not known.

    Raises
    ------
    Refused
        The sentence names the way out.
    """
    if dataset is None:
        return
    if dataset.withdrawn_at is not None:
        raise Refused(
            f"{dataset.dataset_id} at {dataset.target} was withdrawn and is not published; "
            f"`zarrmill dataset set {dataset.dataset_id} --active yes` ends that."
        )
    if dataset.visibility == "private" and is_open:
        raise Refused(
            f"{dataset.dataset_id} is private, and anybody can read {dataset.target}: convert it to a target that only you can read, or "
            f"say `zarrmill dataset set {dataset.dataset_id} --visibility public`."
        )
