"""What a dataset needs now, and why: one pure decision over what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from datetime import datetime

    from db.requests import RequestMode, Why

__all__ = ["DatasetSeen", "LiveIndex", "Need", "decide", "gate_is_open"]

LiveIndex = Literal["ours", "absent", "foreign", "unknown"]

_DEFAULT_REBUILD_ON = frozenset({"options", "engine"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSeen:
    """What is known of a dataset at the moment of a decision.

    Parameters
    ----------
    takes_part
        It is active, and neither it nor everything is paused.
    at_work
        A request for it waits or runs, or a run holds it.
    state, next_at
        Its policy (``db.policies``).
    has_run
        Whether any run ever ended that brought it to its source.
    is_published
        Whether an index of it should stand at the target.
    version, done_version
        Of its source: now, None when it cannot be looked at; and when the last run was asked for, however that ended.
    index
        What stands at the target in the place of its index.
    stale
        Columns of its stamp that differ from the present converter's.
    gate_open
        Whether what is stale may be made anew.
    rebuilding
        Columns that the last request for it rebuilt on: a retry must go on asking for them.
    """

    takes_part: bool
    at_work: bool
    state: str
    next_at: datetime | None
    has_run: bool
    is_published: bool
    version: str | None
    done_version: str | None
    index: LiveIndex
    stale: tuple[str, ...] = ()
    gate_open: bool = False
    rebuilding: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The request that a dataset needs."""

    why: Why
    mode: RequestMode
    detail: str
    rebuild_on: frozenset[str] = _DEFAULT_REBUILD_ON


def decide(seen: DatasetSeen, *, now: datetime) -> Need | None:
    """What is to be asked for; None when nothing is due, or nothing can be done.

    The first that applies: it never ran; its source has another version; its index is gone; its round, or the end of its
    waiting, has come; the converter is another one and the gate is open. Nothing is asked for while the source cannot be
    looked at, while an index stands there that is not ours, or while something for it waits or runs.
    """
    if not seen.takes_part or seen.at_work or seen.version is None or seen.index == "foreign":
        return None
    if not seen.has_run and seen.done_version is None:
        return Need(why="new", mode="auto", detail="It was never converted.")
    if seen.version != seen.done_version:
        return Need(
            why="version", mode="auto", detail="Its source has another version than when it was last worked on."
        )
    if seen.index == "absent" and seen.is_published:
        return Need(why="index", mode="auto", detail="Its index is gone from the target.")
    waited = _waited(seen, now)
    if waited is not None:
        return waited
    if seen.stale and seen.gate_open:
        columns = ", ".join(seen.stale)
        return Need(
            why="engine",
            mode="auto",
            detail=f"It was made with another converter ({columns}).",
            rebuild_on=_DEFAULT_REBUILD_ON | set(seen.stale),
        )
    return None


def _waited(seen: DatasetSeen, now: datetime) -> Need | None:
    """The request of a dataset whose waiting time is over."""
    if seen.next_at is None or seen.next_at > now:
        return None
    rebuild_on = _DEFAULT_REBUILD_ON | set(seen.rebuilding)
    match seen.state:
        case "round":
            return Need(
                why="retry_round", mode="retry-pending", detail="Its next retry round is due.", rebuild_on=rebuild_on
            )
        case "soon":
            return Need(
                why="not_attempted", mode="auto", detail="Some recordings were never reached.", rebuild_on=rebuild_on
            )
        case _:
            return Need(
                why="backoff",
                mode="auto",
                detail="The last run published nothing; it is time to try again.",
                rebuild_on=rebuild_on,
            )


def gate_is_open(*, stale_count: int, approved: bool, limit: int) -> bool:
    """Whether all stale datasets may be made anew: a few may, many only with an operator's word. All or none of them."""
    return approved or stale_count <= limit
