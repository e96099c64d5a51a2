"""A process that imports the heavy libraries once and forks a child per request, with one thread and nothing else to do.

Run as ``python -m tasks.convert.fork_server FD LIFELINE MODULE…``; FD is a SOCK_SEQPACKET socket to the one who started it,
LIFELINE a pipe that closes with that one, which ends this process even in the middle of an import. It is ours
and not multiprocessing's because that one (a) takes its environment from the starter, (b) makes each child import the starter's
``__main__`` again (1.05 s instead of 0.03 s under a console script that imports Prefect), and (c) reports exit codes through
a table that any other thread's ``Process.start`` may empty (2 threads lost 101 of 1,600). Here each child has a socket of its
own on which its pid and its wait status come back, so there is nothing to share and nothing to lock.

Messages: the starter sends ``fork`` with three descriptors (channel, lifeline, status). On ``status`` it is told
``pid <n>`` or ``errno <n>``, later ``exit <wait status>``, then the socket closes.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
from typing import NoReturn

from infra.host import thread_count
from tasks.convert import child_process

__all__ = ["READY", "main"]

READY = b"ready"
_DESCRIPTORS_PER_CHILD = 3


class _Server:
    def __init__(self, control: socket.socket, lifeline: int) -> None:
        self._control = control
        self._lifeline = lifeline
        self._status: dict[int, socket.socket] = {}
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def serve(self) -> None:
        """Fork and reap until the starter is gone; then take the children along."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command; it decides what ends
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        poller = select.poll()  # epoll would be one more descriptor that every child inherits
        poller.register(self._control, select.POLLIN)
        poller.register(self._wake_read, select.POLLIN)
        while True:
            ready = [descriptor for descriptor, _events in poller.poll()]
            if self._wake_read in ready:
                self._reap()
            if self._control.fileno() in ready and not self._fork_one():
                self._end_all()
                return

    def _fork_one(self) -> bool:
        data, descriptors, _flags, _address = socket.recv_fds(self._control, 64, _DESCRIPTORS_PER_CHILD)
        if not data:
            return False
        channel, lifeline, status_fd = descriptors
        status = socket.socket(fileno=status_fd)
        try:
            pid = os.fork()
        except OSError as error:
            _tell(status, b"errno %d" % (error.errno or 0))
            status.close()
        else:
            if pid == 0:
                self._become_child(status, channel, lifeline)
            self._status[pid] = status
            _tell(status, b"pid %d" % pid)
        os.close(channel)
        os.close(lifeline)
        return True

    def _become_child(self, status: socket.socket, channel: int, lifeline: int) -> NoReturn:
        # Whatever stays open here keeps somebody from seeing an end: the starter waits for exactly these to close.
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for held in (self._control, status, *self._status.values()):
            held.close()
        for descriptor in (self._lifeline, self._wake_read, self._wake_write):
            os.close(descriptor)
        child_process.serve(channel, lifeline)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake_read, 4096):
                pass
        while self._status:
            try:
                pid, wait_status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            status = self._status.pop(pid, None)
            if status is not None:
                _tell(status, b"exit %d" % wait_status)
                status.close()

    def _end_all(self) -> None:
        for pid in self._status:
            os.kill(pid, signal.SIGKILL)
        for pid in self._status:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _tell(status: socket.socket, message: bytes) -> None:
    # A starter that has lost interest in a child has closed its end.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        status.send(message)


def main() -> None:
    """Preload the modules named on the command line, say so with the number of threads, and serve."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    lifeline = int(sys.argv[2])
    os.set_inheritable(lifeline, False)
    child_process.hold_lifeline(lifeline)
    for module in sys.argv[3:]:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # a collection in a child must not touch, and so copy, every page it shares
    try:
        control.send(b"%b %d" % (READY, thread_count()))
    except (BrokenPipeError, ConnectionResetError):
        return
    _Server(control, lifeline).serve()


if __name__ == "__main__":
    main()
