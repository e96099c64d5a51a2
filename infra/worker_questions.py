"""What workers are asked, each by itself and none for longer than one is willing to wait.

``Client.run`` waits for every worker that it asks, and one that is stopped (SIGSTOP, a suspended machine, a dead disk) never answers: a flow
that asked such a one who it is stood still for as long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, wait
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from contract.errors import Refused, ZarrmillError
from contract.layout import CONVERSION_REVISION
from infra.cluster import WorkerIdentity, worker_identity

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["ANSWER_S", "answers", "ask", "ask_identity", "conversions_in_line", "identify", "identity_told"]

_LOG = logging.getLogger("zarrmill.cluster")
ANSWER_S: Final = 5.0
"""A worker that is well answers within this, on a busy machine too; the answer of one that does not is taken whenever it comes."""


def ask(client: Client, function: Callable[..., Any], *args: Any, address: str, **kwargs: Any) -> Future[Any]:
    """What ``function`` returns on one worker, whenever it answers; the future raises what it raises there.

    Raises
    ------
    ConnectionError
        The client is closed.
    """
    if client.status != "running":
        raise ConnectionError("the connection to the Dask scheduler is closed")

    async def answer() -> Any:
        told = await client._run(function, *args, workers=[address], on_error="raise", **kwargs)
        return told[address]

    loop: Any = client.loop  # tornado's, which runs on one of asyncio's
    return asyncio.run_coroutine_threadsafe(answer(), loop.asyncio_loop)


def answers(asked: Mapping[str, Future[Any]], within_s: float) -> dict[str, Any]:
    """What was answered in time, by address: a value, or the exception that came instead. The others are still asked."""
    ready, _left = wait(asked.values(), within_s)
    return {
        address: future.exception() or future.result()
        for address, future in asked.items()
        if future in ready and not future.cancelled()
    }


def ask_identity(client: Client, address: str) -> Future[Any]:
    """Who a worker is, whenever it says so; see ``identity_told``."""
    return ask(client, worker_identity, address=address)


def identity_told(address: str, answer: Any) -> WorkerIdentity | None:
    """The identity of a worker from what it answered; None when it could not say.

    Raises
    ------
    Refused
        It runs another zarrmill, or none.
    """
    own = (version("zarrmill"), CONVERSION_REVISION)
    if isinstance(answer, WorkerIdentity):
        if (answer.version, answer.conversion_revision) != own:
            raise Refused(
                f"the worker {address} runs zarrmill {answer.version} with conversion revision "
                f"{answer.conversion_revision}, this command {own[0]} with {own[1]}; install the same version on both"
            )
        return answer
    if isinstance(answer, ImportError | AttributeError):
        raise Refused(
            f"the worker {address} cannot load zarrmill {own[0]}; start it with `zarrmill worker` of this version",
            detail=repr(answer),
        )
    if isinstance(answer, ZarrmillError):
        raise Refused(f"the worker {address} is set up wrongly: {answer.sentence}") from answer
    _LOG.warning("the worker %s does not say who it is: %r", address, answer)
    return None


def identify(client: Client, addresses: Iterable[str], *, within_s: float = ANSWER_S) -> dict[str, WorkerIdentity]:
    """The identity of each of these workers that answers in time.

    Raises
    ------
    Refused
        One of them runs another zarrmill, or none.
    """
    asked = {address: ask_identity(client, address) for address in addresses}
    try:
        told = {address: identity_told(address, answer) for address, answer in answers(asked, within_s).items()}
    finally:
        for future in asked.values():
            future.cancel()
    return {address: identity for address, identity in told.items() if identity is not None}


def conversions_in_line(client: Client, address: str) -> frozenset[str]:
    """Keys of the tasks that wait on a worker for its resources. Empty when it does not answer."""
    asked = ask(client, _in_line, address=address)
    answer = answers({address: asked}, ANSWER_S).get(address)
    asked.cancel()
    return frozenset(answer) if isinstance(answer, list) else frozenset()


def _in_line(dask_worker: Any) -> list[str]:
    # under 1,000 tasks: what is here is what converts, what waits for a slot, and what is fetched ahead
    return [str(key) for key, task in dask_worker.state.tasks.items() if task.state == "constrained"]
