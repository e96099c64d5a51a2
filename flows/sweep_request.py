"""What a verify sweep is asked, and what it tells at the end: the values between doors and the sweep."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DatasetSwept", "StoreSwept", "SweepRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest:
    """What a sweep is to look at.

    Parameters
    ----------
    target
        None: every target that is known.
    dataset_id
        None: every dataset whose verdict does not stand, or whose objects show that it should not. The bytes of the objects
        of a dataset that is named are compared too.
    path
        One recording, by its path or its store's; needs ``dataset_id``.
    every
        Also stores whose verdict stands.
    seed
        Equal seeds compare equal windows.
    over_http
        Read stores at the addresses in the documents, as anyone does.
    commit, annex, at
        How the sources are read; see ``SourceAddress``. Without ``annex`` each has the one that it was converted with.
    """

    target: str | None = None
    dataset_id: str | None = None
    path: str | None = None
    every: bool = False
    seed: int = 0
    over_http: bool = False
    commit: str | None = None
    annex: str | None = None
    at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSwept:
    """What became of one store. ``status`` is None, and ``why`` says what for, when there is no verdict.

    ``whole``: it was read whole; else only its root had changed.
    """

    path: str
    status: str | None
    why: str | None = None
    whole: bool = True
    mismatches: int = 0
    examples: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSwept:
    """What became of a dataset.

    Parameters
    ----------
    status
        The verdict that was written; None when there is none.
    trouble
        What kept it from a verdict; None when nothing did.
    stores
        The stores that were looked at, by path.
    verified, failed, unverifiable, unjudged
        Published stores by their verdict as it stands now.
    as_left
        Stores that were not compared with their source, because their verdict stands and their objects are as they were left.
    examples
        Of what does not hold, at most 20.
    """

    dataset_id: str
    target: str
    status: str | None
    trouble: str | None
    stores: tuple[StoreSwept, ...]
    verified: int = 0
    failed: int = 0
    unverifiable: int = 0
    unjudged: int = 0
    as_left: int = 0
    examples: tuple[object, ...] = ()
