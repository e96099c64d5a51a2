"""The header of a recording before it is fetched: where it lies, or from the first bytes of its files."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from contract.errors import NotNow, RecordingFailed
from tasks.formats.protocol import ReadsStarts
from tasks.sources.protocol import SourceChanged

if TYPE_CHECKING:
    from tasks.bids.recording import DiscoveredRecording
    from tasks.formats.protocol import Header, RecordingFormat
    from tasks.sources.protocol import Source

__all__ = ["HEADER_TROUBLE", "header_at_source", "header_by_starts"]

HEADER_TROUBLE: Final = (RecordingFailed, NotNow, SourceChanged, OSError)
"""What asking for a header may raise. The attempt itself says what is wrong, and is charged by size until then."""

_MOST_LOOKS: Final = 3


def header_at_source(source: Source, one: RecordingFormat, recording: DiscoveredRecording) -> Header | None:
    """The header, where it can be read where it lies; None elsewhere, and where it cannot be read."""
    tree = source.tree()
    files = {path: tree[path].content_id for path in (*recording.members, *recording.companions)}
    try:
        with TemporaryDirectory(prefix="zarrmill-header-") as scratch:
            folder = source.header_folder(files, Path(scratch))
            return None if folder is None else one.header(folder / recording.path)
    except HEADER_TROUBLE:
        return None


def header_by_starts(source: Source, one: RecordingFormat, recording: DiscoveredRecording) -> Header | None:
    """The header from the first bytes of the recording's files, a request or two; None where its format needs more.

    It tells the shape of the recording and is no witness of its soundness: behind those bytes the format reads zeros.

    Raises
    ------
    RecordingFailed, NotNow, SourceChanged, OSError
        ``HEADER_TROUBLE``.
    """
    if not isinstance(one, ReadsStarts):
        return None
    tree = source.tree()
    with TemporaryDirectory(prefix="zarrmill-header-") as scratch:
        for path in (*recording.members, *recording.companions):
            entry = tree[path]
            start = None if entry.size_bytes is None else _start(source, one, path, entry.content_id, entry.size_bytes)
            if start is None:
                return None
            place = Path(scratch, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("wb") as file:
                file.write(start)
                file.truncate(entry.size_bytes)  # a hole costs no disk
        return one.header(Path(scratch, recording.path))


def _start(source: Source, one: ReadsStarts, path: str, content_id: str, size_bytes: int) -> bytes | None:
    start = b""
    for _ in range(_MOST_LOOKS):
        wanted = one.start_bytes(path, size_bytes, start)
        if wanted is None or wanted <= len(start):
            return start if wanted is not None else None
        found = source.start(path, content_id, wanted)
        if found is None or len(found) < wanted:
            return None
        start = found
    return None
