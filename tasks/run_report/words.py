"""How a run and its attempts are spoken of, for people."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from contract.codes import FAILURE_SENTENCES, PENDING_SENTENCES, WHY_DUE_SENTENCES, FailureCode, PendingReason, WhyDue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from db.run_facts import Ending
    from db.run_list import RunHead

__all__ = [
    "CHANGE_WORDS",
    "STATE_WORDS",
    "asked_options",
    "ending_word",
    "how_it_ended",
    "sentence_for",
    "why_sentence",
]

STATE_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "running": "under way",
        "completed": "completed",
        "failed": "failed",
        "cancelled": "stopped",
        "lost": "killed",
    }
)
"""The end of a run as people say it, by its state."""
CHANGE_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "new": "converted for the first time",
        "remade": "made again",
        "recovered": "converted, after an attempt that had not succeeded",
        "broken": "not converted, though an earlier attempt had succeeded",
        "unsuccessful": "not converted at the first attempt",
        "as before": "not converted, as at the attempt before",
    }
)
_OUTCOMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "converting": "under way",
        "done": "converted",
        "released": "given back, not counted",
        "expired": "its worker was lost",
        "adopted": "taken over",
    }
)
_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {"memory_budget": "ran out of memory", "infra_failure": "the machine had trouble"}
)
_OPTION_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "commit": "commit asked for",
        "rebuild_on": "rebuilds on a new",
        "priority": "priority",
        "workers": "workers",
        "memory": "memory for conversions",
        "hash_signals": "signals compared by content",
        "allow_dirty": "uncommitted changes allowed",
        "at": "source as of",
        "public": "published openly",
    }
)


def how_it_ended(head: RunHead) -> str:
    """A sentence about the run's end."""
    match head.state:
        case "running":
            return f"The run is under way{f': {head.stage}' if head.stage else ''}."
        case "completed":
            return "The run came to its end."
        case "cancelled":
            return "The run was stopped before its end; what it had converted is published."
        case "lost":
            return (
                "The run was killed, or its machine was not heard of any more; what it was converting was given back."
            )
        case _:
            return "The run failed and published nothing; what was served before is served still."


def ending_word(ending: Ending) -> str:
    """How attempts ended, in a few words."""
    if ending.outcome == "failed":
        return f"failed: {ending.code}"
    if ending.outcome == "pending":
        return _REASONS.get(ending.reason or "", str(ending.reason))
    return _OUTCOMES.get(ending.outcome, ending.outcome)


def sentence_for(word: str) -> str:
    """The user's sentence for a failure code or a pending reason."""
    if word in set(FailureCode):
        return FAILURE_SENTENCES[FailureCode(word)]
    return PENDING_SENTENCES[PendingReason(word)] if word in set(PendingReason) else ""


def why_sentence(word: str | None) -> str:
    """Why a conversion was due."""
    return WHY_DUE_SENTENCES[WhyDue(word)] if word in set(WhyDue) else "For a reason that was not kept."


def asked_options(head: RunHead) -> list[tuple[str, str]]:
    """What the run was asked beyond its mode, as (option, value)."""
    return [(said, str(head.asked[name])) for name, said in _OPTION_WORDS.items() if head.asked.get(name)]
