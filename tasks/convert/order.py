"""What goes to a worker for one attempt, and what comes back. Both are small, frozen and picklable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tasks.sources.protocol import is_absent_id

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from contract.codes import FailureCode, PendingReason
    from contract.index import StoreEntry
    from contract.store import Provenance
    from tasks.bids.recording import DiscoveredRecording
    from tasks.formats.protocol import Route
    from tasks.sources.protocol import SourceAddress

__all__ = ["AttemptReport", "ConversionOrder", "ConvertedStore", "Fingerprint", "ObjectDigest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """The four columns that make a store current (ARCHITECTURE.md, "current")."""

    source: str
    options: str
    engine: str
    biosigio: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionOrder:
    """One attempt at one recording.

    Parameters
    ----------
    inputs
        (path, content id) of everything that decides the store, as planned; checked again before publishing. Sidecars
        whose content is absent have an ``absent_id``.
    permitted_bytes
        What admission charges and the child is limited to.
    source
        Where the inputs are, and in which state (``tasks.sources.open_source``).
    target
        URL of the target (``infra.storage.open_target``).
    floor_bytes
        Least need by the formula alone, never a learnt value; 0 when unknown. Only it can make a recording too large.
    fetched_bytes
        Bytes that must be brought from afar before it can be converted; 0 where the source's files are read where they lie.
    expected_s
        How long its conversion will take, roughly; it decides the order and nothing else.
    updated_utc
        ``YYYY-MM-DDTHH:MM:SSZ``, the run's start, written into the store entry.
    """

    attempt_id: UUID
    recording_id: int
    run_number: int
    dataset_id: str
    recording: DiscoveredRecording
    source: SourceAddress
    inputs: tuple[tuple[str, str], ...]
    fingerprint: Fingerprint
    provenance: Provenance
    target: str
    route: Route
    projected_bytes: int
    permitted_bytes: int
    scratch_bytes: int
    timeout_s: float
    updated_utc: str
    floor_bytes: int = 0
    fetched_bytes: int = 0
    expected_s: float = 1.0

    def present(self) -> dict[str, str]:
        """Content id of every input that is to be read, by its path."""
        return {path: content_id for path, content_id in self.inputs if not is_absent_id(content_id)}


@dataclass(frozen=True, slots=True)
class ObjectDigest:
    """Size and SHA-256 (hex) of one object of a store."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedStore:
    """A finished, gated store on scratch: what the child hands back.

    Parameters
    ----------
    entry
        The index entry, as it will be published.
    objects
        Digest of every object by its name relative to the store.
    events
        Rows for events.parquet, one Arrow IPC stream (``tasks.events.rows``); None without an events.tsv.
    stage_seconds
        Wall seconds per stage: read, convert, attributes, gate, digest.
    notes
        What is to be said about the recording and its store, one sentence each; kept with the attempt.
    quantisation
        What int16 cost each channel, packed (``tasks.convert.loss``); kept with the attempt.
    """

    entry: StoreEntry
    objects: Mapping[str, ObjectDigest]
    events: bytes | None
    events_row_count: int
    duration_s: float
    stage_seconds: Mapping[str, float]
    notes: tuple[str, ...] = ()
    quantisation: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReport:
    """How an attempt ended, as the flow sees it. State and history are already in the database.

    ``events_unusable``: the store has an events.tsv, and no row of it could be given a sample. ``again``: what ended it was
    nothing of the recording's own and has perhaps passed, so that the run may try it again.
    """

    attempt_id: UUID
    recording_id: int
    path: str
    outcome: str
    code: FailureCode | None = None
    reason: PendingReason | None = None
    counted: bool = False
    error: str | None = None
    measured_bytes: int | None = None
    events_unusable: bool = False
    again: bool = False
    stage_seconds: Mapping[str, float] = field(default_factory=dict)
