"""What is answered about datasets and recordings, as models that OpenAPI shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from api.codes import ErrorCode
from contract.codes import FAILURE_SENTENCES, PENDING_SENTENCES, FailureCode, PendingReason
from contract.layout import store_url
from contract.redact import redact
from contract.times import utc_stamp

if TYPE_CHECKING:
    from datetime import datetime

    from db.listing import ListedDataset
    from db.public_recordings import PublicAttempt, PublicRecording
    from infra.storage.protocol import Target

__all__ = [
    "AttemptBody",
    "DatasetBody",
    "DatasetsBody",
    "ErrorBody",
    "OneDatasetBody",
    "OneRecordingBody",
    "RecordingBody",
    "RecordingsBody",
    "attempt_body",
    "dataset_body",
    "recording_body",
    "sentence_of",
]

_DATASET: dict[str, Any] = {
    "dataset_id": "xx000001",
    "name": "Resting state",
    "concept_doi": "10.5072/example",
    "license": "CC0",
    "hed_version": None,
    "modalities": "eeg",
    "tasks": "rest",
    "participants": 24,
    "converting": False,
    "zarr_status": "ready",
    "zarr_store_count": 48,
    "zarr_discovered_count": 50,
    "zarr_failure_count": 1,
    "zarr_pending_count": 1,
    "zarr_coverage": 0.96,
    "zarr_converted_at": "2026-11-30T08:00:00Z",
    "zarr_source_commit": "0123456789abcdef0123456789abcdef01234567",
    "zarr_errors": 1,
    "zarr_deterministic": 1,
    "zarr_failed_at": None,
    "zarr_index_url": "https://zarr.example.org/xx000001/zarr/index.json",
    "zarr_verify_status": "verified",
    "zarr_verified_at": "2026-11-30T09:00:00Z",
    "total_recording_duration": 14400.0,
    "recording_count": 49,
    "recordings_unavailable": 1,
}
_RECORDING: dict[str, Any] = {
    "path": "sub-01/eeg/sub-01_task-rest_eeg.edf",
    "zarr": "sub-01/eeg/sub-01_task-rest_eeg.zarr",
    "state": "failed",
    "due": "failed",
    "code": "corrupt_or_truncated",
    "reason": "The data file of this recording is truncated or corrupt.",
    "detail": "ValueError: the file is shorter than its header says",
    "attempts": 0,
}


class ErrorBody(BaseModel):
    """Every error."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "example": {
                "code": "not_found",
                "message": "Not found",
                "detail": None,
                "request_id": "4c5a1f0e9d8b4b6f8a7c6d5e4f3a2b1c",
                "error": "Not found",
            }
        },
    )
    code: ErrorCode = Field(description="A stable word.")
    message: str = Field(description="A sentence for people.")
    detail: Any = Field(default=None, description="What else a program can use.")
    request_id: str | None = Field(description="By which the server's log tells the request; also in X-Request-Id.")
    error: str = Field(description="The message once more, for older readers.")


class DatasetBody(BaseModel):
    """A dataset as everybody may see it. What is unknown is null."""

    model_config = ConfigDict(json_schema_extra={"example": _DATASET})
    dataset_id: str
    name: str | None
    concept_doi: str | None
    license: str | None
    hed_version: str | None
    modalities: str = Field(description="Separated by commas.")
    tasks: str = Field(description="Separated by commas.")
    participants: int | None
    converting: bool = Field(description="A run of this installation works on it now.")
    zarr_status: str | None = Field(description="pending, ready, failed, or null before the first conversion.")
    zarr_store_count: int | None
    zarr_discovered_count: int | None
    zarr_failure_count: int | None
    zarr_pending_count: int | None
    zarr_coverage: float | None = Field(description="Stores of what was discovered, 0 to 1.")
    zarr_converted_at: str | None
    zarr_source_commit: str | None
    zarr_errors: int | None
    zarr_deterministic: int | None = Field(description="1 when every failure is a verdict on the data, else 0.")
    zarr_failed_at: str | None
    zarr_index_url: str | None = Field(description="Null unless the dataset is ready.")
    zarr_verify_status: str | None
    zarr_verified_at: str | None
    total_recording_duration: float | None = Field(description="Seconds.")
    recording_count: int | None = Field(description="Recordings with a store or a verdict.")
    recordings_unavailable: int | None = Field(description="Recordings with a verdict.")


class OneDataset(DatasetBody):
    """A dataset with everything that is known of it."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                **_DATASET,
                "doi": "10.5072/example",
                "citation": None,
                "has_hed": 0,
                "registered_at": "2026-11-01T00:00:00Z",
                "zarr_index_etag": "5d41402abc4b2a76b9719d911017c592",
                "zarr_data_failures": None,
                "zarr_pool_breaks": None,
                "zarr_error": None,
            }
        }
    )
    doi: str | None
    citation: str | None
    has_hed: int | None
    registered_at: str
    zarr_index_etag: str | None
    zarr_data_failures: dict[str, Any] | None = Field(
        description="Summary of a reported callback: counts and pointers."
    )
    zarr_pool_breaks: int | None
    zarr_error: str | None = Field(
        description="Why the last run here published nothing; null when it did. What stood before it stands."
    )


class DatasetsBody(BaseModel):
    """A part of the list of datasets."""

    datasets: list[DatasetBody]
    count: int = Field(description="Datasets in this answer.", examples=[50])
    total_count: int = Field(description="Datasets that fit.", examples=[625])
    limit: int = Field(examples=[50])
    offset: int = Field(examples=[0])


class OneDatasetBody(BaseModel):
    """One dataset."""

    dataset: OneDataset


class RecordingBody(BaseModel):
    """A recording and what became of it."""

    model_config = ConfigDict(json_schema_extra={"example": _RECORDING})
    path: str
    zarr: str
    state: str = Field(description="served, failed, pending or converting.")
    due: str = Field(description="What is due of it: none, pending, converting or failed.")
    why_due: str | None = None
    code: str | None = None
    reason: str | None = Field(default=None, description="A sentence for people.")
    pending_reason: str | None = None
    detail: str | None = None
    attempts: int
    last_error: str | None = None
    last_attempt_at: str | None = None
    next_attempt_at: str | None = None
    format: str | None = None
    modality: str | None = None
    size_bytes: int | None = None
    url: str | None = Field(default=None, description="Of its store, when it is served.")


class RecordingsBody(BaseModel):
    """A part of a dataset's recordings, by path."""

    dataset_id: str
    recordings: list[RecordingBody]
    count: int = Field(examples=[50])
    next: str | None = Field(description="The `after` of the next part; null at the end.")


class AttemptBody(BaseModel):
    """One attempt at a recording."""

    run: int
    outcome: str
    counted: bool
    code: str | None
    reason: str | None
    error: str | None
    route: str
    projected_bytes: int
    permitted_bytes: int
    measured_bytes: int | None
    started_at: str
    ended_at: str | None
    stage_seconds: dict[str, float]
    notes: list[str]
    engine_version: str
    biosigio_version: str


class OneRecordingBody(BaseModel):
    """A recording with its attempts."""

    dataset_id: str
    recording: RecordingBody
    attempts: list[AttemptBody] = Field(description="The last hundred, the newest first.")


def _at(moment: datetime | None) -> str | None:
    return None if moment is None else utc_stamp(moment)


def _bit(flag: bool | None) -> int | None:
    return None if flag is None else int(flag)


def dataset_body(row: ListedDataset, target: Target) -> OneDataset:
    """A dataset as it is answered; a list leaves the last fields out."""
    is_ready = row.zarr_status == "ready"
    judged = None if row.is_reported or row.store_count is None else row.store_count + (row.failure_count or 0)
    return OneDataset(
        dataset_id=row.dataset_id,
        name=row.name,
        concept_doi=row.doi,
        license=row.license,
        hed_version=row.hed_version,
        modalities=",".join(row.modalities),
        tasks=",".join(row.tasks),
        participants=row.subject_count,
        converting=row.converting,
        zarr_status=row.zarr_status,
        zarr_store_count=row.store_count,
        zarr_discovered_count=row.discovered_count,
        zarr_failure_count=row.failure_count,
        zarr_pending_count=row.pending_count,
        zarr_coverage=round((row.store_count or 0) / row.discovered_count, 6) if row.discovered_count else None,
        zarr_converted_at=_at(row.converted_at),
        zarr_source_commit=row.source_commit,
        zarr_errors=row.errors,
        zarr_deterministic=_bit(row.deterministic),
        zarr_failed_at=_at(row.failed_at),
        zarr_index_url=f"{target.addresses(row.dataset_id).contract_base}index.json" if is_ready else None,
        zarr_verify_status=row.verify_status,
        zarr_verified_at=_at(row.verified_at),
        total_recording_duration=row.duration_s,
        recording_count=judged,
        recordings_unavailable=None if row.is_reported else row.failure_count,
        doi=row.doi,
        citation=row.citation,
        has_hed=_bit(row.has_hed),
        registered_at=utc_stamp(row.registered_at),
        zarr_index_etag=row.index_etag,
        zarr_data_failures=None if row.data_failures is None else dict(row.data_failures),
        zarr_pool_breaks=row.pool_breaks,
        zarr_error=redact(row.error),
    )


def sentence_of(recording: PublicRecording) -> str | None:
    """Why there is no store of it, for people; None when there is one."""
    if recording.code is not None:
        return FAILURE_SENTENCES[FailureCode(recording.code)]
    return None if recording.reason is None else PENDING_SENTENCES[PendingReason(recording.reason)]


def recording_body(recording: PublicRecording, base: str | None = None) -> dict[str, Any]:
    """A recording as it is answered. ``base`` is the contract base of its dataset, for the address of its store."""
    is_served = recording.state == "served"
    body = RecordingBody(
        path=recording.path,
        zarr=recording.zarr,
        state=recording.state,
        due=recording.due,
        why_due=recording.why,
        code=recording.code,
        reason=sentence_of(recording),
        pending_reason=recording.reason,
        detail=recording.detail and redact(recording.detail),
        attempts=recording.attempts,
        last_error=recording.last_error and redact(recording.last_error),
        last_attempt_at=_at(recording.last_attempt_at),
        next_attempt_at=_at(recording.next_attempt_at),
        format=recording.format,
        modality=recording.modality,
        size_bytes=recording.size_bytes,
        url=store_url(base, recording.zarr) if is_served and base is not None else None,
    )
    return body.model_dump()


def attempt_body(attempt: PublicAttempt) -> AttemptBody:
    """An attempt as it is answered: its error without paths and secrets, nothing of the machine."""
    return AttemptBody(
        run=attempt.run_number,
        outcome=attempt.outcome,
        counted=attempt.counted,
        code=attempt.code,
        reason=attempt.reason,
        error=attempt.error and redact(attempt.error),
        route=attempt.route,
        projected_bytes=attempt.projected_bytes,
        permitted_bytes=attempt.permitted_bytes,
        measured_bytes=attempt.measured_bytes,
        started_at=utc_stamp(attempt.started_at),
        ended_at=_at(attempt.ended_at),
        stage_seconds=dict(attempt.stage_seconds),
        notes=[redact(note) for note in attempt.notes],
        engine_version=attempt.engine,
        biosigio_version=attempt.biosigio,
    )
