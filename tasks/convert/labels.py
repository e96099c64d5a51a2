"""The names of a part's channels, unlike every other of the whole recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tasks.convert.pieces import EngineInput, Part

__all__ = ["part_labels"]


def part_labels(given: EngineInput, part: Part, read: Sequence[str]) -> tuple[list[str], Mapping[str, str]]:
    """The labels of a part's channels, and which of them are not the file's: new label to the file's.

    A file of mixed rates is read rate by rate, so a label that it repeats at two rates would not be seen to be repeated.
    The labels of the whole file are told apart as biosigIO does it, and the part gets its own of them; a part that is the
    whole keeps what was ``read``.
    """
    from biosigio.importers._labels import unique_channel_labels

    whole = given.header.channel_labels
    if part.rows is None or len(whole) <= len(part.rows) or len(part.rows) != len(read):
        return list(read), {}
    as_read = {own: spelled for spelled, own in given.header.respelled.items()}
    unique, renamed = unique_channel_labels([as_read.get(label, label) for label in whole])
    if not renamed:
        return list(read), {}
    own = [unique[row] for row in part.rows]
    return own, {label: renamed[label] for label in own if label in renamed}
