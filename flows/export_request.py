"""What an export of several recordings is asked, and what it tells: the values between doors and the flow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.export.asked import ExportAsked
    from tasks.export.recording import Exported

__all__ = ["EXPORT_FORMAT", "EXPORT_VERSION", "ExportReport", "ExportRequest", "NotExported"]

EXPORT_FORMAT = "zarrmill-export"
EXPORT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """What is exported, from where, and to where.

    Parameters
    ----------
    place
        The folder, bucket or archive that serves the dataset.
    recordings
        Paths in the dataset, or those of stores; empty for every recording that is served.
    output
        A file for one recording when ``is_file``, else a folder, which is made.
    source, commit, annex, at
        Where images are read from, as ``SourceAddress`` has it; without a source, what the dataset is registered with.
    """

    dataset_id: str
    place: str
    recordings: tuple[str, ...]
    asked: ExportAsked
    output: Path
    is_file: bool
    source: str | None = None
    commit: str | None = None
    annex: str | None = None
    at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotExported:
    """A recording of which no file was written, and why."""

    recording: str
    code: str
    sentence: str
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """What became of an export.

    Parameters
    ----------
    not_reached
        Recordings that it did not come to, because it was asked to stop.
    """

    dataset_id: str
    place: str
    source_commit: str
    exported: tuple[Exported, ...]
    failed: tuple[NotExported, ...]
    not_reached: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """It all, in a sentence."""
        trials = sum(one.n_trials for one in self.exported)
        dropped = sum(one.dropped for one in self.exported)
        told = f"{len(self.exported)} files with {trials} trials written, {dropped} windows dropped, {len(self.failed)} recordings failed"
        return told + (f", {len(self.not_reached)} not reached" if self.not_reached else "")
