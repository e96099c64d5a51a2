"""What a plan says: values only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from db.apply import PlannedAction, PlannedRow
from tasks.sources.protocol import present_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contract.codes import FailureCode, WhyDue
    from tasks.bids.recording import DiscoveredRecording

__all__ = ["CopyOf", "InputChange", "Plan", "PlannedAction", "PlannedRecording", "Total"]


@dataclass(frozen=True, slots=True)
class InputChange:
    """One file that differs from what the store was made from. As text: ``sub-01_channels.tsv changed``.

    ``identified otherwise``: the two content ids are of different kinds, as when a folder is read at a commit for the first
    time, so they do not tell whether the content is the same.
    """

    path: str
    how: Literal["added", "changed", "identified otherwise", "removed"]

    def __str__(self) -> str:
        return f"{self.path.rpartition('/')[2]} {self.how}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOf:
    """The recording, gone from the source, whose store a renamed one takes."""

    recording_id: int
    path: str
    zarr: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRecording:
    """What is to happen with one discovered recording.

    Parameters
    ----------
    inputs
        (path, content id) of everything that decides the store, sorted.
    fingerprint
        ``source_fingerprint`` of the inputs.
    action
        CONVERT, CARRY (its store is current), WAIT (pending, not yet due), KEEP_FAILED (its verdict stands), FAIL (a new or
        repeated verdict that needs no attempt).
    recording_id
        None for a recording that the database does not know.
    why
        For CONVERT: what made it due.
    failure
        For FAIL: code and detail.
    settled
        The database already says exactly this.
    source_changed
        Known, and its inputs are others than when it was last planned.
    changed
        Which inputs, once ``Plan.with_changes`` was told the former ones.
    copy_of
        For a CONVERT that need only copy a store; None for any other.
    """

    recording: DiscoveredRecording
    inputs: tuple[tuple[str, str], ...]
    fingerprint: str
    action: PlannedAction
    recording_id: int | None = None
    why: WhyDue | None = None
    failure: tuple[FailureCode, str] | None = None
    settled: bool = False
    source_changed: bool = False
    changed: tuple[InputChange, ...] = ()
    copy_of: CopyOf | None = None

    def row(self) -> PlannedRow:
        """The row that ``db.apply.apply_plan`` takes."""
        known = self.recording_id is not None and not self.source_changed
        return PlannedRow(
            path=self.recording.path,
            zarr=self.recording.zarr,
            format=self.recording.format,
            modality=self.recording.modality,
            size_bytes=self.recording.size_bytes,
            source=self.fingerprint,
            inputs=None if known else self.inputs,
            action=self.action,
            why=self.why,
            code=self.failure[0] if self.failure else None,
            detail=self.failure[1] if self.failure else None,
        )


@dataclass(frozen=True, slots=True)
class Total:
    """Recordings and their bytes at the source."""

    recordings: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the next run does with a dataset.

    Parameters
    ----------
    recordings
        Every discovered recording, once, by path.
    dropped
        Paths that the database counts as discovered and the source has no more.
    """

    recordings: tuple[PlannedRecording, ...]
    dropped: tuple[str, ...] = ()

    def of(self, action: PlannedAction) -> tuple[PlannedRecording, ...]:
        """The recordings with one action, by path."""
        return tuple(planned for planned in self.recordings if planned.action is action)

    def totals(self) -> dict[PlannedAction, Total]:
        """Recordings and bytes by action; every action is named."""
        return {
            action: Total(len(those), sum(planned.recording.size_bytes for planned in those))
            for action in PlannedAction
            for those in (self.of(action),)
        }

    @property
    def nothing_to_do(self) -> bool:
        """Whether carrying the plan out would change nothing at all, in the database or at the target."""
        return not self.dropped and all(planned.settled for planned in self.recordings)

    def rows(self) -> Iterable[PlannedRow]:
        """The rows that ``db.apply.apply_plan`` takes."""
        return (planned.row() for planned in self.recordings)

    def source_changed_ids(self) -> tuple[int, ...]:
        """Database ids of the recordings whose inputs changed: ask ``db.recordings.inputs`` for the former ones."""
        return tuple(
            planned.recording_id
            for planned in self.recordings
            if planned.recording_id is not None and planned.source_changed
        )

    def with_changes(self, former: Mapping[int, Iterable[tuple[str, str]]]) -> Plan:
        """The plan with the changed files named.

        Parameters
        ----------
        former
            Database id -> (path, content id) of its former inputs.
        """
        return replace(self, recordings=tuple(_explained(planned, former) for planned in self.recordings))


def _explained(planned: PlannedRecording, former: Mapping[int, Iterable[tuple[str, str]]]) -> PlannedRecording:
    if planned.recording_id is None or planned.recording_id not in former:
        return planned
    before, after = dict(former[planned.recording_id]), dict(planned.inputs)
    changes = [InputChange(path, "added") for path in after.keys() - before.keys()]
    changes += [InputChange(path, "removed") for path in before.keys() - after.keys()]
    for path in after.keys() & before.keys():
        if after[path] != before[path]:
            same_kind = _kind(before[path]) == _kind(after[path])
            changes.append(InputChange(path, "changed" if same_kind else "identified otherwise"))
    return replace(planned, changed=tuple(sorted(changes, key=lambda change: change.path)))


def _kind(content_id: str) -> str:
    return present_id(content_id).partition(":")[0]
