"""What to do with every recording of a dataset: a pure function of what is there, what is known and what is asked.

ARCHITECTURE.md, "what makes a store current", in code. The order of the questions for one recording:

1. Does another recording own its store path? Fail.
2. Is its store made from these inputs? Then it is carried, unless a rebuild is due.
3. Is content of the recording itself missing here? Fail, for nothing true can be made of it. A sidecar may be missing.
4. Does a verdict on these inputs still stand? Keep it.
5. Does it wait for a later attempt? Wait. Otherwise convert.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from contract.codes import FailureCode, WhyDue
from tasks.bids.other_formats import had_no_reader
from tasks.bids.scope import printable
from tasks.plan.fingerprint import source_fingerprint
from tasks.plan.planned import Plan, PlannedAction, PlannedRecording
from tasks.sources.protocol import ABSENCE_SENTENCES, absence_code, absent_id

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime

    from db.recordings import RecordingState, ServedVersions, Verdict
    from tasks.bids.recording import DiscoveredRecording
    from tasks.sources.protocol import TreeEntry

__all__ = ["Mode", "Plan", "PlannedAction", "PlannedRecording", "plan"]

Mode = Literal["auto", "full", "retry-pending"]

_REBUILD_WHY = {"options": WhyDue.OPTIONS, "engine": WhyDue.ENGINE, "biosigio": WhyDue.BIOSIGIO}


def plan(
    discovered: Iterable[DiscoveredRecording],
    tree: Mapping[str, TreeEntry],
    states: Iterable[RecordingState],
    *,
    now: datetime,
    options: str,
    engine: str,
    biosigio: str,
    mode: Mode = "auto",
    rebuild_on: Collection[str] = ("engine", "options"),
    lost: Collection[str] = (),
    largest_worker_bytes: int | None = None,
) -> Plan:
    """One action for every discovered recording, and what is gone.

    Parameters
    ----------
    tree
        The source's files, for the content ids of the inputs.
    states
        What the database believes (``db.recordings.snapshot``).
    now
        The database's time (``zarrmill_now()``), which waiting times were set by.
    options, engine, biosigio
        Versions that a conversion would have now.
    mode
        ``full`` converts everything again; ``retry-pending`` does not wait for a pending recording's time.
    rebuild_on
        Which of options, engine, biosigio rebuild a store, and lift a verdict, when they differ. The source always does.
    lost
        Store paths that the database believes served and the target has no more.
    largest_worker_bytes
        Memory of the largest worker there is or may be; lifts ``recording_too_large`` when it suffices.
    """
    if unknown := set(rebuild_on) - _REBUILD_WHY.keys():
        raise ValueError(f"rebuild_on names {sorted(unknown)}")
    current = {"options": options, "engine": engine, "biosigio": biosigio}
    watched = {column: current[column] for column in _REBUILD_WHY if column in rebuild_on}
    asked = _Asked(now, mode, watched, frozenset(lost), largest_worker_bytes)
    known = {state.path: state for state in states}
    planned = [_planned(recording, tree, known.get(recording.path), asked) for recording in discovered]
    planned.sort(key=lambda one: one.recording.path)
    paths = {one.recording.path for one in planned}
    dropped = sorted(state.path for state in known.values() if state.discovered and state.path not in paths)
    return Plan(recordings=tuple(planned), dropped=tuple(dropped))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What holds for all recordings of one plan. ``watched`` are the columns that rebuild, with their present values."""

    now: datetime
    mode: Mode
    watched: Mapping[str, str]
    lost: frozenset[str]
    largest_worker_bytes: int | None

    def differing(self, made_with: ServedVersions | Verdict) -> WhyDue | None:
        """The first watched column in which a store or verdict differs from the present."""
        return next(
            (_REBUILD_WHY[name] for name, value in self.watched.items() if getattr(made_with, name) != value), None
        )

    def has_room_for(self, needed_bytes: int | None) -> bool:
        if needed_bytes is None or self.largest_worker_bytes is None:
            return False
        return needed_bytes <= self.largest_worker_bytes


@dataclass(frozen=True, slots=True)
class _Decision:
    action: PlannedAction
    why: WhyDue | None = None
    failure: tuple[FailureCode, str] | None = None


_CARRY = _Decision(PlannedAction.CARRY)
_WAIT = _Decision(PlannedAction.WAIT)
_KEEP = _Decision(PlannedAction.KEEP_FAILED)


def _convert(why: WhyDue) -> _Decision:
    return _Decision(PlannedAction.CONVERT, why)


def _planned(
    recording: DiscoveredRecording, tree: Mapping[str, TreeEntry], state: RecordingState | None, asked: _Asked
) -> PlannedRecording:
    inputs, missing = _inputs(recording, tree, state, asked)
    fingerprint = source_fingerprint(dict(inputs))
    decision = _decide(recording, fingerprint, missing, state, asked)
    return PlannedRecording(
        recording=recording,
        inputs=inputs,
        fingerprint=fingerprint,
        action=decision.action,
        recording_id=state.id if state else None,
        why=decision.why,
        failure=decision.failure,
        settled=state is not None and _settled(decision, recording, fingerprint, state),
        source_changed=state is not None and state.source != fingerprint,
    )


def _inputs(
    recording: DiscoveredRecording, tree: Mapping[str, TreeEntry], state: RecordingState | None, asked: _Asked
) -> tuple[tuple[tuple[str, str], ...], tuple[FailureCode, str] | None]:
    """(path, content id) of every input, and the verdict on an absent one, if it matters.

    A sidecar whose content is not here fails nothing: the recording is converted without it, and its id says so, that the
    store is made again when the content comes. A store that was made with the content, which went away afterwards, stays.
    """
    entries = [(path, tree[path]) for path in recording.inputs()]
    inputs = tuple((path, entry.content_id) for path, entry in entries)
    gone = [(path, entry.absent) for path, entry in entries if entry.absent is not None]
    optional = set(recording.sidecars.paths()) if gone else set()
    served = state.served if state and recording.zarr not in asked.lost else None
    if served is None or (
        any(path in optional for path, _ in gone) and served.source != source_fingerprint(dict(inputs))
    ):
        inputs = tuple(
            (path, absent_id(entry.content_id) if entry.absent is not None and path in optional else entry.content_id)
            for path, entry in entries
        )
        gone = [(path, absence) for path, absence in gone if path not in optional]
    if not gone:
        return inputs, None
    path, absence = gone[0]
    return inputs, (absence_code(absence), f"{printable(path)} {ABSENCE_SENTENCES[absence]}")


def _decide(
    recording: DiscoveredRecording,
    fingerprint: str,
    missing: tuple[FailureCode, str] | None,
    state: RecordingState | None,
    asked: _Asked,
) -> _Decision:
    if recording.failure is not None:
        return _Decision(PlannedAction.FAIL, failure=recording.failure)
    served = state.served if state else None
    if state is not None and served is not None and served.source == fingerprint and recording.zarr not in asked.lost:
        return _CARRY if missing else _with_current_source(fingerprint, state, served, asked)
    if missing is not None:
        return _Decision(PlannedAction.FAIL, failure=missing)
    if state is None or not state.discovered:
        return _convert(WhyDue.NEW)
    if state.source != fingerprint:
        return _convert(WhyDue.SOURCE)
    if state.due in {"pending", "converting"}:
        return _pending(state, asked)
    if state.verdict is not None:
        return _judged(state.verdict, asked)
    return _convert(WhyDue.LOST)


def _with_current_source(fingerprint: str, state: RecordingState, served: ServedVersions, asked: _Asked) -> _Decision:
    """A store that is true to its source stays served whatever comes of a rebuild."""
    if asked.mode == "full":
        return _convert(WhyDue.REQUESTED)
    why = asked.differing(served)
    known = state.discovered and state.source == fingerprint
    if known and state.verdict is not None and _judged(state.verdict, asked) is _KEEP:
        return _KEEP
    if known and state.due in {"pending", "converting"} and (why is not None or state.why is WhyDue.REQUESTED):
        return _pending(state, asked)
    return _CARRY if why is None else _convert(why)


def _pending(state: RecordingState, asked: _Asked) -> _Decision:
    if state.due == "converting":
        return _WAIT
    in_time = state.next_attempt_at is None or state.next_attempt_at <= asked.now
    if not in_time and asked.mode == "auto":
        return _WAIT
    return _convert(WhyDue.RETRY if state.attempts else state.why or WhyDue.NEW)


def _judged(verdict: Verdict, asked: _Asked) -> _Decision:
    if asked.mode == "full":
        return _convert(WhyDue.REQUESTED)
    why = asked.differing(verdict)
    if why is not None:
        return _convert(why)
    if verdict.code is FailureCode.UNSUPPORTED_FORMAT and had_no_reader(verdict.detail):
        return _convert(WhyDue.NEW)  # it would have failed at discovery if there still were none
    if verdict.code is FailureCode.STORE_PATH_COLLISION:
        return _convert(WhyDue.NEW)
    if verdict.code is FailureCode.ANNEX_OBJECT_MISSING:
        return _convert(WhyDue.RETRY)
    if verdict.code is FailureCode.RECORDING_TOO_LARGE and asked.has_room_for(verdict.needed_bytes):
        return _convert(WhyDue.RETRY)
    return _KEEP


def _settled(decision: _Decision, recording: DiscoveredRecording, fingerprint: str, state: RecordingState) -> bool:
    if not state.discovered or state.source != fingerprint or state.zarr != recording.zarr:
        return False
    if decision.action is PlannedAction.CARRY:
        return state.due == "none"
    if decision.action is PlannedAction.FAIL:
        verdict = state.verdict
        return verdict is not None and decision.failure == (verdict.code, verdict.detail)
    return decision.action is not PlannedAction.CONVERT
