"""Publications beside a run: nothing waits for one, and two never meet."""

from __future__ import annotations

import threading
from collections.abc import Callable

from contract.errors import PublishError
from flows.interim import InterimPublisher

PATIENCE_S = 60


def test_a_slow_publication_holds_nobody_up_and_meets_no_other() -> None:
    begun, may_end = threading.Event(), threading.Event()
    published: list[int] = []
    prepared: list[int] = []

    def prepare(number: int) -> Callable[[], Callable[[], None]]:
        def prepared_now() -> Callable[[], None]:
            prepared.append(number)

            def publish() -> None:
                begun.set()
                assert may_end.wait(PATIENCE_S)
                published.append(number)

            return publish

        return prepared_now

    interim = InterimPublisher(every_s=0.0)
    interim.consider(1, prepare(1))
    assert begun.wait(PATIENCE_S)
    # while the first is under way the run goes on, and no second one begins
    interim.consider(2, prepare(2))
    assert (prepared, published) == ([1], [])
    may_end.set()
    interim.wait()
    interim.consider(1, prepare(3))
    interim.wait()
    assert published == [1], "no store came since"
    interim.consider(2, prepare(4))
    interim.wait()
    assert published == [1, 4]


def test_one_that_fails_is_tried_again() -> None:
    tried: list[int] = []

    def prepare() -> Callable[[], None]:
        def publish() -> None:
            tried.append(1)
            raise PublishError("the target is away")

        return publish

    interim = InterimPublisher(every_s=0.0)
    for _ in range(2):
        interim.consider(5, prepare)
        interim.wait()
    assert len(tried) == 2


def test_nothing_is_published_before_its_time() -> None:
    interim = InterimPublisher(every_s=3600.0)
    interim.consider(100, lambda: lambda: None)
    interim.wait()
    assert not [thread for thread in threading.enumerate() if thread.name == "zarrmill-interim"]
