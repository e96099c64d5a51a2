"""Recordings that there is no reader for: seen by their endings and counted, so that nothing in a raw tree is invisible.

The list holds what BIDS names for electrophysiology and near-infrared spectroscopy, and what recorders of it are known
to write. An ending alone is no proof (``.raw`` and ``.csv`` are anything), so a file counts where BIDS puts recordings.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from tasks.bids.entities import parse_name, split_extension, split_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = [
    "FOLDERS",
    "FOLDER_NAMES",
    "OTHER_FORMATS",
    "OtherFormat",
    "OtherRecording",
    "Others",
    "folder_of",
    "had_no_reader",
    "is_marker",
    "named_as_a_recording",
    "other_format",
    "stands_for_a_recording",
]

_NO_READER = "there is no reader for"
_ORPHAN = "nihon_kohden"
_DATATYPES = frozenset({"eeg", "meg", "ieeg", "emg", "nirs"})
_TEXTS = frozenset({".tsv", ".json", ".txt", ".md", ".gz", ".html", ".pdf", ".png", ".jpg", ".jpeg"})
"""Endings that do not make a folder a recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherFormat:
    """A format without a reader.

    Parameters
    ----------
    name
        As in ``DiscoveredRecording.format``.
    words
        What people call it.
    endings
        Of the file or folder that is, or names, the recording. Several of one stem are one recording.
    vague
        Whether its endings mean many things: then the name must say that it is a recording (``_eeg.csv``), and one beside
        a recording of the same stem is taken for a part of that.
    is_folder
        Whether the recording is a folder.
    """

    name: str
    words: str
    endings: tuple[str, ...]
    vague: bool = False
    is_folder: bool = False


OTHER_FORMATS: tuple[OtherFormat, ...] = (
    OtherFormat(name="nwb", words="Neurodata Without Borders", endings=(".nwb",)),
    OtherFormat(name="mff", words="EGI MFF", endings=(".mff",), is_folder=True),
    OtherFormat(name="egi", words="EGI simple binary", endings=(".egi", ".raw"), vague=True),
    OtherFormat(name="cnt", words="Neuroscan or ANT CNT", endings=(".cnt",)),
    OtherFormat(name="gdf", words="GDF", endings=(".gdf",)),
    OtherFormat(name="xdf", words="XDF", endings=(".xdf", ".xdfz")),
    OtherFormat(name="snirf", words="SNIRF", endings=(".snirf", ".nirs")),
    OtherFormat(name="neuroelectrics", words="Neuroelectrics", endings=(".nedf", ".easy")),
    OtherFormat(name="poly5", words="TMSi Poly5", endings=(".poly5", ".s00")),
    OtherFormat(name="micromed", words="Micromed TRC", endings=(".trc",)),
    OtherFormat(name="brainvision_ascii", words="BrainVision Recorder's .ahdr", endings=(".ahdr",)),
    OtherFormat(name="persyst", words="Persyst", endings=(".lay",)),
    OtherFormat(name="curry", words="Curry", endings=(".cdt", ".dap")),
    OtherFormat(name="nicolet", words="Nicolet", endings=(".e",)),
    OtherFormat(name="blackrock", words="Blackrock", endings=(".ns1", ".ns2", ".ns3", ".ns4", ".ns5", ".ns6", ".nev")),
    OtherFormat(name="neuralynx", words="Neuralynx", endings=(".nrd",)),
    OtherFormat(name="plexon", words="Plexon", endings=(".plx", ".pl2")),
    OtherFormat(name="intan", words="Intan", endings=(".rhd", ".rhs")),
    OtherFormat(name="spike2", words="Spike2", endings=(".smr", ".smrx")),
    OtherFormat(name="tdt", words="Tucker-Davis", endings=(".tev", ".tsq", ".tbk")),
    OtherFormat(name="axon", words="Axon", endings=(".abf",)),
    OtherFormat(name="biopac", words="Biopac", endings=(".acq",)),
    OtherFormat(name="otb", words="OT Bioelettronica", endings=(".otb", ".otb+", ".otb4")),
    OtherFormat(name="delsys", words="Delsys", endings=(".hpf", ".shpf")),
    OtherFormat(name="wfdb", words="WFDB", endings=(".hea",)),
    OtherFormat(name="itab", words="ITAB", endings=(".mhd",)),
    OtherFormat(name="mef2", words="MEF 2", endings=(".mef",)),
    OtherFormat(name="matlab", words="MATLAB", endings=(".mat",), vague=True),
    OtherFormat(name="hdf5", words="HDF5", endings=(".hdf5",), vague=True),
    OtherFormat(
        name="table",
        words="a plain table",
        endings=(".csv", ".txt", ".asc", ".parquet", ".feather"),
        vague=True,
    ),
    OtherFormat(name="array", words="a bare array", endings=(".npy", ".npz", ".bin"), vague=True),
    OtherFormat(name="nihon_kohden", words="Nihon Kohden, or BrainVision without its .vhdr", endings=(".eeg",)),
)
"""Every format that is counted without being read."""

_FILES: Mapping[str, OtherFormat] = MappingProxyType(
    {ending: one for one in OTHER_FORMATS if not one.is_folder for ending in one.endings}
)
FOLDERS: Mapping[str, str] = MappingProxyType(
    {ending: one.name for one in OTHER_FORMATS if one.is_folder for ending in one.endings}
)
"""Endings of folders that are such a recording -> name of the format."""
FOLDER_NAMES = frozenset(FOLDERS.values())
_BY_NAME: Mapping[str, OtherFormat] = MappingProxyType({one.name: one for one in OTHER_FORMATS})


def stands_for_a_recording(path: str) -> bool:
    """Whether the path lies directly in a folder eeg, meg, ieeg, emg or nirs, or its name ends in such a suffix."""
    folder, name = split_path(path)
    return split_path(folder)[1] in _DATATYPES or parse_name(name).suffix in _DATATYPES


def other_format(path: str, extension: str) -> OtherFormat | None:
    """The format without a reader that a file is a recording of; None for every other file. ``extension`` in lower case."""
    one = _FILES.get(extension)
    if one is None:
        return None
    if one.vague:
        return one if named_as_a_recording(path) else None
    if one.name == _ORPHAN:
        return one if split_path(split_path(path)[0])[1] in _DATATYPES else None
    return one if stands_for_a_recording(path) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRecording:
    """A recording without a reader: its path and the ending that its store's name drops, all its files, and why."""

    path: str
    extension: str
    format: str
    members: tuple[str, ...]
    detail: str


def folder_of(path: str, name: str, members: Iterable[str]) -> OtherRecording:
    """The recording that a folder of the format ``name`` is."""
    (words,) = (one.words for one in OTHER_FORMATS if one.name == name)
    extension = split_extension(split_path(path)[1])[1]
    return OtherRecording(
        path=path, extension=extension, format=name, members=tuple(members), detail=_detail(words, extension)
    )


def named_as_a_recording(path: str) -> bool:
    """Whether the name ends in a suffix of recordings, which an ending that means many things needs (``_eeg.h5``)."""
    return parse_name(split_path(path)[1]).suffix in _DATATYPES


def is_marker(stem: str, format_name: str) -> bool:
    """Whether a KIT file holds the coils' positions that BIDS calls ``markers``, and no recording."""
    return format_name == "kit" and parse_name(stem).suffix == "markers"


class Others:
    """Collects what has no reader while a tree is looked at, and says at the end what of it counts."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        self._known: set[tuple[str, str]] = set()
        self._brainvision: set[str] = set()
        self._silent: dict[str, list[str]] = defaultdict(list)
        self._speaking: set[str] = set()

    def known(self, folder: str, stem: str, extension: str) -> None:
        """There is a recording with a reader."""
        self._known.add((folder, stem.lower()))
        if extension == ".vhdr":
            self._brainvision.add(folder)
        if (outer := _named_like_a_recording(folder)) is not None:
            self._speaking.add(outer)

    def is_known(self, folder: str, stem: str) -> bool:
        """Whether there is a recording of this stem with a reader, whose ending says what it is."""
        return (folder, stem.lower()) in self._known

    def look_at(self, path: str, folder: str, stem: str, extension: str) -> None:
        """Put one path, which is no recording with a reader, where it belongs."""
        one = other_format(path, extension)
        if one is not None:
            self._found[folder, stem.lower(), one.name].append(path)
        elif extension not in _TEXTS and (outer := _named_like_a_recording(folder)) is not None:
            self._silent[outer].append(path)

    def found(self) -> Iterator[OtherRecording]:
        """Every recording without a reader, once."""
        for (folder, stem, name), paths in self._found.items():
            if (outer := _named_like_a_recording(folder)) is not None:
                self._speaking.add(outer)
            one = _BY_NAME[name]
            beside_a_known = (folder, stem) in self._known and (one.vague or name == _ORPHAN)
            if beside_a_known or (name == _ORPHAN and folder in self._brainvision):
                continue
            first = min(paths)
            extension = split_extension(split_path(first)[1])[1]
            yield OtherRecording(
                path=first,
                extension=extension,
                format=name,
                members=(first, *sorted(set(paths) - {first})),
                detail=_detail(one.words, extension),
            )
        for folder in sorted(self._silent.keys() - self._speaking):
            detail = (
                "the folder holds no recording that there is a reader for, and no 4D/BTi c,rf* file with its config"
            )
            members = tuple(sorted(self._silent[folder]))
            yield OtherRecording(path=folder, extension="", format="folder", members=members, detail=detail)


def _detail(words: str, extension: str) -> str:
    return f"{_NO_READER} {words} ({extension.lower()})"


def had_no_reader(detail: str | None) -> bool:
    """Whether the detail of an ``unsupported_format`` says that there was no reader, so that one may have come since."""
    return detail is not None and detail.startswith(_NO_READER)


def _named_like_a_recording(folder: str) -> str | None:
    """The outermost folder above a file that is named like a recording and lies where one does; None without one."""
    end = folder.find("/")
    while end >= 0:
        start, end = end + 1, folder.find("/", end + 1)
        name = folder[start : end if end >= 0 else len(folder)]
        above = split_path(folder[: start - 1])[1]
        if above in _DATATYPES and "." not in name and "_" in name and parse_name(name).suffix == above:
            return folder[: end if end >= 0 else len(folder)]
    return None
