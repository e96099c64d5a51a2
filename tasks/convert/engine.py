"""The calls into biosigIO: every choice is stated, nothing is looked for beside the file."""

from __future__ import annotations

import contextlib
import logging
import shutil
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contract.codes import FailureCode
from contract.errors import RecordingFailed, ZarrmillError
from contract.rates import RATE_CAPS_HZ
from tasks.convert.conditions import is_machine_condition
from tasks.formats.memory import READ_CHUNK_SECONDS
from tasks.formats.protocol import Route

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd

__all__ = ["EngineInput", "write_store"]

_log = logging.getLogger("zarrmill.convert")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInput:
    """What biosigIO is given.

    Parameters
    ----------
    target
        The file or folder to read.
    channels, events
        Parsed sidecars; without an events.tsv an empty frame, so that markers inside the file are never used instead.
    modality
        From the BIDS suffix, put on every channel so that a reference or trigger lands in the recording's one group;
        None leaves each channel's own.
    scratch
        An existing folder for the streaming route's mapped files.
    """

    target: Path
    source_format: str
    route: Route
    modality: str | None
    channels: pd.DataFrame | None
    events: pd.DataFrame
    scratch: Path


def write_store(given: EngineInput, store: Path) -> None:
    """Convert ``given`` into a new store.

    Raises
    ------
    biosigio.exceptions.BiosigIOError
        The file cannot be converted; the code says why.
    RecordingFailed
        ``empty_recording`` when no signal was found.
    OSError, MemoryError, RuntimeError
        Conditions of the machine, as they came.
    """
    import zarr

    with _typed_errors(given), _quiet(), zarr.config.set({"async.concurrency": 1, "threading.max_workers": 1}):
        if given.route is Route.IN_MEMORY or not _streamed(given, store):
            _hold(given, store)


def _streamed(given: EngineInput, store: Path) -> bool:
    """Whether the file could be streamed; mixed rates that its header did not show can only be read in memory."""
    from biosigio.exceptions import MixedSamplingRateError

    try:
        _stream(given, store)
    except MixedSamplingRateError:
        _log.info("%s has mixed rates that its header does not show and is read in memory", given.target.name)
        shutil.rmtree(store, ignore_errors=True)
        return False
    return True


def _stream(given: EngineInput, store: Path) -> None:
    from biosigio.exporters.zarr_stream import stream_to_zarr
    from biosigio.importers.meg import _patch_ctf_coil_aliases

    # Only the in-memory importer teaches MNE the other spellings of CTF's head coils (one dataset has 380 such files).
    _patch_ctf_coil_aliases()
    stream_to_zarr(
        str(given.target),
        str(store),
        force_modality=given.modality.upper() if given.modality else None,
        modality_rates={name: int(cap) for name, cap in RATE_CAPS_HZ.items()},
        events_df=given.events,
        bids_channels="off" if given.channels is None else given.channels,
        recording_metadata={"source_format": given.source_format},
        read_chunk_seconds=READ_CHUNK_SECONDS,
        scratch_dir=str(given.scratch),
        exclude_subject_info=True,
    )


def _hold(given: EngineInput, store: Path) -> None:
    from biosigio import Recording

    recording = Recording.from_file(
        str(given.target),
        importer=given.source_format,
        bids_channels="off" if given.channels is None else given.channels,
        mixed_rate="resample",
    )
    if given.modality:
        for channel in recording.channels.values():
            channel["modality"] = given.modality.upper()
    recording.to_zarr(
        str(store),
        modality_rates={name: int(cap) for name, cap in RATE_CAPS_HZ.items()},
        events_df=given.events,
        exclude_subject_info=True,
    )


@contextlib.contextmanager
def _typed_errors(given: EngineInput) -> Iterator[None]:
    """Give every error of a reader biosigIO's type; conditions of the machine pass as they are.

    biosigIO's streaming route passes on whatever MNE raises (ten builtin types were met), so that a broken file would
    look like a fault of this machine and be tried five times.
    """
    from biosigio.exceptions import BiosigIOError, classify_read_error

    try:
        yield
    except (ZarrmillError, BiosigIOError, ImportError):
        raise
    except Exception as error:  # readers raise whatever they like; it is typed or raised below
        if is_machine_condition(error) or not (given.target.exists() and given.scratch.exists()):
            raise  # somebody took the files away while they were read
        if "no signals loaded" in str(error).lower():
            raise RecordingFailed(FailureCode.EMPTY_RECORDING, detail="no signal was found in the file") from error
        raise classify_read_error(error, given.target.name) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep readers' warnings out of the command's output; they are logged."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        _log.debug("reader: %s", warning.message)
