"""BrainVision recordings: a .vhdr header, its binary samples and its markers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasks.formats.content import corrupt, empty, not_continuous, reading, require_content, unreadable
from tasks.formats.memory import in_memory_bytes, streamed_bytes
from tasks.formats.protocol import Header, Route
from tasks.formats.shape import shape_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["BrainVision", "signal_file"]

_MAX_HEADER_BYTES = 4 * 1024**2
_SAMPLE_BYTES = {"INT_16": 2, "UINT_16": 2, "INT_32": 4, "IEEE_FLOAT_32": 4, "IEEE_FLOAT_64": 8}


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
            common = sections.get("common infos", {})
            _require_header(primary, common)
            n_channels = int(common["numberofchannels"])
            interval_us = float(common["samplinginterval"])
        if n_channels < 1:
            raise empty(f"{primary.name} declares no channel")
        if common.get("averaged", "").upper() == "YES" or common.get("segmentationtype", "").upper() == "MARKERBASED":
            raise not_continuous(f"{primary.name} declares averaged or segmented data")
        rate_hz = 1e6 / interval_us if interval_us > 0 else None
        width = _SAMPLE_BYTES.get(sections.get("binary infos", {}).get("binaryformat", "").upper())
        samples = signal_file(primary, common.get("datafile", ""))
        n_samples = (
            None
            if common.get("dataformat", "BINARY").upper() != "BINARY" or width is None
            else _frames(samples, n_channels * width)
        )
        return Header(
            n_channels=n_channels,
            n_samples=n_samples,
            rate_hz=rate_hz,
            rates_hz=() if rate_hz is None else (rate_hz,),
        )

    def route(self, header: Header) -> Route:  # noqa: ARG002 - one route whatever the header says
        """Streamed."""
        return Route.STREAMED

    def projected_bytes(self, header: Header, size_bytes: int, route: Route, served_rate_hz: float | None) -> int:
        """As every streamed format; 40 C N in memory."""
        shape = shape_of(header, size_bytes, served_rate_hz, file_sample_bytes=2)
        return in_memory_bytes(shape, bytes_per_value=40) if route is Route.IN_MEMORY else streamed_bytes(shape)

    def read_target(self, primary: Path) -> Path:
        """The .vhdr."""
        return primary


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
    plain = named if named and "/" not in named and "\\" not in named and named not in {".", ".."} else ""
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
