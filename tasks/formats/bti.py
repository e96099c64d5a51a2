"""4D/BTi recordings: a folder with a processed-data file c,rf*, a config and perhaps a head shape."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

from tasks.formats.content import corrupt, empty, not_continuous, reading, require_content, unreadable
from tasks.formats.links import linked
from tasks.formats.memory import streamed_bytes
from tasks.formats.protocol import Header, Route
from tasks.formats.shape import shape_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Bti"]

_PREFERRED = "c,rfDC"
_MASK = 2**31 - 1
_SAMPLE_BYTES = {1: 2, 2: 4, 3: 4, 4: 8}
_HEAD = struct.Struct(">h5sxhhiiiif16sih")
_AFTER_HEAD = 2 + 16 + 20
_EPOCH_BYTES = 56
_MAX_EPOCHS = 100_000


class Bti:
    """4D/BTi: always streamed."""

    name = "bti"
    extensions: tuple[str, ...] = ()
    folder_extensions: tuple[str, ...] = ()
    companions: frozenset[str] = frozenset()
    precedence = 70
    source_format = "meg"

    def header(self, primary: Path) -> Header:
        """Read the header at the end of the processed-data file."""
        pdf = _processed_data(primary)
        require_content(primary / "config")
        with reading(pdf):
            size = pdf.stat().st_size
            if size <= _HEAD.size + 8:
                raise corrupt(f"{pdf.name} is too short to hold a header")
            with pdf.open("rb") as file:
                file.seek(-8, 2)
                position = _aligned(struct.unpack(">q", file.read(8))[0], size - 8)
                if not 0 <= position < size - _HEAD.size:
                    raise corrupt(f"{pdf.name} has no header where its end says")
                file.seek(position)
                fields = _HEAD.unpack(file.read(_HEAD.size))
                data_format, n_epochs, period_s, n_channels = fields[2], fields[4], fields[8], fields[11]
                if data_format not in _SAMPLE_BYTES or not 0 <= n_epochs <= _MAX_EPOCHS or not 0 <= n_channels < 4096:
                    raise corrupt(f"{pdf.name} declares {n_channels} channels and {n_epochs} epochs")
                if not n_epochs or not n_channels:
                    raise empty(f"{pdf.name} declares {n_channels} channels and {n_epochs} epochs")
                start = file.tell() + _AFTER_HEAD
                file.seek(start + -start % 8)
                epochs = file.read(_EPOCH_BYTES * n_epochs)
        samples = [struct.unpack_from(">i", epochs, _EPOCH_BYTES * i)[0] for i in range(len(epochs) // _EPOCH_BYTES)]
        if len(samples) > 1:
            raise not_continuous(f"{pdf.name} holds {len(samples)} epochs")
        if sum(samples) * n_channels * _SAMPLE_BYTES[data_format] > position:
            raise corrupt(f"{pdf.name} holds fewer samples than the {sum(samples)} it declares")
        if sum(samples) < 0:
            raise corrupt(f"{pdf.name} declares {sum(samples)} samples")
        if sum(samples) < 1:
            raise empty(f"{pdf.name} declares no samples")
        if not (period_s > 0 and math.isfinite(1.0 / period_s)):
            raise corrupt(f"{pdf.name} declares a sample every {period_s:g} s")
        rate_hz = 1.0 / period_s
        return Header(
            n_channels=n_channels,
            n_samples=sum(samples),
            rate_hz=rate_hz,
            rates_hz=(rate_hz,),
            kept_sample_bytes=8,
        )

    def route(self, header: Header) -> Route:  # noqa: ARG002 - one route whatever the header says
        """Streamed."""
        return Route.STREAMED

    def projected_bytes(self, header: Header, size_bytes: int, route: Route, served_rate_hz: float | None) -> int:  # noqa: ARG002 - one route
        """As every streamed format."""
        return streamed_bytes(shape_of(header, size_bytes, served_rate_hz, file_sample_bytes=2), by_windows=True)

    def read_target(self, primary: Path, header: Header, work: Path) -> Path:  # noqa: ARG002 - by name alone
        """The folder; under a name without a dot, behind which the reader would look for an ending."""
        return linked(work, "recording", primary) if "." in primary.name else primary


def _processed_data(folder: Path) -> Path:
    """The file that biosigIO reads: c,rfDC, else the first c,rf* by name."""
    names = sorted(p.name for p in folder.glob("c,rf*"))
    if not names:
        raise unreadable(f"{folder.name} holds no c,rf* file")
    return folder / (_PREFERRED if _PREFERRED in names else names[0])


def _aligned(position: int, start: int) -> int:
    """Where the header begins: its upper half can be rubbish, and it stands on a multiple of eight."""
    masked = position & _MASK
    if start + 8 - masked <= _MASK:
        position = masked
    return position + -position % 8
