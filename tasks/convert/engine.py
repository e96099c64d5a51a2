"""The calls into biosigIO: every choice is stated, nothing is looked for beside the file."""

from __future__ import annotations

import contextlib
import logging
import threading
import warnings
from typing import TYPE_CHECKING

from contract.codes import FailureCode
from contract.errors import RecordingFailed, ZarrmillError
from tasks.convert.conditions import is_machine_condition
from tasks.convert.groups import written_groups
from tasks.convert.merge import merged
from tasks.convert.nodes import AnotherRelease
from tasks.convert.pieces import Part
from tasks.formats.edf_split import split_by_rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tasks.convert.documents import Documents
    from tasks.convert.pieces import EngineInput, Piece, WrittenGroup

__all__ = ["write_chunks"]

_log = logging.getLogger("zarrmill.convert")

_ONE_AT_A_TIME = threading.Lock()
"""Two conversions of one EDF in one process: its library refuses the second reader, and gives the first junk from then on
(99.99 % of the samples of a store that looked right). Threads would win a tenth; processes are what runs side by side."""


def write_chunks(given: EngineInput, store: Path) -> tuple[Documents, tuple[WrittenGroup, ...]]:
    """Convert ``given`` into the chunks of a new store; it is one when the documents that are given back have been written.

    biosigIO writes one group at a time, each for one modality and one native rate; they are put under one root, in the
    order of the file's channels.

    Raises
    ------
    biosigio.exceptions.BiosigIOError
        The file cannot be converted; the code says why.
    RecordingFailed
        ``empty_recording`` when no signal was found.
    OSError, MemoryError, RuntimeError
        Conditions of the machine, as they came; ``AnotherRelease`` is a fault of this installation.
    """
    with _ONE_AT_A_TIME, _typed_errors(given), _quiet():
        pieces = _pieces(given)
        return merged(given, pieces, store)


def _pieces(given: EngineInput) -> list[Piece]:
    from biosigio.exceptions import MixedSamplingRateError

    rows = given.header.n_channels
    whole = Part(given.target, None if rows is None else tuple(range(rows)))
    if len(given.header.rates_hz) > 1 and given.is_edf:
        return _each(given, _split(given))
    try:
        return _each(given, [whole])
    except MixedSamplingRateError:
        _log.info("%s has mixed rates that its header does not show", given.target.name)
        return _each(given, _split(given))


def _split(given: EngineInput) -> Sequence[Part]:
    folder = given.scratch / "rates"
    folder.mkdir()
    return [Part(one.path, one.rows) for one in split_by_rate(given.target, folder, given.header)]


def _each(given: EngineInput, parts: Sequence[Part]) -> list[Piece]:
    found = [piece for part in parts for piece in written_groups(given, part)]
    return sorted(found, key=lambda piece: piece.rows[0])


@contextlib.contextmanager
def _typed_errors(given: EngineInput) -> Iterator[None]:
    """Give every error of a reader biosigIO's type; conditions of the machine pass as they are.

    biosigIO's streaming route passes on whatever MNE raises (ten builtin types were met), so that a broken file would
    look like a fault of this machine and be tried five times.
    """
    from biosigio.exceptions import BiosigIOError, classify_read_error

    try:
        yield
    except (ZarrmillError, BiosigIOError, ImportError, AnotherRelease):
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
