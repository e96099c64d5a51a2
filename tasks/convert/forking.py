"""The starter's side of ``tasks.convert.fork_server``: the server and each of its children, by their sockets."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final

from infra.host import process_memory
from tasks.convert.child_process import LENGTH, ChildOrder, Reply
from tasks.convert.fork_server import READY

__all__ = ["Child", "ForkServer"]

_START_TIMEOUT_S: Final = 120.0  # a cold disk: the preload took 2 to 4 s on a warm one
_FORK_TIMEOUT_S: Final = 60.0
_DEATH_TIMEOUT_S: Final = 10.0
_READ_BYTES: Final = 1 << 20


class _ForkServerGoneError(Exception):
    pass


class Child:
    """One child as its supervisor sees it. Used by one thread at a time."""

    def __init__(self, pid: int, channel: socket.socket, lifeline: int, status: socket.socket) -> None:
        self.pid = pid
        self.served = 0
        self.birth = process_memory(pid)
        self.channel = channel
        self.status = status
        self._lifeline: int | None = lifeline
        self._buffer = bytearray()
        channel.setblocking(False)

    def send(self, order: ChildOrder) -> None:
        """Hand the order over; a child that is already gone is noticed by whoever waits for the answer."""
        data = pickle.dumps(order, protocol=pickle.HIGHEST_PROTOCOL)
        view = memoryview(LENGTH.pack(len(data)) + data)
        deadline = time.monotonic() + _FORK_TIMEOUT_S
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while view:
                try:
                    view = view[self.channel.send(view) :]
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        return
                    select.select([], [self.channel], [], 1.0)

    def answer(self) -> Reply | None:
        """Return the whole answer if it has arrived; reads what there is and never waits."""
        while True:
            try:
                part = self.channel.recv(_READ_BYTES)
            except (BlockingIOError, ConnectionResetError):
                break
            if not part:
                break
            self._buffer += part
        if len(self._buffer) < LENGTH.size:
            return None
        (size,) = LENGTH.unpack_from(self._buffer)
        if len(self._buffer) < LENGTH.size + size:
            return None
        reply = pickle.loads(memoryview(self._buffer)[LENGTH.size :])  # noqa: S301 - our own child wrote it
        self._buffer.clear()
        assert isinstance(reply, Reply)
        return reply

    def real_bytes(self) -> int | None:
        """RssAnon + RssShmem above the child's birth; None when it is gone."""
        now = process_memory(self.pid)
        return None if now is None or self.birth is None else max(now.real_bytes - self.birth.real_bytes, 0)

    def wait_exit(self, timeout_s: float) -> int | None:
        """Exit code (negative: signal) once the fork server tells it; None when that server is gone or too slow."""
        self.status.settimeout(timeout_s)
        try:
            message = self.status.recv(64)
        except (TimeoutError, ConnectionResetError):
            return None
        return os.waitstatus_to_exitcode(int(message.split()[1])) if message.startswith(b"exit") else None

    def kill(self) -> None:
        """SIGKILL by way of the lifeline: needs no pid, so it can never hit another process."""
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    def is_running(self) -> bool:
        """Whether nothing has been said about its end."""
        return not select.select([self.status], [], [], 0)[0]

    def end(self) -> None:
        """Kill it if it lives and close everything."""
        self.kill()
        self.channel.close()
        self.status.close()


class ForkServer:
    """The starter's side of ``tasks.convert.fork_server``: started when first needed, again when it died."""

    def __init__(self, environment: Mapping[str, str], preload: Sequence[str]) -> None:
        self._environment = dict(environment)
        self._preload = tuple(preload)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._lifeline = -1
        self.thread_count = 0

    @property
    def pid(self) -> int | None:
        """Process id of the server; None while there is none."""
        return None if self._process is None else self._process.pid

    def fork(self) -> Child:
        """Fork a new child. Raises OSError when the machine has no room for one."""
        for _ in range(3):
            control = self._running()
            with contextlib.suppress(_ForkServerGoneError):
                return _request_child(control)
            self._discard(control)
        raise ChildProcessError("the fork server ends as soon as it is started")

    def _running(self) -> socket.socket:
        with self._lock:
            if self._control is None:
                self._start()
            assert self._control is not None
            return self._control

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        watched, self._lifeline = os.pipe2(os.O_CLOEXEC)
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "tasks.convert.fork_server",
                    str(theirs.fileno()),
                    str(watched),
                    *self._preload,
                ],
                env=self._environment,
                pass_fds=[theirs.fileno(), watched],
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno(),
                start_new_session=True,
            )
        os.close(watched)
        ours.settimeout(_START_TIMEOUT_S)
        try:
            said = ours.recv(64)
        except (TimeoutError, ConnectionResetError):
            said = b""
        if not said.startswith(READY):
            ours.close()
            self._process.kill()
            code = self._process.wait()
            os.close(self._lifeline)
            raise ChildProcessError(f"the fork server did not start (exit {code}); its error is in the worker's log")
        ours.settimeout(None)
        self.thread_count = int(said.split()[1])
        self._control = ours

    def _discard(self, control: socket.socket) -> None:
        with self._lock:
            if self._control is control:
                self._close_locked()

    def close(self) -> None:
        """End the server, and with it every child."""
        with self._lock:
            self._close_locked()

    def _close_locked(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            try:
                self._process.wait(_DEATH_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            os.close(self._lifeline)
            self._process = None


def _request_child(control: socket.socket) -> Child:
    channel, their_channel = socket.socketpair()
    status, their_status = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    their_lifeline, lifeline = os.pipe2(os.O_CLOEXEC)
    status.settimeout(_FORK_TIMEOUT_S)
    try:
        try:
            socket.send_fds(control, [b"fork"], [their_channel.fileno(), their_lifeline, their_status.fileno()])
        finally:
            their_channel.close()
            their_status.close()
            os.close(their_lifeline)
        pid = _pid_told(status.recv(64))
    except BaseException as error:
        os.close(lifeline)
        channel.close()
        status.close()
        if isinstance(error, (BrokenPipeError, ConnectionResetError, TimeoutError)):
            raise _ForkServerGoneError from error
        raise
    return Child(pid, channel, lifeline, status)


def _pid_told(message: bytes) -> int:
    kind, _, number = message.partition(b" ")
    if kind == b"pid":
        return int(number)
    if kind == b"errno":
        raise OSError(int(number), f"no child could be forked: {os.strerror(int(number))}")
    raise _ForkServerGoneError
