"""Images that events name in ``stim_file``, out of the dataset's own ``stimuli`` folder and from nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract.errors import NotNow, RecordingFailed, Refused
from contract.layout import check_relative
from tasks.bids.scope import printable
from tasks.sources.protocol import ABSENCE_SENTENCES, SourceChanged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tasks.sources.protocol import Source

__all__ = ["FOLDER", "MOST_BYTES", "MOST_IMAGE_BYTES", "Stimuli"]

FOLDER = "stimuli"
MOST_IMAGE_BYTES = 32 << 20
MOST_BYTES = 1 << 30
"""What the images of one file may take together."""

_HEAD_BYTES = 12
_BEGINNINGS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM", b"II*\0", b"MM\0*")


class Stimuli:
    """Images of a dataset, copied once each.

    Parameters
    ----------
    scratch
        An empty folder for them.
    commit
        The commit that they are read at; None where there is none.
    """

    def __init__(self, source: Source, scratch: Path, *, commit: str | None = None) -> None:
        self.commit = commit
        self._source = source
        self._scratch = scratch
        self._copies: dict[str, Path] = {}

    def images(self, names: Iterable[str]) -> Mapping[str, Path]:
        """A copy of each image, by its name as events tell it.

        Raises
        ------
        Refused
            A name leads out of the folder, or to nothing there that is an image of a bearable size; the sentence names it.
        """
        wanted = sorted(set(names))
        sizes = {name: self._size_of(name) for name in wanted}
        if sum(sizes.values()) > MOST_BYTES:
            raise Refused(
                f"--with-stimuli: {len(wanted)} images take {sum(sizes.values())} bytes, and a file holds at most {MOST_BYTES} of "
                "them; choose fewer trial types, or a part of the recording."
            )
        for name in wanted:
            if name not in self._copies:
                self._copies[name] = self._copied(name)
        return {name: self._copies[name] for name in wanted}

    def _path_of(self, name: str) -> str:
        try:
            return check_relative(f"{FOLDER}/{name}")
        except Refused as refused:
            raise _unusable(name, "is no path below the dataset's stimuli folder") from refused

    def _size_of(self, name: str) -> int:
        # by the tree, which follows no link out of the dataset and goes into no folder behind a link
        entry = self._source.tree().get(self._path_of(name))
        if entry is None:
            raise _unusable(name, "is not in the dataset's stimuli folder")
        if entry.absent is not None:
            raise _unusable(name, ABSENCE_SENTENCES[entry.absent])
        if (entry.size_bytes or 0) > MOST_IMAGE_BYTES:
            raise _unusable(name, f"is longer than {MOST_IMAGE_BYTES} bytes")
        return entry.size_bytes or 0

    def _copied(self, name: str) -> Path:
        path = self._path_of(name)
        inputs = {path: self._source.tree()[path].content_id}
        fetched = self._scratch / f"{len(self._copies)}.fetched"
        fetched.mkdir()
        try:
            self._source.fetch(inputs, fetched)
            with (fetched / path).open("rb") as file:
                data = file.read(MOST_IMAGE_BYTES + 1)
        except (RecordingFailed, NotNow, SourceChanged, OSError) as error:
            raise _unusable(
                name, f"cannot be read ({getattr(error, 'detail', None) or type(error).__name__})"
            ) from error
        if len(data) > MOST_IMAGE_BYTES:
            raise _unusable(name, f"is longer than {MOST_IMAGE_BYTES} bytes")
        if not _is_image(data[:_HEAD_BYTES]):
            raise _unusable(name, "is no PNG, JPEG, GIF, BMP, TIFF or WebP image")
        if not self._source.unchanged(inputs):
            raise _unusable(name, "was changed while it was read")
        copy = self._scratch / f"{len(self._copies)}.image"
        copy.write_bytes(data)
        return copy


def _is_image(head: bytes) -> bool:
    return head.startswith(_BEGINNINGS) or (head.startswith(b"RIFF") and head[8:12] == b"WEBP")


def _unusable(name: str, why: str) -> Refused:
    return Refused(f"--with-stimuli: stim_file {printable(name)[:200]!r} {why}.")
