"""CTF recordings: a .ds folder with a .res4 header and .meg4 samples."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

from tasks.formats.content import corrupt, empty, not_continuous, reading, require_content, unreadable
from tasks.formats.ctf_clock import Trials, clock_row, follow
from tasks.formats.links import linked_folder
from tasks.formats.memory import streamed_bytes
from tasks.formats.protocol import Header, Route
from tasks.formats.shape import shape_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Ctf"]

_MEG4_HEAD = 8
_SAMPLE_BYTES = 4
_MAX_HEAD_BYTES = 4 << 20
# Positions in the .res4 (big-endian), as in CTF's file formats and MNE's reader.
_AVERAGED, _SAMPLES, _CHANNELS, _RATE, _END = 776, 1288, 1292, 1296, 1314


class Ctf:
    """CTF: always streamed."""

    name = "ctf"
    extensions: tuple[str, ...] = ()
    folder_extensions: tuple[str, ...] = (".ds",)
    companions: frozenset[str] = frozenset()
    precedence = 60
    source_format = "meg"

    def header(self, primary: Path) -> Header:
        """Read the .res4's fields, the size of the .meg4 and, of its samples, the system clock.

        The clock says where a reader stops and whether the trials follow each other; see ``ctf_clock``.
        """
        res4 = _inside(primary, "res4")
        with reading(res4):
            with res4.open("rb") as file:
                head = file.read(_MAX_HEAD_BYTES)
            if len(head) < _END or not head.startswith(b"MEG4"):
                raise corrupt(f"{res4.name} does not start like a CTF header")
            averaged, trial_samples, n_channels, rate_hz = (
                struct.unpack_from(code, head, at)[0]
                for code, at in ((">h", _AVERAGED), (">i", _SAMPLES), (">h", _CHANNELS), (">d", _RATE))
            )
            if not (rate_hz > 0 and math.isfinite(rate_hz)):
                raise corrupt(f"{res4.name} declares a sampling rate of {rate_hz:g} Hz")
            if averaged > 1:
                raise not_continuous(f"{primary.name} is an average of {averaged} trials")
            if n_channels < 1 or trial_samples < 1:
                raise empty(f"{primary.name} declares {n_channels} channels and {trial_samples} samples")
            clock = clock_row(head, n_channels)
            parts = _parts(primary, n_channels, trial_samples)
            shape = Trials(n_channels=n_channels, trial_samples=trial_samples, clock=clock)
            n_samples, gap = follow(parts, shape)
        if gap > 0:
            raise not_continuous(f"the trials of {primary.name} leave gaps, the largest of {gap / rate_hz:g} s")
        if n_samples < 1:
            raise empty(f"the system clock of {primary.name} never ran")
        return Header(
            n_channels=n_channels,
            n_samples=n_samples,
            rate_hz=rate_hz,
            rates_hz=(rate_hz,),
            kept_sample_bytes=4,
            block_samples=trial_samples,
        )

    def route(self, header: Header) -> Route:  # noqa: ARG002 - one route whatever the header says
        """Streamed."""
        return Route.STREAMED

    def projected_bytes(self, header: Header, size_bytes: int, route: Route, served_rate_hz: float | None) -> int:  # noqa: ARG002 - one route
        """As every streamed format; the reader holds whole trials."""
        return streamed_bytes(
            shape_of(header, size_bytes, served_rate_hz, file_sample_bytes=_SAMPLE_BYTES),
            by_windows=True,
            window_samples=header.block_samples,
        )

    def read_target(self, primary: Path, header: Header, work: Path) -> Path:  # noqa: ARG002 - by name alone
        """The folder, or links to its files under the names that its reader derives from the folder's."""
        old, ending = _inside(primary, "res4").stem, primary.suffix
        if old == primary.stem and ending == ".ds":
            return primary
        inner = {
            primary.stem + path.name.removeprefix(old) if path.name.startswith(f"{old}.") else path.name: path
            for path in primary.iterdir()
        }
        return linked_folder(work, f"{primary.stem}.ds", inner)


def _inside(folder: Path, ending: str) -> Path:
    """The file of this ending in the folder: the one of the folder's stem, else the only one (a BIDS rename keeps the old names)."""
    own = folder / f"{folder.stem}.{ending}"
    if own.exists() or own.is_symlink():
        return own
    others = sorted(p for p in folder.glob(f"*.{ending}") if not p.name.startswith("."))
    if len(others) != 1:
        raise unreadable(f"{folder.name} has {len(others)} files ending in .{ending}")
    return others[0]


def _parts(folder: Path, n_channels: int, trial_samples: int) -> list[Path]:
    """The .meg4 and its continuations (.1_meg4, ...); each holds whole trials."""
    first = _inside(folder, "meg4")
    parts = [first]
    while (after := first.with_name(f"{first.stem}.{len(parts)}_meg4")).exists():
        parts.append(after)
    for part in parts:
        require_content(part)
        held = part.stat().st_size - _MEG4_HEAD
        if held <= 0 or held % (_SAMPLE_BYTES * n_channels * trial_samples):
            raise corrupt(f"{part.name} holds {max(held, 0)} bytes, not a whole number of trials")
    return parts
