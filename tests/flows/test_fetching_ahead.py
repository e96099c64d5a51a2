"""What is far away is fetched while others convert: when, where, and what it is charged meanwhile."""

from __future__ import annotations

from dataclasses import replace

from flows.admission import Admission
from flows.ledger import Capacity, Request, places_ahead


def remote(key: object, memory: int, scratch: int = 1) -> Request:
    return Request(key=key, memory_bytes=memory, scratch_bytes=scratch, is_remote=True)


def test_what_is_far_away_is_fetched_ahead_and_charged_its_scratch_only() -> None:
    admission = Admission()
    admission.set_worker("w", Capacity(memory_bytes=100, scratch_bytes=50, slots=1, ahead=1))
    for key in range(3):
        admission.add(remote(key, 90, scratch=20))
    first, ahead = admission.place(0)
    assert (first.request.key, first.ahead, ahead.request.key, ahead.ahead) == (0, False, 1, True)
    ledger = admission.ledger("w")
    assert (ledger.free_memory_bytes, ledger.free_scratch_bytes, ledger.free_slots) == (10, 10, 0)
    assert len(admission) == 2
    admission.fetched(1)
    admission.release(0)
    second, *_rest = admission.place(1)
    assert (second.request.key, second.ahead, second.worker) == (1, False, "w")


def test_what_is_fetched_ahead_and_small_does_not_pass_a_large_one_that_fits() -> None:
    admission = Admission()
    admission.set_worker("w", Capacity(memory_bytes=100, scratch_bytes=100, slots=2, ahead=1))
    admission.add(remote("running", 60))
    admission.add(remote("other", 30))
    admission.add(remote("small", 5))
    assert [(one.request.key, one.ahead) for one in admission.place(0)] == [
        ("running", False),
        ("other", False),
        ("small", True),
    ]
    admission.fetched("small")
    admission.add(remote("large", 60))
    admission.release("running")
    assert [(one.request.key, one.ahead) for one in admission.place(1)] == [("large", False)]


def test_what_is_fetched_to_a_busy_worker_starts_on_one_that_is_free() -> None:
    admission = Admission()
    admission.set_worker("a", Capacity(memory_bytes=100, scratch_bytes=100, slots=1, ahead=1))
    admission.set_worker("b", Capacity(memory_bytes=99, scratch_bytes=100, slots=1, ahead=0))
    for key, memory in (("x", 100), ("y", 90), ("z", 80)):
        admission.add(remote(key, memory))
    placed = {one.request.key: (one.worker, one.ahead) for one in admission.place(0)}
    assert placed == {"x": ("a", False), "y": ("b", False), "z": ("a", True)}
    admission.release("y")
    (moved,) = admission.place(1)
    assert (moved.request.key, moved.worker, moved.ahead) == ("z", "b", False)
    assert admission.ledger("a").free_scratch_bytes == 99


def test_what_is_fetched_ahead_is_named_when_its_worker_shrinks_for_good() -> None:
    admission = Admission()
    capacity = Capacity(memory_bytes=100, scratch_bytes=100, slots=1, ahead=1)
    admission.set_worker("w", capacity)
    admission.add(remote("x", 90))
    admission.add(remote("y", 80))
    assert len(admission.place(0)) == 2
    admission.set_worker("w", replace(capacity, memory_bytes=70))
    assert admission.stranded() == ["y"]
    admission.release("y")
    assert admission.stranded() == []
    assert len(admission) == 0


def test_one_is_fetched_for_each_conversion_that_will_end() -> None:
    admission = Admission()
    admission.set_worker("w", Capacity(memory_bytes=100, scratch_bytes=100, slots=2, ahead=places_ahead(2)))
    for key in range(5):
        admission.add(remote(key, 40))
    assert [(one.request.key, one.ahead) for one in admission.place(0)] == [
        (0, False),
        (1, False),
        (2, True),
        (3, True),
    ]
    admission.fetched(2)
    admission.release(0)
    assert [(one.request.key, one.ahead) for one in admission.place(1)] == [(2, False), (4, True)]


def test_what_fits_one_gap_leaves_the_next_gap_to_another() -> None:
    admission = Admission()
    admission.set_worker("w", Capacity(memory_bytes=100, scratch_bytes=100, slots=2, ahead=2))
    for key, memory in (("large", 80), ("small", 20), ("next", 70), ("tiny", 10)):
        admission.add(remote(key, memory))
    # the first of them to end leaves 80 and is filled by the next large one; the second leaves 20, for which it is too large
    placed = {one.request.key: one.ahead for one in admission.place(0)}
    assert placed == {"large": False, "small": False, "next": True, "tiny": True}


def test_how_many_are_fetched_ahead() -> None:
    assert [places_ahead(slots) for slots in (1, 2, 3, 4, 8)] == [1, 2, 2, 2, 4]
