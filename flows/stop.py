"""How a run is asked to stop: a word that threads may read, and the signals that set it."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["StopKind", "StopSignal", "StopState", "listening"]

StopKind = Literal["SIGINT", "SIGTERM"]
StopState = Literal["go", "finish", "now"]


class StopSignal:
    """Whether a run goes on. The first request asks it to finish, a second one to stop at once.

    Safe to use from any thread; ``request`` is safe in a signal handler, because it takes no lock.
    """

    def __init__(self) -> None:
        self._kinds: list[StopKind] = []
        self._asked = threading.Event()
        self._cancelled = False

    def request(self, kind: StopKind) -> None:
        """Ask to stop; the second time, to stop at once."""
        # list.append is atomic. A lock here could be held by the very thread that the signal interrupts.
        self._kinds.append(kind)
        self._asked.set()

    def cancel(self) -> None:
        """Ask to stop because what the run was asked for is not wanted any more."""
        self._cancelled = True
        self.request("SIGTERM")

    @property
    def goes_on_later(self) -> bool:
        """Whether the run was asked to stop, and what it leaves is still wanted."""
        return bool(self._kinds) and not self._cancelled

    @property
    def state(self) -> StopState:
        """``go``, then ``finish`` (start nothing new, let go of what can wait, publish), then ``now``."""
        match len(self._kinds):
            case 0:
                return "go"
            case 1:
                return "finish"
            case _:
                return "now"

    @property
    def kind(self) -> StopKind | None:
        """The first signal that asked, which decides the exit code; None while nobody did."""
        return self._kinds[0] if self._kinds else None

    def wait(self, timeout_s: float) -> bool:
        """Sleep until somebody asks to stop, ``timeout_s`` at most; whether somebody did."""
        return self._asked.wait(timeout_s)


@contextmanager
def listening(stop: StopSignal) -> Iterator[None]:
    """While inside, SIGINT and SIGTERM go to ``stop``; afterwards the handlers that stood before do again.

    Call it in the main thread, and again inside a Prefect flow: the engine puts its own SIGTERM handler in place when a
    flow starts, and that one would end the process before anything is published. A third signal is not caught any more:
    it ends the process like any other, for the case that a soft stop itself hangs.
    """
    names: dict[int, StopKind] = {signal.SIGINT: "SIGINT", signal.SIGTERM: "SIGTERM"}

    def heard(number: int, _frame: FrameType | None) -> None:
        stop.request(names[number])
        if stop.state == "now":
            for each in names:
                signal.signal(each, signal.SIG_DFL)

    before = {number: signal.signal(number, heard) for number in names}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
