"""What a dataset waits for, in a few lines of ``zarrmill status``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract.times import utc_stamp
from tasks.telling import policy_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from db.standings import Outlook

__all__ = ["outlook_lines"]


def outlook_lines(outlook: Outlook) -> Iterator[str]:
    """Nothing for a dataset that waits for nothing."""
    policy, request = outlook.policy, outlook.request
    if outlook.everything_paused:
        yield "paused     everything is, so it starts nothing by itself; resume without a dataset ends that"
    elif outlook.paused:
        yield "paused     it starts nothing by itself; resume ends that"
    if (waits := policy_sentence(policy)) is not None:
        yield f"policy     {waits}"
    if policy.unreadable is not None and policy.unreadable_since is not None:
        yield f"unreadable since {utc_stamp(policy.unreadable_since)}: {policy.unreadable}"
    if request is not None:
        yield f"request    {request.pk} ({request.mode}, {request.why}) of {request.asked_by} is {request.state} since {utc_stamp(request.started_at or request.asked_at)}"
