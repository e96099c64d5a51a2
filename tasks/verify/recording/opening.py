"""The reading of a recording, by the name of its format."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from contract.redact import redact
from tasks.verify.recording.brainvision import BrainVisionReading
from tasks.verify.recording.edf import EdfReading
from tasks.verify.recording.eeglab import EeglabReading
from tasks.verify.recording.vneurotk import VneurotkReading
from tasks.verify.recording.with_mne import MneReading
from tasks.verify.report import NoVerdict, Unverifiable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tasks.verify.recording.protocol import Reading

__all__ = ["open_recording"]


@contextmanager
def open_recording(path: Path, format_name: str, work: Path) -> Iterator[Reading]:
    """The recording at ``path``; ``work`` is an empty folder.

    Raises
    ------
    Unverifiable
        It cannot be read without the converter's own readers.
    NoVerdict
        The machine could not read it.
    """
    try:
        reading = _opened(path, format_name, work)
    except (Unverifiable, NoVerdict):
        raise
    except (OSError, MemoryError) as error:
        raise NoVerdict(f"the source could not be read: {type(error).__name__}") from error
    except Exception as error:  # readers raise whatever they like at a file that they cannot read
        line = redact(f"{type(error).__name__}: {error}".partition("\n")[0])
        raise Unverifiable(f"the source cannot be read a second way: {line}") from error
    try:
        yield reading
    finally:
        reading.close()


def _opened(path: Path, format_name: str, work: Path) -> Reading:
    match format_name:
        case "edf":
            return EdfReading(path, 2)
        case "bdf":
            return EdfReading(path, 3)
        case "brainvision":
            return BrainVisionReading(path)
        case "eeglab":
            return EeglabReading(path)
        case "vneurotk":
            return VneurotkReading(path)
    return MneReading(path, format_name, work)
