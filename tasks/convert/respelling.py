"""Labels that a reader had to be given in another spelling: channels.tsv follows them in, the store gets them back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from tasks.convert.documents import Documents

__all__ = ["respelled", "restore_labels"]


def respelled(channels: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """The table of channels.tsv with its names as the reader will spell them; ``labels`` maps those to the file's."""
    if not labels:
        return channels
    as_read = {own: read for read, own in labels.items()}
    return channels.assign(name=[as_read.get(str(name), name) for name in channels["name"]])


def restore_labels(documents: Documents, labels: Mapping[str, str]) -> None:
    """Give every channel of a store the label of its file back."""
    if not labels:
        return

    def group(values: dict[str, Any]) -> None:
        for channel in values["channels"]:
            channel["label"] = labels.get(channel["label"], channel["label"])

    for name in documents.attributes()["channel_groups"]:
        documents.edit(str(name), group)
