"""Loaded by the nanny of a Dask worker (``--preload-nanny infra.nanny_signals``): a signal to it is for the worker to answer.

Dask would end the worker and whatever runs there within seconds. So the first SIGTERM or SIGINT is handed on to the worker process,
which lets conversions finish and then closes itself and its nanny. The second one does what Dask does.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["dask_setup"]

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def dask_setup(nanny: Any) -> None:
    """Hand the first signal on. Called in the nanny's main thread, after Dask has put its own handlers in place."""
    of_dask = {number: signal.getsignal(number) for number in _SIGNALS}

    def hand_on(number: int, frame: FrameType | None) -> None:
        for each, handler in of_dask.items():
            signal.signal(each, handler)
        pid = None if nanny.process is None else nanny.process.pid
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
            return
        handler = of_dask[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    for number in _SIGNALS:
        signal.signal(number, hand_on)
