"""The parts of a BIDS file name: entities, suffix, extension."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

__all__ = ["MODALITIES", "ParsedName", "parse_name", "part_key", "split_extension", "split_path"]

MODALITIES = frozenset({"eeg", "meg", "ieeg", "emg"})


@dataclass(frozen=True, slots=True)
class ParsedName:
    """One file or folder name taken apart.

    Parameters
    ----------
    parts
        Everything between underscores but the suffix, in order: ``("sub-01", "task-rest", "epo")``. Parts that are no
        entity are kept, because a sidecar named with one applies only to recordings named with it.
    suffix
        The last part when it is no entity, else empty.
    extension
        From the last dot on, as written; ``.fif.gz`` counts as one. Empty without a dot or without a stem.
    """

    parts: tuple[str, ...]
    suffix: str
    extension: str

    @property
    def entities(self) -> dict[str, str]:
        """Entity -> value in the order of the name; of a repeated entity the first."""
        found: dict[str, str] = {}
        for part in self.parts:
            if (key := part_key(part)) is not None:
                found.setdefault(key, part[len(key) + 1 :])
        return found

    @property
    def modality(self) -> str | None:
        """The suffix when it is one of eeg, meg, ieeg, emg."""
        return self.suffix if self.suffix in MODALITIES else None


def split_path(path: str) -> tuple[str, str]:
    """Folder (empty at the top) and name of a path with ``/`` between segments."""
    folder, _, name = path.rpartition("/")
    return folder, name


def split_extension(name: str) -> tuple[str, str]:
    """Stem and extension, as in ``ParsedName.extension``."""
    if name.lower().endswith(".fif.gz") and len(name) > len(".fif.gz"):
        cut = len(name) - len(".fif.gz")
    else:
        cut = name.rfind(".")
    return (name[:cut], name[cut:]) if cut > 0 else (name, "")


def part_key(part: str) -> str | None:
    """The entity's key when the part is one (``"run"`` of ``run-1``), else None."""
    key, dash, value = part.partition("-")
    return key if dash and key and value else None


def parse_name(name: str) -> ParsedName:
    """The name's entities, suffix and extension; every string is accepted."""
    stem, extension = split_extension(name)
    rest, _, last = stem.rpartition("_")
    if part_key(last) is not None:
        return ParsedName(_parts(stem), "", extension)
    return ParsedName(_parts(rest) if len(rest) < len(stem) - len(last) else (), last, extension)


@lru_cache(maxsize=4096)
def _parts(text: str) -> tuple[str, ...]:
    # A recording and its sidecars share this text, so most of a dataset's names are taken apart once in four times.
    return tuple(text.split("_"))
