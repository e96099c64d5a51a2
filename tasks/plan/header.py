"""The header of a recording before it is fetched, where the source lets it be read for nothing."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from contract.errors import NotNow, RecordingFailed
from tasks.sources.protocol import SourceChanged

if TYPE_CHECKING:
    from tasks.bids.recording import DiscoveredRecording
    from tasks.formats.protocol import Header, RecordingFormat
    from tasks.sources.protocol import Source

__all__ = ["header_at_source"]


def header_at_source(source: Source, one: RecordingFormat, recording: DiscoveredRecording) -> Header | None:
    """The header, where reading it costs no download; None elsewhere, and where it cannot be read.

    The attempt itself says what is wrong with it, and is charged by size until then.
    """
    tree = source.tree()
    files = {path: tree[path].content_id for path in (*recording.members, *recording.companions)}
    try:
        with TemporaryDirectory(prefix="zarrmill-header-") as scratch:
            folder = source.header_folder(files, Path(scratch))
            return None if folder is None else one.header(folder / recording.path)
    except (RecordingFailed, NotNow, SourceChanged, OSError):
        return None
