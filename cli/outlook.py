"""What a dataset waits for, in a few lines of ``zarrmill status``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract.times import utc_stamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from db.standings import Outlook

__all__ = ["outlook_lines"]

_QUIET = {"clean", "terminal"}
_SENTENCES = {
    "round": "retry round {round} of 5",
    "soon": "some recordings were never reached",
    "backoff": "{failed} published nothing",
    "exhausted": "five retry rounds were in vain; requeue tries again",
    "given_up": "five runs in a row published nothing; requeue tries again",
}


def outlook_lines(outlook: Outlook) -> Iterator[str]:
    """Nothing for a dataset that waits for nothing."""
    policy, request = outlook.policy, outlook.request
    if outlook.everything_paused:
        yield "paused     everything is, so it starts nothing by itself; resume without a dataset ends that"
    elif outlook.paused:
        yield "paused     it starts nothing by itself; resume ends that"
    if policy.state not in _QUIET:
        failures = policy.infra_failures
        failed = "its last run" if failures == 1 else f"its last {failures} runs"
        what = _SENTENCES[policy.state].format(round=policy.retry_round, failed=failed)
        when = f", again at {utc_stamp(policy.next_at)}" if policy.next_at is not None else ""
        yield f"policy     {what}{when}"
    if policy.unreadable is not None and policy.unreadable_since is not None:
        yield f"unreadable since {utc_stamp(policy.unreadable_since)}: {policy.unreadable}"
    if request is not None:
        yield f"request    {request.pk} ({request.mode}, {request.why}) of {request.asked_by} is {request.state} since {utc_stamp(request.started_at or request.asked_at)}"
