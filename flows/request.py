"""What a run is asked, what it tells while it runs, and what it says at the end: the values between doors and flows."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from flows.stop import StopKind, StopSignal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contract.codes import FailureCode, PendingReason
    from tasks.convert.order import AttemptReport

__all__ = [
    "DEFAULT_PRIORITY",
    "MODES",
    "REBUILD_COLUMNS",
    "GaveUp",
    "MemoryInUse",
    "Mode",
    "Note",
    "Preview",
    "PreviewRow",
    "ProgressEvent",
    "Published",
    "ReconvertRequest",
    "RecordingEnded",
    "RecordingStarted",
    "RunSummary",
    "StageChanged",
    "Started",
    "StopKind",
    "StopSignal",
    "exit_code",
]

Mode = Literal["auto", "full", "retry-pending"]
MODES: tuple[Mode, ...] = ("auto", "full", "retry-pending")
_UNSERVED_CODE = 5
_STOPPED_CODES = {"SIGINT": 130, "SIGTERM": 143}
DEFAULT_PRIORITY = 10
"""Weight of a run that says nothing about it, of 1 to 100."""
REBUILD_COLUMNS = ("options", "engine", "biosigio")
"""Columns of currency that ``--rebuild-on`` may name; a changed source always rebuilds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconvertRequest:
    """What somebody asks of one run over one dataset.

    Parameters
    ----------
    source, target
        As given by the caller: a folder or a URL.
    dataset_id
        None: the folder's name when it fits, else the one registered for this source, else the next free ``xx`` id.
    workers
        Conversions side by side; None: as many as cores and memory allow.
    memory_bytes
        Memory that all conversions may use together; None: what the host or its cgroup has, less headroom.
    priority
        Weight of this run among those that want the same workers, 1 to 100: twice as much gets twice as much of them.
    rebuild_on
        Members of ``REBUILD_COLUMNS`` whose change rebuilds a store.
    hash_signals
        Read the bytes of signal files to tell whether they changed, not only size and times.
    allow_dirty
        Convert a git checkout with uncommitted changes; its commit is then the tree hash.
    commit
        The commit, branch or tag that a repository is read at; None reads the files of a folder as they lie there.
    annex
        ``s3://bucket/prefix`` with the contents that the local annex does not hold.
    at
        The moment that a bucket with versions is read at.
    public
        Say in the index that anybody can read the target, after making sure of it.
    """

    source: str
    target: str
    dataset_id: str | None = None
    mode: Mode = "auto"
    workers: int | None = None
    memory_bytes: int | None = None
    priority: int = DEFAULT_PRIORITY
    rebuild_on: frozenset[str] = frozenset({"options", "engine"})
    hash_signals: bool = False
    allow_dirty: bool = False
    commit: str | None = None
    annex: str | None = None
    at: str | None = None
    public: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewRow:
    """What the next convert would do with one recording.

    Parameters
    ----------
    action
        ``convert``, ``carry``, ``wait``, ``keep_failed`` or ``fail``: the plan's action, in lower case.
    why
        Value of ``contract.codes.WhyDue`` for a conversion; code or reason for what fails or waits.
    changed
        Inputs that were added, removed or changed since the store was made, when the source is the reason.
    copy_of
        For a recording that was only renamed: its former path, whose store is copied instead of converting.
    projected_bytes, scratch_bytes
        Peak memory and scratch disk of the conversion; None for anything but a conversion.
    floor_bytes
        What the formula alone projects; None where the header is not known.
    kind
        Format and route, such as ``edf, streamed``.
    basis
        What ``projected_bytes`` rests on: ``learnt``, ``formula``, ``size`` or ``floor``.
    learnt_factor, learnt_attempts
        For ``learnt``: what the formula was multiplied with, and how many attempts taught it.
    """

    path: str
    action: str
    why: str | None = None
    changed: tuple[str, ...] = ()
    copy_of: str | None = None
    size_bytes: int = 0
    projected_bytes: int | None = None
    scratch_bytes: int | None = None
    floor_bytes: int | None = None
    kind: str | None = None
    basis: str | None = None
    learnt_factor: float | None = None
    learnt_attempts: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What the next convert of a dataset would do. Making one writes nothing.

    Parameters
    ----------
    dataset_id
        The id that convert would use.
    is_new
        Whether that id is not registered yet.
    rows
        Every discovered recording, by path.
    dropped
        Recordings that the state knows and the source has no more.
    documents_current
        Whether index, manifest, events and catalog would stay as they are.
    """

    dataset_id: str
    is_new: bool
    source: str
    target: str
    source_commit: str
    rows: tuple[PreviewRow, ...]
    dropped: tuple[str, ...] = ()
    documents_current: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The run holds its dataset and knows what there is to do; ``bytes`` is the size of what will be converted."""

    dataset_id: str
    run_number: int
    discovered: int
    to_convert: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StageChanged:
    """The run does something else now: a short phrase such as ``starting the workers``."""

    stage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingStarted:
    """One recording was handed to a worker, where it may wait in line for a slot. ``bytes`` is its size at the source."""

    path: str
    bytes: int
    permitted_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingEnded:
    """An attempt ended, however."""

    report: AttemptReport


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryInUse:
    """Memory charged to running conversions, of what they may use together."""

    in_use_bytes: int
    allowed_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Documents reached the target; ``kind`` is ``interim``, ``final`` or ``catalog``."""

    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A sentence that the person at the terminal should read."""

    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GaveUp(Note):
    """The run ends before its work is done because no machine takes what waits; the sentence says why."""


ProgressEvent = Started | StageChanged | RecordingStarted | RecordingEnded | MemoryInUse | Published | Note


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """How a run ended.

    Parameters
    ----------
    run_number
        None when there was nothing to do and no run was opened.
    discovered, stores, failures, pending
        The dataset's coverage after the run; the first is the sum of the others.
    converted, carried
        Stores made by this run, and stores left as they were.
    failed_by_code, pending_by_reason
        Paths of every failure and every pending recording of the dataset, sorted.
    changed
        Whether this run wrote anything to the target.
    published
        Whether what the target serves is the state described here. True when nothing had to be written.
    documents
        Address or path of index, manifest, events and catalog, by those names.
    stopped
        The signal that ended the run early.
    unserved
        Why no machine took what was due, as a sentence, when the run ended early for that or converted nothing.
    """

    dataset_id: str
    target: str
    run_number: int | None
    discovered: int
    stores: int
    failures: int
    pending: int
    converted: int
    carried: int
    failed_by_code: Mapping[FailureCode, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    pending_by_reason: Mapping[PendingReason, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    changed: bool
    published: bool
    documents: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    notes: tuple[str, ...] = ()
    seconds: float
    stopped: StopKind | None = None
    unserved: str | None = None


def exit_code(summary: RunSummary, *, strict: bool = False) -> int:
    """What the process of a run answers to whoever started it.

    130 or 143 after a soft stop; 1 when what is served is not what the state says; 5 when no machine took what was due; 3 with ``strict`` and anything
    failed or pending; else 0.
    """
    if summary.stopped is not None:
        return _STOPPED_CODES[summary.stopped]
    if not summary.published:
        return 1
    if summary.unserved is not None:
        return _UNSERVED_CODE
    return 3 if strict and (summary.failures or summary.pending) else 0
