"""BrainVision recordings: a .vhdr header, its binary samples and its markers."""

from __future__ import annotations

import math
from glob import escape as glob_escape
from typing import TYPE_CHECKING

from tasks.formats.brainvision_samples import SAMPLE_TYPES, rewritten
from tasks.formats.content import corrupt, empty, not_continuous, reading, require_content, unreadable, unsupported
from tasks.formats.links import linked
from tasks.formats.memory import BLOCK_BYTES, in_memory_bytes, streamed_bytes
from tasks.formats.protocol import Header, Route
from tasks.formats.shape import shape_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["BrainVision", "signal_file"]

_MAX_HEADER_BYTES = 4 * 1024**2
_MAX_ASKED_BYTES = 1024**2


class BrainVision:
    """BrainVision: always streamed."""

    name = "brainvision"
    extensions: tuple[str, ...] = (".vhdr",)
    folder_extensions: tuple[str, ...] = ()
    companions: frozenset[str] = frozenset({".eeg", ".vmrk", ".dat"})
    precedence = 10
    source_format = "brainvision"

    def header(self, primary: Path) -> Header:
        """Read the .vhdr and the size of the sample file.

        A missing marker file is fine: events come from events.tsv.
        """
        with reading(primary):
            sections = _sections(_decoded(primary))
            common, binary = sections.get("common infos", {}), sections.get("binary infos", {})
            _require_header(primary, common)
            n_channels = int(common["numberofchannels"])
            interval_us = float(common["samplinginterval"])
            if not (interval_us > 0 and math.isfinite(1e6 / interval_us)):
                raise corrupt(f"{primary.name} declares a sample every {interval_us:g} microseconds")
            _require_time_series(primary, common, n_channels)
        is_text = common.get("dataformat", "BINARY").upper() == "ASCII"
        samples = signal_file(primary, common.get("datafile", ""))
        kind = binary.get("binaryformat", "").upper()
        if not is_text and kind not in SAMPLE_TYPES:
            raise unsupported(f"{primary.name} declares samples of the type {kind or 'that it does not name'}")
        if is_text and common.get("dataorientation", "").upper() == "VECTORIZED":
            raise unsupported(f"{primary.name} declares text samples with one channel a line")
        n_samples = (
            _lines(samples, sections.get("ascii infos", {}).get("skiplines", "0"))
            if is_text
            else _frames(samples, n_channels * SAMPLE_TYPES[kind].width)
        )
        size = samples.stat().st_size
        rate_hz = 1e6 / interval_us
        other = not is_text and (not SAMPLE_TYPES[kind].is_read or _is_big_endian(binary))
        return Header(
            n_channels=n_channels,
            n_samples=n_samples,
            rate_hz=rate_hz,
            rates_hz=(rate_hz,),
            kept_sample_bytes=8 if is_text else 0,
            copied_bytes=size * SAMPLE_TYPES[kind].copy_width // SAMPLE_TYPES[kind].width if other else 0,
            notes=_pauses(primary, common),
        )

    def start_bytes(self, path: str, size_bytes: int, start: bytes) -> int | None:
        """The .vhdr; of the others only the size counts. None for samples as text, which are counted by their lines."""
        if not path.lower().endswith(".vhdr"):
            return 0
        if len(start) < size_bytes:
            return size_bytes if size_bytes <= _MAX_ASKED_BYTES else None
        return None if b"dataformat=ascii" in start.lower().replace(b" ", b"") else size_bytes

    def route(self, header: Header) -> Route:  # noqa: ARG002 - one route whatever the header says
        """Streamed."""
        return Route.STREAMED

    def projected_bytes(self, header: Header, size_bytes: int, route: Route, served_rate_hz: float | None) -> int:
        """As every streamed format; 40 C N in memory."""
        shape = shape_of(header, size_bytes, served_rate_hz, file_sample_bytes=2)
        if route is Route.IN_MEMORY:
            return in_memory_bytes(shape, bytes_per_value=40)
        block_bytes = min(BLOCK_BYTES, 4 * shape.n_channels * shape.n_samples)
        return streamed_bytes(shape, block_bytes=block_bytes, by_windows=header.kept_sample_bytes > 0)

    def read_target(self, primary: Path, header: Header, work: Path) -> Path:
        """The .vhdr; under links in lower case where its ending is not; a copy of samples that its reader refuses."""
        if header.copied_bytes:
            with reading(primary):
                sections = _sections(_decoded(primary))
            binary = sections.get("binary infos", {})
            return rewritten(
                primary,
                signal_file(primary, sections["common infos"].get("datafile", "")),
                work,
                kind=binary["binaryformat"].upper(),
                big_endian=_is_big_endian(binary),
            )
        if primary.suffix == ".vhdr":
            return primary
        for beside in primary.parent.glob(f"{glob_escape(primary.stem)}.*"):
            linked(work, primary.stem + beside.suffix.lower(), beside)
        return work / f"{primary.stem}.vhdr"


def _require_time_series(vhdr: Path, common: dict[str, str], n_channels: int) -> None:
    if n_channels < 1:
        raise empty(f"{vhdr.name} declares no channel")
    if common.get("averaged", "").upper() == "YES" or common.get("segmentationtype", "").upper() == "MARKERBASED":
        raise not_continuous(f"{vhdr.name} declares averaged or segmented data")
    if common.get("datatype", "TIMEDOMAIN").upper() != "TIMEDOMAIN":
        raise unsupported(f"{vhdr.name} declares {common['datatype']} data, which is no time series")


def _is_big_endian(binary: dict[str, str]) -> bool:
    return binary.get("usebigendianorder", "").upper() == "YES"


def _lines(samples: Path, skipped: str) -> int:
    """Lines of a text file of samples, less those at its start that hold none."""
    count, last = 0, b"\n"
    with reading(samples), samples.open("rb") as file:
        while part := file.read(1 << 20):
            count += part.count(b"\n")
            last = part[-1:]
        count += (last != b"\n") - (int(skipped) if skipped.isdecimal() else 0)
    if count < 1:
        raise empty(f"{samples.name} holds no line of samples")
    return count


def _pauses(vhdr: Path, common: dict[str, str]) -> tuple[str, ...]:
    """Whether the marker file tells of pauses; there may be none, and it may be anything."""
    named = _plain(common.get("markerfile", "").replace("$b", vhdr.stem))
    for name in (named, f"{vhdr.stem}.vmrk"):
        marker = vhdr.with_name(name) if name else vhdr
        if marker != vhdr and marker.is_file():
            with reading(marker):
                starts = _decoded(marker).count("=New Segment,") - 1
            if starts < 1:
                return ()
            return (
                f"the recording was paused {starts} times; its parts are served one after the other, as in the file",
            )
    return ()


def _require_header(vhdr: Path, common: dict[str, str]) -> None:
    if not common:
        raise corrupt(f"{vhdr.name} is not a BrainVision header: it has no section [Common Infos]")
    for entry in ("NumberOfChannels", "SamplingInterval"):
        if entry.lower() not in common:
            raise corrupt(f"{vhdr.name} is not a BrainVision header: it names no {entry}")


def signal_file(vhdr: Path, named: str) -> Path:
    """The sample file of a header: the one it names, else the one of its own stem (a BIDS rename leaves the old name inside).

    Raises
    ------
    RecordingFailed
        ``file_read_error`` when neither is there, ``annex_object_missing`` when only a pointer is.
    """
    named = named.replace("$b", vhdr.stem)
    plain = _plain(named)
    names = [plain] if plain else []
    names += [vhdr.stem + ending for ending in (".eeg", ".dat", ".EEG", ".DAT")]
    for name in names:
        candidate = vhdr.with_name(name)
        if candidate.is_symlink() or candidate.exists():
            require_content(candidate)
            return candidate
    raise unreadable(
        f"the samples of {vhdr.name} are missing: neither {plain or 'a named file'} nor {vhdr.stem}.eeg is there"
    )


def _plain(named: str) -> str:
    """The name when it is one of a file in the header's own folder, else nothing."""
    return named if named and "/" not in named and "\\" not in named and named not in {".", ".."} else ""


def _frames(samples: Path, frame_bytes: int) -> int:
    size = samples.stat().st_size
    if size == 0:
        raise corrupt(f"{samples.name} is empty")
    if size % frame_bytes:
        raise corrupt(f"{samples.name} holds {size} bytes, not a whole number of frames of {frame_bytes}")
    return size // frame_bytes


def _decoded(path: Path) -> str:
    with path.open("rb") as file:
        raw = file.read(_MAX_HEADER_BYTES)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _sections(text: str) -> dict[str, dict[str, str]]:
    """Key and value per section, keys and section names lower-cased; the free-text comment ends the header."""
    if not text.strip():
        raise EOFError("the header is empty")
    found: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            title = line[1:-1].strip().lower()
            if title == "comment":
                break
            current = found.setdefault(title, {})
        elif "=" in line and not line.startswith(";"):
            key, value = line.split("=", 1)
            current.setdefault(key.strip().lower(), value.strip())
    return found
