"""Every raw recording of a dataset, in one pass over the names of its files."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contract.codes import FailureCode
from contract.errors import Refused
from contract.layout import store_path
from tasks.bids.collisions import with_collisions
from tasks.bids.entities import parse_name, split_extension, split_path
from tasks.bids.folders import EXCLUDED, FolderRecording, Folders
from tasks.bids.other_formats import FOLDER_NAMES, Others, folder_of, is_marker, named_as_a_recording
from tasks.bids.recording import DiscoveredRecording, Discovery
from tasks.bids.scope import EXCLUDED_SEGMENTS, calibration_kind, printable, unpublishable
from tasks.bids.sidecars import SidecarIndex
from tasks.formats.registry import endings
from tasks.sources.protocol import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tasks.bids.other_formats import OtherRecording
    from tasks.sources.protocol import Source, TreeEntry

__all__ = ["DATASET_FILES", "discover", "discover_source"]

DATASET_FILES = ("dataset_description.json", "participants.tsv")

_SPLIT = re.compile(r"split-([0-9]+)")


def discover(tree: Mapping[str, TreeEntry], left_out: Iterable[Problem] = ()) -> Discovery:
    """The recordings of a dataset with their members, companions, sidecars and store paths.

    Parameters
    ----------
    tree
        Every file of the dataset (``Source.tree``). Only names and sizes are looked at; ``.bidsignore`` is not applied.
    left_out
        What the source did not take into the tree; becomes part of ``problems``.
    """
    survey = _Survey(tree)
    for path in tree:
        survey.look_at(path)
    recordings = with_collisions(survey.recordings())
    return Discovery(
        recordings=tuple(sorted(recordings, key=lambda recording: recording.path)),
        problems=tuple(sorted((*left_out, *survey.problems), key=lambda problem: (problem.path, problem.sentence))),
        ambiguities=tuple(
            sorted(survey.sidecars.ambiguities, key=lambda ambiguity: (ambiguity.recording, ambiguity.others))
        ),
        dataset_files=tuple(path for path in DATASET_FILES if path in tree),
        lookups=survey.sidecars.lookups,
    )


def discover_source(source: Source) -> Discovery:
    """The recordings of a source.

    Raises
    ------
    Refused
        It holds no recording and no dataset_description.json, so it is no BIDS dataset; or it cannot be listed.
    """
    tree = source.tree()
    discovery = discover(tree, source.left_out())
    if not discovery.recordings and DATASET_FILES[0] not in tree:
        raise Refused(
            f"SOURCE {source.url} does not look like a BIDS dataset: it has no dataset_description.json and no recording."
        )
    return discovery


@dataclass(frozen=True, slots=True)
class _Primary:
    """A recording before its sidecars are known."""

    path: str
    format: str
    members: tuple[str, ...]
    splits: tuple[str, ...] = ()


class _Survey:
    """Sorts paths into recordings, members, companions and sidecars."""

    def __init__(self, tree: Mapping[str, TreeEntry]) -> None:
        self.problems: list[Problem] = []
        self.sidecars = SidecarIndex()
        self._tree = tree
        self._endings = endings()
        self._companion_endings = frozenset().union(*self._endings.companions.values())
        self._folders = Folders(tree, self._endings.folders)
        self._inner: dict[FolderRecording, list[str]] = defaultdict(list)
        self._primaries: list[_Primary] = []
        self._splits: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
        self._others = Others()
        self._companions: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._vague: list[str] = []

    def look_at(self, path: str) -> None:
        """Put one path where it belongs."""
        folder, name = split_path(path)
        standing = self._folders.standing(folder)
        if standing is EXCLUDED or (standing is None and name in EXCLUDED_SEGMENTS):
            return
        stem, extension = split_extension(name)
        lowered = extension.lower()
        is_vague = lowered in self._endings.vague
        format_name = None if is_vague and not named_as_a_recording(path) else self._endings.files.get(lowered)
        if standing is not None:
            self._inner[standing].append(path)
            if format_name is not None:
                self._problem(
                    path, f"lies inside the recording {printable(standing.path)} and is no recording of its own"
                )
        elif (why := unpublishable(path)) is not None:
            what = "this recording is not counted" if format_name else "this file is not used"
            self._problem(path, f"{why}; {what}, rename it")
        elif calibration_kind(name) is not None:
            self.sidecars.add(path)
        elif format_name is not None and is_vague:
            self._vague.append(path)
        elif format_name is not None and not is_marker(stem, format_name):
            self._others.known(folder, stem, lowered)
            self._primary(path, stem, lowered, format_name)
        elif lowered in {".tsv", ".json"}:
            self.sidecars.add(path)
        else:
            if lowered in self._companion_endings:
                self._companions[folder, stem.lower()].append(path)
            self._others.look_at(path, folder, stem, lowered)

    def recordings(self) -> Iterable[DiscoveredRecording]:
        """Every recording found, once all paths were looked at."""
        self._decide_vague()
        for primary in self._primaries:
            yield self._finish(primary)
        for group in self._splits.values():
            yield self._finish(self._joined(sorted(group)))
        for inner, paths in self._inner.items():
            if (why := unpublishable(inner.path)) is not None:
                self._problem(inner.path, f"{why}; this recording is not counted, rename it")
                continue
            if inner.format in FOLDER_NAMES:
                yield self._without_reader(folder_of(inner.path, inner.format, sorted(paths)))
                continue
            recording = self._finish(_Primary(inner.path, inner.format, tuple(sorted(paths))))
            odd = next((path for path in recording.members if unpublishable(path)), None)
            yield recording if odd is None else _unreadable(recording, odd)
        for other in self._others.found():
            yield self._without_reader(other)

    def _decide_vague(self) -> None:
        """Files whose ending means many things are recordings, but for those beside one whose ending says what it is."""
        decided = [path for path in self._vague if not self._others.is_known(*_place(path)[:2])]
        for path in decided:
            folder, stem, extension = _place(path)
            self._others.known(folder, stem, extension)
            self._primary(path, stem, extension, self._endings.files[extension])

    def _without_reader(self, other: OtherRecording) -> DiscoveredRecording:
        """Counted, and a failure at once; nothing is looked for beside it, because nothing will read it."""
        store = store_path(other.path, other.extension)
        parsed = parse_name(split_path(store)[1])
        sizes = [self._tree[path].size_bytes for path in other.members]
        return DiscoveredRecording(
            path=other.path,
            zarr=store,
            format=other.format,
            modality=parsed.modality,
            entities=parsed.entities,
            members=other.members,
            size_bytes=sum(size for size in sizes if size is not None),
            size_known=None not in sizes,
            failure=(FailureCode.UNSUPPORTED_FORMAT, other.detail),
        )

    def _primary(self, path: str, stem: str, extension: str, format_name: str) -> None:
        split = next((found for part in stem.split("_") if (found := _SPLIT.fullmatch(part))), None)
        if format_name == "fif" and split is not None:
            rest = "_".join(part for part in stem.split("_") if part != split.group())
            self._splits[split_path(path)[0], rest + extension].append((int(split.group(1)), path))
            return
        self._primaries.append(_Primary(path, format_name, (path,)))

    def _joined(self, group: list[tuple[int, str]]) -> _Primary:
        """One recording of all its splits, named by the lowest that is there."""
        paths = tuple(path for _, path in group)
        numbers = [number for number, _ in group]
        if len(set(numbers)) < len(numbers):
            self._problem(paths[0], "two files of this recording claim the same split number")
        if missing := sorted(set(range(numbers[0], min(numbers[-1], numbers[0] + 10_000))) - set(numbers)):
            self._problem(paths[0], f"split {missing[0]} of this recording is missing")
        return _Primary(paths[0], "fif", paths, paths)

    def _finish(self, primary: _Primary) -> DiscoveredRecording:
        # a 4D/BTi folder has no ending, so a dot in its name is part of the name
        extension = "" if primary.format == "bti" else split_extension(split_path(primary.path)[1])[1]
        store = store_path(primary.path, extension)
        name = split_path(store)[1]
        parsed = parse_name(name)
        companions = self._companions_of(primary)
        sizes = [self._tree[path].size_bytes for path in (*primary.members, *companions)]
        return DiscoveredRecording(
            path=primary.path,
            zarr=store,
            format=primary.format,
            modality=parsed.modality,
            entities=parsed.entities,
            members=primary.members,
            companions=companions,
            split_members=primary.splits,
            sidecars=self.sidecars.resolve(
                primary.path, name, calibrated=primary.format == "fif" and parsed.modality in {"meg", None}
            ),
            size_bytes=sum(size for size in sizes if size is not None),
            size_known=None not in sizes,
        )

    def _companions_of(self, primary: _Primary) -> tuple[str, ...]:
        """Same folder, same stem; a stem that differs in case counts only where no exact one has the extension."""
        wanted = self._endings.companions.get(primary.format)
        if wanted is None:
            return ()
        primary_stem = split_extension(primary.path)[0]
        folder, stem = split_path(primary_stem)
        exact: dict[str, list[str]] = defaultdict(list)
        loose: dict[str, list[str]] = defaultdict(list)
        for path in self._companions.get((folder, stem.lower()), ()):
            own_stem, extension = split_extension(path)
            if extension.lower() in wanted:
                (exact if own_stem == primary_stem else loose)[extension.lower()].append(path)
        return tuple(sorted(path for paths in {**loose, **exact}.values() for path in paths))

    def _problem(self, path: str, sentence: str) -> None:
        self.problems.append(Problem(printable(path), sentence))


def _place(path: str) -> tuple[str, str, str]:
    """Folder, stem and ending in lower case."""
    folder, name = split_path(path)
    stem, extension = split_extension(name)
    return folder, stem, extension.lower()


def _unreadable(recording: DiscoveredRecording, odd: str) -> DiscoveredRecording:
    detail = f"{printable(odd)}: {unpublishable(odd)}, so the folder cannot be read whole"
    members = tuple(path for path in recording.members if not unpublishable(path))
    return replace(recording, members=members, failure=(FailureCode.FILE_READ_ERROR, detail))
