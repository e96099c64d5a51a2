"""Calls run in child processes under a memory limit, a time limit and a lifeline; the supervisor side.

A result message outranks the exit code; the exit of each child arrives on a socket of its own (``tasks.convert.fork_server``),
so the threads of a worker share nothing but the list of idle children.
"""

from __future__ import annotations

import pickle
import select
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from infra.host import ProcessMemory, oom_kill_count
from tasks.convert.child_process import ChildOrder, Reply
from tasks.convert.forking import Child, ForkServer
from tasks.convert.verdict import ChildExit

__all__ = ["ChildLostError", "ChildPool", "ChildRaisedError", "ChildResult"]

POLL_S: Final = 0.1
# The first conversion of a child costs a tenth of a second more; what one retains does not grow, and is looked at before each.
MAX_SERVED: Final = 200
SMALL_PERMITTED_BYTES: Final = 512 << 20
RETAINED_BYTES: Final = 32 << 20  # an idle child's memory is charged to nobody, so it may keep only this much
ALWAYS_RETAINED_BYTES: Final = (
    8 << 20
)  # 6 to 8 MiB are shared pages that any conversion writes to; the next one needs them too
_DEATH_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class ChildResult:
    """What a call returned and the memory it took, in bytes; None when the kernel's peak could not be trusted."""

    value: Any
    measured_bytes: int | None


class ChildLostError(Exception):
    """The child ended without an answer: by itself, by a signal, or because its supervisor killed it."""

    def __init__(self, exit_: ChildExit, measured_bytes: int | None) -> None:
        super().__init__(str(exit_))
        self.exit = exit_
        self.measured_bytes = measured_bytes


class ChildRaisedError(Exception):
    """The call raised; ``explained`` is what its ``explain`` made of that, or a ``child_process.Raised``."""

    def __init__(self, explained: Any, measured_bytes: int | None) -> None:
        super().__init__(str(explained))
        self.explained = explained
        self.measured_bytes = measured_bytes


class ChildPool:
    """Runs calls in children forked from one preloaded server. Safe to use from many threads.

    Parameters
    ----------
    environment
        Whole environment of the fork server and its children (``infra.cluster.child_environment``).
    preload
        Modules the fork server imports before its first fork.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        preload: Sequence[str] = ("tasks.convert.preload",),
        *,
        max_served: int = MAX_SERVED,
        small_permitted_bytes: int = SMALL_PERMITTED_BYTES,
        poll_s: float = POLL_S,
    ) -> None:
        self._server = ForkServer(environment, preload)
        self._max_served = max_served
        self._small_permitted_bytes = small_permitted_bytes
        self._poll_s = poll_s
        self._idle: list[Child] = []
        self._idle_lock = threading.Lock()
        self._closed = False

    @property
    def fork_server_pid(self) -> int | None:
        """Process id of the fork server; None before the first child and after ``close``."""
        return self._server.pid

    def warm_up(self) -> int:
        """Start the fork server and one child now, so that the first recording need not wait; the server's threads."""
        self._put_back(self._server.fork())
        return self._server.thread_count

    def run(
        self,
        function: str,
        *args: Any,
        permitted_bytes: int,
        timeout_s: float,
        in_memory: bool = True,
        explain: str | None = None,
        cancelled: Callable[[], bool] = lambda: False,
        on_poll: Callable[[int], None] = lambda _bytes: None,
    ) -> ChildResult:
        """What ``function(*args)`` returns in a child; it is given as ``module:name``, and arguments and result must pickle.

        Parameters
        ----------
        permitted_bytes, timeout_s
            The child is killed when its anonymous and shared memory exceed this above its birth, or at this age.
        in_memory
            Measure by the kernel's peak (no spike is missed); otherwise by the polled peak, which leaves mapped files out.
        explain
            ``module:name`` of a function that turns an exception into a picklable value, called in the child.
        cancelled, on_poll
            Asked, and told the bytes in use, ten times a second.

        Raises
        ------
        ChildRaisedError
            The call raised.
        ChildLostError
            The child ended without an answer.
        OSError
            There was no room for a child.
        """
        small = permitted_bytes <= self._small_permitted_bytes
        child = self._take_idle(permitted_bytes) if small else self._server.fork()
        watch = _Watch(child, permitted_bytes, timeout_s, cancelled=cancelled, on_poll=on_poll, poll_s=self._poll_s)
        keep = False
        try:
            reply = watch.until_answer(ChildOrder(function, args, permitted_bytes, explain))
            measured = watch.measured_bytes(reply, in_memory=in_memory)
            child.served += 1
            keep = reply.ok and small and child.served < self._max_served
        finally:
            self._put_back(child) if keep else child.end()
        value = pickle.loads(reply.value)  # noqa: S301 - our own child wrote it
        if not reply.ok:
            raise ChildRaisedError(value, measured)
        return ChildResult(value, measured)

    def close(self) -> None:
        """Kill every child, whoever waits for it, and end the fork server."""
        with self._idle_lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for child in idle:
            child.end()
        self._server.close()

    def _take_idle(self, permitted_bytes: int) -> Child:
        """An idle child that kept little memory, or a new one."""
        while True:
            with self._idle_lock:
                child = self._idle.pop() if self._idle else None
            if child is None:
                return self._server.fork()
            retained = child.real_bytes()
            if child.is_running() and retained is not None and retained <= _may_retain(permitted_bytes):
                return child
            # What earlier recordings left in it would be blamed on the next one.
            child.end()

    def _put_back(self, child: Child) -> None:
        with self._idle_lock:
            if not self._closed:
                self._idle.append(child)
                return
        child.end()


def _may_retain(permitted_bytes: int) -> int:
    return max(min(RETAINED_BYTES, permitted_bytes // 4), ALWAYS_RETAINED_BYTES)


class _Watch:
    """One call under watch."""

    def __init__(
        self,
        child: Child,
        permitted_bytes: int,
        timeout_s: float,
        *,
        cancelled: Callable[[], bool],
        on_poll: Callable[[int], None],
        poll_s: float,
    ) -> None:
        self._child = child
        self._permitted_bytes = permitted_bytes
        self._deadline = time.monotonic() + timeout_s
        self._poll_s = poll_s
        self._cancelled = cancelled
        self._on_poll = on_poll
        self._oom_kills = 0
        self._last_bytes = 0
        self._peak_bytes = 0

    def until_answer(self, order: ChildOrder) -> Reply:
        """The child's answer to ``order``. Raises ChildLostError."""
        child = self._child
        self._oom_kills = oom_kill_count()
        child.send(order)
        poller = select.poll()
        poller.register(child.channel, select.POLLIN)
        poller.register(child.status, select.POLLIN)
        while True:
            ready = dict(poller.poll(self._poll_s * 1000))
            reply = child.answer()
            if reply is not None:
                return reply
            if child.status.fileno() in ready:
                return self._last_word(None)
            reason = self._reason_to_kill()
            if reason is not None:
                child.kill()
                return self._last_word(reason)
            if ready:
                # A closed channel polls ready for ever; its exit code is on the way.
                time.sleep(0.002)

    def measured_bytes(self, reply: Reply, *, in_memory: bool) -> int | None:
        """Peak above the child's birth."""
        birth = self._child.birth
        if birth is None:
            return None
        if in_memory:
            return None if reply.peak_bytes is None else max(reply.peak_bytes - birth.rss_bytes, 0)
        return max(self._peak_bytes, _above(reply.after, birth))

    def _reason_to_kill(self) -> str | None:
        used = self._child.real_bytes()
        if used is not None:
            self._last_bytes = used
            self._peak_bytes = max(self._peak_bytes, used)
            self._on_poll(used)
            if used > self._permitted_bytes:
                return "memory"
        if time.monotonic() > self._deadline:
            return "timeout"
        return "cancelled" if self._cancelled() else None

    def _last_word(self, killed_for: str | None) -> Reply:
        exitcode = self._child.wait_exit(_DEATH_TIMEOUT_S)
        reply = self._child.answer()
        if reply is not None and killed_for != "cancelled":
            return reply
        if exitcode is None and killed_for is None:
            killed_for = "fork_server"
        raise ChildLostError(
            ChildExit(
                exitcode=exitcode,
                signal=-exitcode if exitcode is not None and exitcode < 0 else None,
                killed_for=killed_for,
                oom_kill_seen=oom_kill_count() > self._oom_kills,
                last_rss_bytes=self._last_bytes,
                permitted_bytes=self._permitted_bytes,
            ),
            self._peak_bytes,
        )


def _above(now: ProcessMemory, birth: ProcessMemory) -> int:
    return max(now.real_bytes - birth.real_bytes, 0)
