"""What runs inside a conversion child: one order after the other, each under its own memory limit, until told to stop.

The child dies with its supervisor: it asks the kernel for SIGKILL as soon as the lifeline's other end closes, which no reader
that holds the GIL can delay (PR_SET_PDEATHSIG would watch the fork server, which lives on).
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import os
import pickle
import resource
import select
import signal
import struct
import threading
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from infra.host import ProcessMemory, process_memory

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LENGTH", "ChildOrder", "Raised", "Reply", "hold_lifeline", "serve"]

LENGTH = struct.Struct("<Q")
"""Frame on the channel, both ways: the length of a pickle, then the pickle."""

DATA_LIMIT_FACTOR = (
    1.3  # VmData counts reservations that are never touched, so the backstop stands above the real limit
)
_F_SETSIG = getattr(fcntl, "F_SETSIG", 10)
_OOM_SCORE_ADJ = b"900"  # the kernel takes the child before the worker that supervises it
_THREAD_STACK_BYTES = 2 << 20  # zarr starts up to 36 threads; 8 MB of stack each would count in VmData
_PATH_PARTS = 2
_TRACEBACK_CHARACTERS = 6000


@dataclass(frozen=True, slots=True)
class ChildOrder:
    """One call. ``function`` and ``explain`` are ``module:name``; ``explain`` turns an exception into a picklable value."""

    function: str
    args: tuple[Any, ...]
    permitted_bytes: int
    explain: str | None


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception that could not be explained in the child: class, first line, the end of its traceback."""

    class_name: str
    line: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Reply:
    """How one call ended. ``peak_bytes`` is VmHWM at its end, None when the kernel would not reset it before."""

    ok: bool
    value: Any
    peak_bytes: int | None
    after: ProcessMemory


def serve(channel: int, lifeline: int) -> NoReturn:
    """Serve orders from ``channel`` until it closes. Never returns: the process ends here."""
    code = 1
    try:
        hold_lifeline(lifeline)
        _settle()
        while True:
            frame = _receive(channel)
            if frame is None:
                code = 0
                break
            reply = _carry_out(pickle.loads(frame))  # noqa: S301 - our own supervisor wrote it
            _send(channel, reply)
            if not reply.ok:
                code = 0
                break
            del frame, reply
            _give_back()
    finally:
        # Not sys.exit: exit handlers belong to the fork server, and a reader's thread may never end.
        os._exit(code)


def hold_lifeline(lifeline: int) -> None:
    """Ask the kernel for SIGKILL as soon as the other end of the pipe ``lifeline`` closes."""
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, _F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    poller = select.poll()
    poller.register(lifeline, select.POLLIN)
    if poller.poll(0):  # it had closed before we asked for the signal
        os._exit(1)


def _settle() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_bytes(_OOM_SCORE_ADJ)
    os.dup2(2, 1)  # a reader that prints must not write into anybody's standard output
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash must not fill the scratch disk with gigabytes of core
    threading.stack_size(_THREAD_STACK_BYTES)


def _carry_out(order: ChildOrder) -> Reply:
    trusted = _reset_peak()
    try:
        _limit_data(order.permitted_bytes)
        value = _resolve(order.function)(*order.args)
        ok = True
        # Pickled here and not when it is sent, so that a result that cannot cross is an error of this call.
        value = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except BaseException as error:  # noqa: BLE001 - the process boundary: whatever it is, the supervisor must hear of it
        _lift_limit()  # explaining needs memory too, and after a MemoryError there is none left below the limit
        ok, value = False, _explain(error, order.explain)
    _lift_limit()
    after = process_memory()
    assert after is not None
    return Reply(ok, value, after.peak_bytes if trusted else None, after)


def _explain(error: BaseException, explain: str | None) -> bytes:
    if explain is not None:
        with contextlib.suppress(Exception):  # an explanation that fails must not hide what it explains
            return pickle.dumps(_resolve(explain)(error))
    lines = str(error).splitlines() or [""]
    frames = "".join(traceback.format_exception(error, limit=-8))[-_TRACEBACK_CHARACTERS:]
    return pickle.dumps(Raised(type(error).__name__, lines[0][:300], frames))


def _resolve(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    assert callable(found)
    return found  # type: ignore[no-any-return]  # getattr of a module is Any


def _reset_peak() -> bool:
    try:
        Path("/proc/self/clear_refs").write_bytes(b"5")
    except OSError:
        return False
    return True


def _limit_data(permitted_bytes: int) -> None:
    now = process_memory()
    assert now is not None
    _hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    wanted = now.data_bytes + int(DATA_LIMIT_FACTOR * permitted_bytes)
    soft = wanted if _hard == resource.RLIM_INFINITY else min(wanted, _hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, _hard))


def _lift_limit() -> None:
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def _give_back() -> None:
    """Return freed memory to the kernel, so that the next recording is measured from the same ground."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).malloc_trim(0)


def _receive(channel: int) -> bytes | None:
    head = _read_exactly(channel, LENGTH.size)
    return None if head is None else _read_exactly(channel, LENGTH.unpack(head)[0])


def _read_exactly(channel: int, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = os.read(channel, min(size - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)


def _send(channel: int, reply: Reply) -> None:
    data = pickle.dumps(reply, protocol=pickle.HIGHEST_PROTOCOL)
    view = memoryview(LENGTH.pack(len(data)) + data)
    while view:
        view = view[os.write(channel, view) :]
