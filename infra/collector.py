"""Work that makes many values at once, without the garbage collector looking at them again and again."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["uncollected"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def uncollected(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function, during which cycles are not collected.

    The tree, the discovery and the plan of a large dataset are a million values without a cycle that live to the end. Each
    generation that the collector walks costs a quarter of the time (measured on 5,000 recordings) and frees nothing.
    """

    @functools.wraps(function)
    def quiet(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        was_on = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            if was_on:
                gc.enable()

    return quiet
