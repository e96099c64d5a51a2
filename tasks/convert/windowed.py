"""A recording that zarrmill reads itself, as a source that biosigIO's writer reads from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract.store import LABELS_DEDUPLICATED
from tasks.bids.cells import filled
from tasks.convert.match import match_channels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from tasks.formats.windows import WindowReader

__all__ = ["WindowSource", "opened"]

_NO_UNIT = "n/a"
_NO_TYPE = "OTHER"


class WindowSource:
    """The open recording with its channels as biosigIO describes them.

    Repeated labels are told apart as biosigIO's importers do it. What the file does not say of a channel stays unknown, but for
    its unit: where a channels.tsv names one, it is that of the file's samples, since there is no other to convert from.
    """

    def __init__(self, reader: WindowReader, channels_tsv: pd.DataFrame | None, modality: str | None) -> None:
        from biosigio.core.modality import infer_modality_from_channel_type
        from biosigio.importers._labels import unique_channel_labels

        self._windows = reader
        self.sfreq = reader.rate_hz
        self.n_samples = reader.n_samples
        labels, renamed = unique_channel_labels([channel.label for channel in reader.channels])
        self.extra_metadata: dict[str, Any] = {LABELS_DEDUPLICATED: renamed} if renamed else {}
        declared = _declared_units(channels_tsv, labels, renamed)
        self.channels: list[dict[str, Any]] = []
        for row, (label, channel) in enumerate(zip(labels, reader.channels, strict=True)):
            kind = _known_type(channel.channel_type)
            self.channels.append(
                {
                    "idx": row,
                    "label": label,
                    "channel_type": kind,
                    "modality": modality or infer_modality_from_channel_type(kind),
                    "unit": channel.unit or declared.get(label, _NO_UNIT),
                }
            )

    def recording(self, source_format: str) -> Any:
        """A biosigIO recording of the channels, without their samples."""
        from biosigio import Recording

        found = Recording()
        found.channels = {
            channel["label"]: {
                "sample_frequency": self.sfreq,
                "physical_dimension": channel["unit"],
                "prefilter": _NO_UNIT,
                "channel_type": channel["channel_type"],
                "modality": channel["modality"],
            }
            for channel in self.channels
        }
        found.metadata = {
            **self.extra_metadata,
            "number_of_signals": len(self.channels),
            "source_format": source_format,
        }
        return found

    def read(self, picks: list[int], start: int, stop: int) -> NDArray[np.float64]:
        """Samples ``start`` to ``stop`` of some channels."""
        window = self._windows.read(start, stop)
        return window if picks == list(range(len(window))) else window[picks]

    def close(self) -> None:
        """Let the file go."""
        self._windows.close()


def _known_type(declared: str | None) -> str:
    from biosigio.core.modality import validate_channel_type

    try:
        return str(validate_channel_type(declared or _NO_TYPE))
    except ValueError:
        return _NO_TYPE


def _declared_units(table: pd.DataFrame | None, labels: list[str], renamed: Mapping[str, str]) -> dict[str, str]:
    """The unit that a row names for each channel, by its label; the last row counts."""
    if table is None or "units" not in table:
        return {}
    names = [str(name) for name in table["name"]]
    meant = {label: label for label in labels} | dict(match_channels(names, labels, renamed).case_only)
    found: dict[str, str] = {}
    for name, cell in zip(names, table["units"], strict=True):
        unit = filled(str(cell))
        if unit is not None and name in meant:
            found[meant[name]] = unit
    return found


def opened(
    windows: Callable[[Path], WindowReader], path: Path, channels_tsv: pd.DataFrame | None, modality: str | None
) -> WindowSource:
    """The recording at ``path``, open; closed again when its channels cannot be described."""
    reader = windows(path)
    try:
        return WindowSource(reader, channels_tsv, modality)
    except BaseException:
        reader.close()
        raise
