"""How much of a host's memory, or of a worker's slots, one of several runs may take now. Pure.

Each run that has something waiting is entitled to a part in proportion to its priority; what one cannot use goes to the others. A run
leaves free what runs that have less than theirs are still owed. The one that has least of its due leaves nothing: so somebody can
always go on, even with a recording that is larger than its part. A large recording that was passed over for too long is owed the room that
it needs, to the run that waited longest first.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

__all__ = ["Party", "entitlements", "may_take"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """One run at one pool of memory or slots.

    Parameters
    ----------
    priority
        Its weight.
    held
        What it has of the pool.
    wanted
        What it could use besides; 0 when nothing of it waits.
    drained
        What a large recording needs that a worker is drained for; 0 without.
    """

    name: Hashable
    priority: int
    held: int
    wanted: int
    drained: int = 0


def entitlements(total: int, parties: Sequence[Party]) -> dict[Hashable, float]:
    """The part of ``total`` that each is entitled to: by priority, no more than it holds and wants, the rest shared again."""
    entitled: dict[Hashable, float] = {}
    left = float(total)
    open_ = [party for party in parties if party.held + party.wanted > 0]
    while open_:
        weight = sum(party.priority for party in open_)
        sated = [party for party in open_ if party.held + party.wanted <= left * party.priority / weight]
        if not sated:
            return entitled | {party.name: left * party.priority / weight for party in open_}
        for party in sated:
            entitled[party.name] = float(party.held + party.wanted)
            left = max(left - entitled[party.name], 0.0)
            open_.remove(party)
    return entitled


def may_take(total: int, free: int, mine: Hashable, parties: Sequence[Party]) -> int:
    """How much of what is ``free`` the party ``mine`` may take; negative when it must first give so much back by what ends.

    ``parties``, the one that contends longest first, holds it too.
    """
    entitled = entitlements(total, parties)
    drained = next((party for party in parties if party.drained), None)
    if drained is not None and drained.name == mine:
        return free
    places = {party.name: place for place, party in enumerate(parties)}
    me = next(party for party in parties if party.name == mine)
    owed = float(drained.drained) if drained is not None else 0.0
    for party in parties:
        if party.wanted and party.name not in (mine, drained and drained.name):
            is_before = (party.held / party.priority, places[party.name]) < (me.held / me.priority, places[mine])
            owed += max(entitled[party.name] - party.held, 0.0) if is_before else 0.0
    return math.floor(free - owed)
