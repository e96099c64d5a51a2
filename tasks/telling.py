"""What is known of one recording, in sentences for people: the same on the command line and on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contract.codes import FAILURE_SENTENCES, MAX_COUNTED_ATTEMPTS, PENDING_SENTENCES, WHY_DUE_SENTENCES
from contract.times import utc_stamp
from infra.sizes import format_bytes
from infra.wording import plural
from tasks.convert.loss import unpack_losses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from db.policies import Policy
    from db.recordings import AttemptRecord, RecordingHistory, RecordingState
    from db.store_verdicts import FidelityOfStore

__all__ = ["disclosures", "ending", "losses", "policy_sentence", "reasons", "remade", "standing", "verified"]

_QUIET: Final = frozenset({"clean", "terminal"})
_POLICIES: Final = {
    "round": "retry round {round} of 5",
    "soon": "some recordings were never reached",
    "backoff": "{failed} published nothing",
    "exhausted": "five retry rounds were in vain; requeue tries again",
    "given_up": "five runs in a row published nothing; requeue tries again",
}


def standing(state: RecordingState) -> str:
    """How a recording stands, such as ``failed: not_continuous``."""
    match state.published_as:
        case "stores":
            return "served" + (", and converting again" if state.due == "converting" else "")
        case "failures":
            return f"failed: {state.code}"
        case "pending":
            return f"converting now: {state.reason}" if state.due == "converting" else f"pending: {state.reason}"
        case _:
            return "no longer in the source"


def reasons(state: RecordingState, *, size: Callable[[int], str] = format_bytes) -> Iterator[tuple[str, str]]:
    """Why it stands so and what comes next: (what is told, in a word or two; the sentence). ``size`` writes sizes."""
    if state.verdict is not None:
        yield "reason", FAILURE_SENTENCES[state.verdict.code]
        if state.verdict.detail:
            yield "detail", state.verdict.detail
        if state.verdict.needed_bytes is not None:
            yield "needs", f"{size(state.verdict.needed_bytes)} of memory"
        yield "found by", f"engine {state.verdict.engine}, biosigIO {state.verdict.biosigio}"
    elif state.reason is not None:
        yield "reason", PENDING_SENTENCES[state.reason]
    if state.why is not None:
        yield "due", f"{state.why}: {WHY_DUE_SENTENCES[state.why]}"
    if state.attempts:
        yield "attempts", f"{state.attempts} counted of {MAX_COUNTED_ATTEMPTS}"
    if state.next_attempt_at is not None:
        yield "next", f"not before {utc_stamp(state.next_attempt_at)}; --mode retry-pending does not wait"
    if state.last_error:
        yield "last error", state.last_error


def remade(history: RecordingHistory) -> Iterator[tuple[str, str]]:
    """Of a recording whose store is served and is not its first: when it was made anew, in which run, and why."""
    made = [one for one in history.attempts if one.outcome in {"done", "adopted"}]
    if history.state.served is None or len(made) < 2:
        return
    before, last = made[-2:]
    because = "for a reason that was not kept." if last.why is None else WHY_DUE_SENTENCES[last.why]
    when = "" if last.ended_at is None else f" on {utc_stamp(last.ended_at)}"
    yield "remade", f"in run {last.run_number}{when}: {because} It replaced the store of run {before.run_number}."


def verified(found: FidelityOfStore) -> str:
    """What a comparison with the source found of its store, when, and of which store."""
    since = "" if found.stands else ", of the store before this one"
    return f"{found.status} on {utc_stamp(found.verified_at)}{since}{f': {found.why}' if found.why else ''}"


def disclosures(entry: Mapping[str, Any]) -> Iterator[str]:
    """What a store's index entry says about how true it is to its recording."""
    if entry.get("channels_tsv_read_error"):
        yield "a channels.tsv applies but could not be read; units are those of the recording file"
    report = entry.get("units_report")
    if report is not None:
        yield (
            f"units by {report['sidecar']}: {report['converted']} channels converted, {report['relabelled']} relabelled, "
            f"{report['kept_importer_unit']} kept the file's own"
        )
    correction = entry.get("sss")
    if correction is not None:
        yield f"not the raw signal: corrected by {correction['method']} with {correction['calibration']} and {correction['cross_talk']}"
    members = entry.get("split_members")
    if members:
        yield f"joined from {len(members)} files: {', '.join(members)}"


def ending(attempt: AttemptRecord) -> str:
    """How an attempt ended, and whether it cost one of the five."""
    if attempt.outcome == "released":
        return "released, not counted"  # nobody is to blame for it, whatever the attempt met while it was ended
    verdict = attempt.code or attempt.reason
    said = attempt.outcome if verdict is None else f"{attempt.outcome}: {verdict}"
    # Only these two can cost one of the five attempts; whether they did is worth saying.
    if attempt.outcome in {"pending", "expired"}:
        said += ", counted" if attempt.counted else ", not counted"
    return said


def losses(packed: bytes) -> list[str]:
    """Of each group and unit, the channel that int16 moved furthest."""
    lines = []
    for group in unpack_losses(packed):
        for unit in dict.fromkeys(group.units):
            rows = [row for row, own in enumerate(group.units) if own == unit]
            worst = max(rows, key=lambda row: group.channels[row].max_error)
            furthest, rms = group.channels[worst].max_error, max(group.channels[row].rms_error for row in rows)
            lines.append(
                f"{group.group}: {plural(len(rows), 'channel')} off by at most {furthest:.3g} {unit} "
                f"({group.labels[worst]}), {rms:.3g} {unit} rms"
            )
    return lines


def policy_sentence(policy: Policy) -> str | None:
    """What a dataset waits for by itself, and until when; None where it waits for nothing."""
    if policy.state in _QUIET:
        return None
    failures = policy.infra_failures
    failed = "its last run" if failures == 1 else f"its last {failures} runs"
    what = _POLICIES[policy.state].format(round=policy.retry_round, failed=failed)
    return what + (f", again at {utc_stamp(policy.next_at)}" if policy.next_at is not None else "")
