"""Corrects recordings that were made with MEGIN's internal active shielding, with the site's own calibration files."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from contract.codes import FailureCode
from contract.errors import NotNow, RecordingFailed
from contract.index import SssEntry
from tasks.convert.conditions import is_machine_condition
from tasks.formats.content import require_content

if TYPE_CHECKING:
    from pathlib import Path

    from tasks.bids.recording import DiscoveredRecording

__all__ = ["corrected"]

_METHOD = "maxwell_filter"


def corrected(recording: DiscoveredRecording, source: Path, work: Path) -> tuple[Path, SssEntry]:
    """A corrected FIF below ``work`` and what is disclosed about it.

    Raises
    ------
    RecordingFailed
        ``maxshield_uncalibrated`` when one of the two calibration files is missing or unusable: nothing uncorrected,
        and nothing corrected without them, is ever served.
    MemoryError, OSError
        Conditions of the machine.
    """
    calibration, crosstalk = recording.sidecars.calibration, recording.sidecars.crosstalk
    if calibration is None or crosstalk is None:
        missing = " and ".join(
            n for n, p in (("fine-calibration", calibration), ("cross-talk", crosstalk)) if p is None
        )
        raise RecordingFailed(FailureCode.MAXSHIELD_UNCALIBRATED, detail=f"no {missing} file applies to this recording")
    for path in (calibration, crosstalk):
        _require(source / path)
    target = work / "sss" / "sss_meg.fif"
    target.parent.mkdir()
    version = _filter(source / recording.path, source / calibration, source / crosstalk, target)
    entry = SssEntry(
        applied=True,
        method=_METHOD,
        calibration=calibration.rsplit("/", 1)[-1],
        cross_talk=crosstalk.rsplit("/", 1)[-1],
        mne_version=version,
    )
    return target, entry


def _require(path: Path) -> None:
    try:
        require_content(path)
    except NotNow:
        raise
    except RecordingFailed as error:
        raise RecordingFailed(FailureCode.MAXSHIELD_UNCALIBRATED, detail=error.detail) from error


def _filter(recording: Path, calibration: Path, crosstalk: Path, target: Path) -> str:
    import mne

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # MNE warns of shielded data, which is why we are here
            raw = mne.io.read_raw_fif(recording, allow_maxshield="yes", preload=True, verbose="ERROR")
            # An empty room has no head, so its moments are expanded about the helmet instead.
            frame = "head" if raw.info["dev_head_t"] is not None else "meg"
            clean = mne.preprocessing.maxwell_filter(
                raw, calibration=calibration, cross_talk=crosstalk, coord_frame=frame, verbose="ERROR"
            )
            clean.save(target, verbose="ERROR")
    except (ValueError, RuntimeError, KeyError, OSError) as error:
        if is_machine_condition(error):
            raise
        detail = f"the correction failed: {type(error).__name__}: {error}"
        raise RecordingFailed(FailureCode.MAXSHIELD_UNCALIBRATED, detail=detail) from error
    return str(mne.__version__)
