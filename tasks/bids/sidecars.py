"""The one answer to "which sidecars apply to this recording": BIDS inheritance over an index of all of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from tasks.bids.entities import parse_name, part_key, split_path
from tasks.bids.recording import Ambiguity, Sidecars
from tasks.bids.scope import CALIBRATION, CROSSTALK, calibration_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["SidecarIndex"]

_TABLES = frozenset({"channels.tsv", "events.tsv", "electrodes.tsv"})
_OWN_ENTITY = {"electrodes.tsv": "space", "coordsystem.json": "space", CALIBRATION: "acq", CROSSTALK: "acq"}
"""The entity that names a sidecar of this kind and not the recordings it applies to."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One sidecar. ``space`` is the value of its space entity, which names the sidecar and not the recording."""

    path: str
    parts: frozenset[str]
    space: str | None


@dataclass(slots=True)
class _Shelf:
    """The sidecars of one kind in one folder, by the entity keys they use and then by their parts."""

    by_keys: dict[frozenset[str], dict[frozenset[str], list[_Candidate]]] = field(default_factory=dict)
    usable: dict[frozenset[str], list[frozenset[str]]] = field(default_factory=dict)

    def keys_within(self, keys: frozenset[str]) -> list[frozenset[str]]:
        if keys not in self.usable:
            self.usable[keys] = [used for used in self.by_keys if used <= keys]
        return self.usable[keys]


@dataclass(frozen=True, slots=True)
class _Asking:
    """A recording as the index sees it."""

    path: str
    folder: str
    parts: frozenset[str]
    keys: frozenset[str]

    def parts_under(self, keys: frozenset[str]) -> frozenset[str]:
        if keys == self.keys:
            return self.parts
        return frozenset(part for part in self.parts if _key(part) in keys)


class SidecarIndex:
    """Every sidecar of a dataset, found by hashing.

    A sidecar applies to a recording when it lies in the recording's folder or above and each part of its name but the
    suffix (``task-rest``; also a part that is no entity) is a part of the recording's name; a bare ``channels.tsv``
    applies to all below it. The deepest folder wins, then the most parts, then the first path; equals are reported in
    ``ambiguities``. In one folder the sidecars of a kind use few combinations of entity keys, so a look-up tries each
    combination once instead of each file: the work is recordings × levels × combinations, counted in ``lookups``.
    """

    def __init__(self) -> None:
        self.lookups = 0
        self.ambiguities: list[Ambiguity] = []
        self._shelves: dict[tuple[str, str], _Shelf] = {}
        self._above: dict[tuple[str, str], list[_Shelf]] = {}

    def add(self, path: str) -> None:
        """Take the file in if its name is a sidecar's; any other is ignored. All of them before the first ``resolve``."""
        folder, name = split_path(path)
        parsed = parse_name(name)
        kind = calibration_kind(name) or parsed.suffix + parsed.extension
        if kind not in _TABLES and parsed.extension != ".json" and kind not in _OWN_ENTITY:
            return
        own = _OWN_ENTITY.get(kind)
        parts, keys = _parts_and_keys(parsed.parts, own)
        space = parsed.entities.get("space") if own == "space" else None
        shelf = self._shelves.get((folder, kind))
        if shelf is None:
            shelf = self._shelves[folder, kind] = _Shelf()
        shelf.by_keys.setdefault(keys, {}).setdefault(parts, []).append(_Candidate(path, parts, space))

    def resolve(self, path: str, name: str, *, calibrated: bool) -> Sidecars:
        """The sidecars that apply to a recording.

        Parameters
        ----------
        path
            Path of the recording; for a folder recording, of the folder.
        name
            The recording's name with any one extension, whose parts and suffix count.
        calibrated
            Whether the calibration pair is an input (MEG FIF).
        """
        parsed = parse_name(name)
        asking = _Asking(path, split_path(path)[0], *_parts_and_keys(parsed.parts, None))
        known = len(self.ambiguities)
        electrodes, space = self._electrodes(asking)
        found = Sidecars(
            channels=self._nearest(asking, "channels.tsv"),
            events=self._nearest(asking, "events.tsv"),
            electrodes=electrodes,
            coordsystem=self._coordsystem(asking, space),
            signal_json=self._chain(asking, f"{parsed.suffix}.json"),
            events_json=self._chain(asking, "events.json"),
            calibration=self._nearest(asking, CALIBRATION) if calibrated else None,
            crosstalk=self._nearest(asking, CROSSTALK) if calibrated else None,
        )
        ties = tuple(self.ambiguities[known:])
        return replace(found, ties=ties) if ties else found

    def _levels(self, asking: _Asking, kind: str) -> Iterator[list[_Candidate]]:
        """Applicable sidecars folder by folder, deepest first, empty folders left out."""
        for shelf in self._shelves_above(asking.folder, kind):
            found: list[_Candidate] = []
            for keys in shelf.keys_within(asking.keys):
                self.lookups += 1
                found += shelf.by_keys[keys].get(asking.parts_under(keys), ())
            if found:
                yield found

    def _shelves_above(self, folder: str, kind: str) -> list[_Shelf]:
        """The shelves of a kind in the folder and above, deepest first; worked out once a folder."""
        known = self._above.get((folder, kind))
        if known is None:
            known = [shelf for above in _upwards(folder) if (shelf := self._shelves.get((above, kind))) is not None]
            self._above[folder, kind] = known
        return known

    def _nearest(self, asking: _Asking, kind: str) -> str | None:
        found = next(self._levels(asking, kind), None)
        return None if found is None else self._pick(asking, found).path

    def _chain(self, asking: _Asking, kind: str) -> tuple[str, ...]:
        chain: list[str] = []
        for found in self._levels(asking, kind):
            found.sort(key=lambda candidate: (len(candidate.parts), candidate.path))
            by_count: dict[int, list[str]] = {}
            for candidate in found:
                by_count.setdefault(len(candidate.parts), []).append(candidate.path)
            for equals in by_count.values():
                if len(equals) > 1:
                    self.ambiguities.append(Ambiguity(asking.path, equals[-1], tuple(equals[:-1])))
            chain[:0] = [candidate.path for candidate in found]
        return tuple(chain)

    def _electrodes(self, asking: _Asking) -> tuple[str | None, str | None]:
        """Path and space: without space first, then one whose coordinate system is described."""
        found = next(self._levels(asking, "electrodes.tsv"), None)
        if found is None:
            return None, None
        described = {candidate.space for level in self._levels(asking, "coordsystem.json") for candidate in level}
        chosen = self._pick(
            asking, found, lambda candidate: (candidate.space is not None, candidate.space not in described)
        )
        return chosen.path, chosen.space

    def _coordsystem(self, asking: _Asking, space: str | None) -> str | None:
        """The one of the electrodes' space; else one without space; else, for electrodes without, the only one."""
        levels = list(self._levels(asking, "coordsystem.json"))
        for wanted in dict.fromkeys((space, None)):
            for level in levels:
                if fitting := [candidate for candidate in level if candidate.space == wanted]:
                    return self._pick(asking, fitting).path
        others = sorted(candidate.path for level in levels for candidate in level)
        if space is not None or not others:
            return None
        if len(others) > 1:
            self.ambiguities.append(Ambiguity(asking.path, None, tuple(others)))
            return None
        return others[0]

    def _pick(
        self, asking: _Asking, found: list[_Candidate], prefer: Callable[[_Candidate], tuple[bool, ...]] = lambda _: ()
    ) -> _Candidate:
        """The candidate that is preferred, then has most parts, then comes first; equals are noted."""
        ranked = sorted(found, key=lambda candidate: (prefer(candidate), -len(candidate.parts), candidate.path))
        first = ranked[0]
        rank = (prefer(first), len(first.parts))
        equals = [other.path for other in ranked[1:] if (prefer(other), len(other.parts)) == rank]
        if equals:
            self.ambiguities.append(Ambiguity(asking.path, first.path, tuple(equals)))
        return first


def _upwards(folder: str) -> Iterator[str]:
    while folder:
        yield folder
        folder = split_path(folder)[0]
    yield ""


@lru_cache(maxsize=4096)
def _parts_and_keys(parts: tuple[str, ...], but: str | None) -> tuple[frozenset[str], frozenset[str]]:
    """The parts as a set, those of one entity left out, and the keys they count under."""
    kept = frozenset(part for part in parts if but is None or part_key(part) != but)
    return kept, frozenset(map(_key, kept))


@lru_cache(maxsize=1 << 16)
def _key(part: str) -> str:
    """The key under which a part counts: the entity's, or the whole part when it is none."""
    return part_key(part) or f"={part}"
