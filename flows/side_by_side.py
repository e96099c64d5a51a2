"""Starting several servers at the same time instead of one after the other."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["side_by_side"]


@contextmanager
def side_by_side(*managers: AbstractContextManager[Any]) -> Iterator[tuple[Future[Any], ...]]:
    """Enter every context manager in a thread of its own; what each gives, or raised, is its future's result.

    Each is left at the end, the last first, also when another one failed or the block did.
    """
    stacks = [ExitStack() for _ in managers]
    with ThreadPoolExecutor(max_workers=max(len(managers), 1), thread_name_prefix="zarrmill-start") as pool:
        started = tuple(
            pool.submit(stack.enter_context, manager) for stack, manager in zip(stacks, managers, strict=True)
        )
        try:
            with ExitStack() as leaving:
                for stack in stacks:
                    leaving.push(stack)
                try:
                    yield started
                finally:
                    # one that is still starting has to be waited for, or it would never be left
                    wait(started)
        finally:
            for one in started:
                if one.done() and not one.cancelled():
                    one.exception()
