"""What one worker has and what of it each placed recording holds: books that cannot over-commit. Pure."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

__all__ = ["Capacity", "Ledger", "OverCommitError", "Request", "places_ahead"]


class OverCommitError(RuntimeError):
    """A placement that a worker has no room for: a defect of the caller, never a condition of the machine."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request:
    """One recording that waits.

    Parameters
    ----------
    memory_bytes
        What it is permitted, and so what it is charged.
    seconds
        How long its conversion is expected to take, in any unit that is the same for all; it steers the order and
        nothing else. All equal means that nothing is known.
    is_remote
        Its files must be brought from afar, which takes time; otherwise they are there in no time.
    alone
        It has a worker to itself, after everything else.
    """

    key: Hashable
    memory_bytes: int
    scratch_bytes: int = 0
    seconds: float = 1.0
    is_remote: bool = False
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What one worker has.

    Parameters
    ----------
    slots
        How many recordings it converts at once.
    ahead
        How many more it may fetch before there is memory for them, and how many may queue for a slot where memory abounds.
    scratch_in_memory
        Its scratch is a tmpfs, so scratch is charged as memory too.
    """

    memory_bytes: int
    scratch_bytes: int
    slots: int
    ahead: int = 0
    scratch_in_memory: bool = False


def places_ahead(slots: int) -> int:
    """How many recordings a worker of so many slots fetches ahead: half as many, but one for each of one or two.

    With one for two slots, the files for the second of two conversions that end are not there when its slot comes free.
    """
    return max(slots // 2, min(slots, 2))


@dataclass(slots=True)
class _Held:
    """What one recording holds of a worker."""

    request: Request
    memory_bytes: int
    scratch_bytes: int
    slots: int
    is_fetching: bool


@dataclass(slots=True)
class Ledger:
    """What one worker has, and what of it each recording on it holds."""

    capacity: Capacity
    free_memory_bytes: int = field(init=False)
    free_scratch_bytes: int = field(init=False)
    free_slots: int = field(init=False)
    withheld_memory_bytes: int = field(init=False, default=0)
    withheld_scratch_bytes: int = field(init=False, default=0)
    withheld_slots: int = field(init=False, default=0)
    _held: dict[Hashable, _Held] = field(init=False, default_factory=dict)
    _ahead: dict[Hashable, Request] = field(init=False, default_factory=dict)
    _alone: Hashable | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.free_memory_bytes = self.capacity.memory_bytes
        self.free_scratch_bytes = self.capacity.scratch_bytes
        self.free_slots = self.capacity.slots

    @property
    def usable_memory_bytes(self) -> int:
        """Free memory that nobody outside this ledger uses."""
        return self.free_memory_bytes - self.withheld_memory_bytes

    @property
    def usable_slots(self) -> int:
        """Free slots that nobody outside this ledger uses; negative when some queue."""
        return self.free_slots - self.withheld_slots

    @property
    def in_use_bytes(self) -> int:
        """Memory charged to what is here."""
        return self.capacity.memory_bytes - self.free_memory_bytes

    @property
    def is_open(self) -> bool:
        """Whether there is a slot for one more, and no recording has the worker to itself."""
        return self._alone is None and self.usable_slots > 0

    @property
    def may_queue(self) -> bool:
        """Whether one more could stand in line for a slot without passing one whose files are still being fetched."""
        return (
            self._alone is None
            and 0 >= self.usable_slots > -self.capacity.ahead
            and not any(held.is_fetching and held.slots for held in self._held.values())
        )

    def held_by_conversions(self) -> list[int]:
        """Memory of each that converts here or is about to, in the order in which it was charged."""
        return [held.memory_bytes for held in self._held.values() if held.slots]

    def ahead(self) -> tuple[Request, ...]:
        """What is fetched here before there is memory for it, in the order in which that began."""
        return tuple(self._ahead.values())

    def may_line_up(self, request: Request) -> bool:
        """Whether ``request``, whose files are here or near, may be charged and wait here for the next free slot."""
        held = self._held.get(request.key)
        is_there = not request.is_remote if held is None else not held.is_fetching
        return is_there and not request.alone and self.may_queue and self._has_room(request)

    def charge(self, request: Request) -> int:
        """Memory that ``request`` costs here."""
        return request.memory_bytes + (request.scratch_bytes if self.capacity.scratch_in_memory else 0)

    def could_ever_fit(self, request: Request) -> bool:
        """Whether the worker, empty, has room for ``request``."""
        return (
            self.capacity.slots > 0
            and self.charge(request) <= self.capacity.memory_bytes
            and request.scratch_bytes <= self.capacity.scratch_bytes
        )

    def fits(self, request: Request) -> bool:
        """Whether there is a slot and room for ``request`` now."""
        return self.is_open and not (request.alone and self._held) and self._has_room(request)

    def _has_room(self, request: Request) -> bool:
        held = self._held.get(request.key)
        memory, scratch = (held.memory_bytes, held.scratch_bytes) if held is not None else (0, 0)
        return (
            self.charge(request) - memory <= self.usable_memory_bytes
            and request.scratch_bytes - scratch <= self.free_scratch_bytes - self.withheld_scratch_bytes
        )

    def fits_ahead(self, request: Request) -> bool:
        """Whether the files of ``request`` may be fetched here now, and it is small enough to be converted here later."""
        memory = request.scratch_bytes if self.capacity.scratch_in_memory else 0
        return (
            not request.alone
            and self._alone is None
            and self.could_ever_fit(request)
            and memory <= self.usable_memory_bytes
            and request.scratch_bytes <= self.free_scratch_bytes - self.withheld_scratch_bytes
        )

    def fetch_ahead(self, request: Request) -> None:
        """Charge the scratch of ``request`` only. Raises OverCommitError when it does not fit."""
        if not self.fits_ahead(request) or request.key in self._held:
            raise OverCommitError(f"the files of {request} do not fit {self}")
        memory = request.scratch_bytes if self.capacity.scratch_in_memory else 0
        self._hold(_Held(request, memory, request.scratch_bytes, 0, is_fetching=True))
        self._ahead[request.key] = request

    def take(self, request: Request) -> None:
        """Charge ``request``, which may have been fetched ahead. Raises OverCommitError when it does not fit."""
        before = self._held.get(request.key)
        has_slot = self.is_open or (self.may_queue and not request.alone)
        is_alone = not (request.alone and self._held)
        if not (has_slot and is_alone and self._has_room(request)) or (
            before is not None and request.key not in self._ahead
        ):
            raise OverCommitError(f"{request} does not fit {self}")
        self.release(request.key)
        fetching = request.is_remote if before is None else before.is_fetching
        self._hold(_Held(request, self.charge(request), request.scratch_bytes, 1, is_fetching=fetching))
        if request.alone:
            self._alone = request.key

    def _hold(self, held: _Held) -> None:
        self._held[held.request.key] = held
        self.free_memory_bytes -= held.memory_bytes
        self.free_scratch_bytes -= held.scratch_bytes
        self.free_slots -= held.slots

    def fetched(self, key: Hashable) -> None:
        """Note that the files of ``key`` are here."""
        self._held[key].is_fetching = False

    def converted(self, key: Hashable) -> None:
        """Give back memory and slot of ``key``; its scratch stays charged until ``release``."""
        held = self._held[key]
        if held.slots:
            kept = held.scratch_bytes if self.capacity.scratch_in_memory else 0
            self.free_memory_bytes += held.memory_bytes - kept
            self.free_slots += held.slots
            held.memory_bytes, held.slots = kept, 0

    def release(self, key: Hashable) -> None:
        """Give back all that ``key`` still holds. A key that holds nothing is fine."""
        self._ahead.pop(key, None)
        held = self._held.pop(key, None)
        if held is not None:
            self.free_memory_bytes += held.memory_bytes
            self.free_scratch_bytes += held.scratch_bytes
            self.free_slots += held.slots
        if self._alone is not None and self._alone == key:
            self._alone = None

    def resize(self, capacity: Capacity) -> None:
        """Change what the worker has. What it lost is owed by the next releases: free amounts may be negative."""
        self.free_memory_bytes += capacity.memory_bytes - self.capacity.memory_bytes
        self.free_scratch_bytes += capacity.scratch_bytes - self.capacity.scratch_bytes
        self.free_slots += capacity.slots - self.capacity.slots
        self.capacity = capacity

    def keys(self) -> list[Hashable]:
        """What is here."""
        return list(self._held)
