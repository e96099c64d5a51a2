"""How an S3 service is reached: one client of s3fs for each way of asking, with our own retries around every request."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from functools import lru_cache
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from fsspec.asyn import sync
from s3fs import S3FileSystem

from infra.storage.s3_errors import TRANSIENT, is_transient, translate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from infra.settings import Settings

__all__ = ["FAILURES", "S3Access", "S3Connection", "access", "connect", "side_by_side"]

FAILURES = (ClientError, BotoCoreError, *TRANSIENT)
"""What a request may raise before it is translated."""

_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 10.0
_REQUEST_S = 25.0  # a worker that is paused may write for less than the 30 s that its lease keeps in hand
_CONNECT_S = 5.0
_SMALL_BYTES = 1 << 20
_READ_S = 15.0

_random = SystemRandom()


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Access:
    """Which service, and who asks it. Secrets do not print.

    Parameters
    ----------
    endpoint
        Address of the service; None for that of AWS.
    anonymous
        Ask without a signature, as anybody on the internet can.
    concurrency
        Requests under way at once, over every thread of the process.
    tries
        How often a request is sent at most.
    """

    endpoint: str | None
    region: str
    key: str | None = field(repr=False)
    secret: str | None = field(repr=False)
    token: str | None = field(repr=False)
    concurrency: int
    tries: int
    anonymous: bool = False


def access(settings: Settings, *, anonymous: bool = False) -> S3Access:
    """How the settings reach their S3 service."""

    def shown(secret: Any) -> str | None:
        return None if anonymous or secret is None else secret.get_secret_value()

    return S3Access(
        endpoint=settings.s3_endpoint,
        region=settings.s3_region,
        key=shown(settings.s3_access_key_id),
        secret=shown(settings.s3_secret_access_key),
        token=shown(settings.s3_session_token),
        concurrency=settings.s3_concurrency,
        tries=settings.s3_tries,
        anonymous=anonymous,
    )


class S3Connection:
    """Requests to one service from any thread of this process, at most ``concurrency`` under way at once.

    Every request is sent again when what happened may pass: throttling, 5xx, a lost connection, half an answer.
    """

    def __init__(self, how: S3Access) -> None:
        style: dict[str, Any] = {"addressing_style": "path"} if how.endpoint else {}
        self.access = how
        self._files = S3FileSystem(
            anon=how.anonymous,
            endpoint_url=how.endpoint,
            key=how.key,
            secret=how.secret,
            token=how.token,
            client_kwargs={"region_name": how.region},
            config_kwargs={
                "connect_timeout": _CONNECT_S,
                "read_timeout": _READ_S,
                "max_pool_connections": how.concurrency,
                "retries": {"total_max_attempts": 1},
                # services beside AWS's do not all know the newer checksums; every PUT carries its MD5
                "request_checksum_calculation": "when_required",
                "response_checksum_validation": "when_required",
                "s3": style,
            },
            use_listings_cache=False,
            skip_instance_cache=True,
        )
        self._room = asyncio.Semaphore(how.concurrency)
        self._bodies = asyncio.Semaphore(how.concurrency)
        self._large_bodies = asyncio.Semaphore(max(how.concurrency // 2, 1))

    def holding(self, size_bytes: int | None) -> asyncio.Semaphore:
        """What whoever holds so many bytes of a file in memory, to send or to keep them, must hold; None: it is not known.

        Small ones wait for the far end of the line and not for its width, so that more of them may be under way.
        """
        is_large = size_bytes is None or size_bytes > _SMALL_BYTES
        return self._large_bodies if is_large else self._bodies

    def run(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """The result of a coroutine that uses ``request``; called from outside the client's own thread."""
        return sync(self._files.loop, work)

    async def once(self, operation: str, arguments: dict[str, Any], *, body: bool = False) -> dict[str, Any]:
        """One request, sent once. With ``body`` the answer's ``Body`` is its bytes. Raises what the client raises."""
        async with self._room, asyncio.timeout(_REQUEST_S):
            client = await self._files.set_session()
            answered: dict[str, Any] = await getattr(client, operation)(**arguments)
            if body:
                async with answered["Body"] as stream:
                    answered["Body"] = await stream.read()
            return answered

    async def request(
        self,
        operation: str,
        what: str,
        arguments: dict[str, Any],
        *,
        body: bool = False,
        before: Callable[[], None] | None = None,
        check: Callable[[dict[str, Any]], None] | None = None,
        absence: Callable[[BaseException], bool] | None = None,
    ) -> dict[str, Any] | None:
        """One request, sent until it is answered; None when ``absence`` knows the error as a definite "is not there".

        Parameters
        ----------
        operation
            Name of the client's method, such as ``get_object``.
        what
            The request in words, for errors.
        before
            Called before each try; raises to stop.
        check
            Raises ``Spoiled`` for an answer that cannot be right.

        Raises
        ------
        StorageDenied, StorageUnavailable, StorageError, PreconditionFailed, Refused
            See ``infra.storage.s3_errors.translate``.
        """
        for number in range(1, self.tries + 1):
            if before is not None:
                before()
            try:
                answered = await self.once(operation, arguments, body=body)
                if check is not None:
                    check(answered)
            except FAILURES as error:
                if absence is not None and absence(error):
                    return None
                if number == self.tries or not is_transient(error):
                    raise translate(error, what, number) from error
                await self.pause(number)
            else:
                return answered
        raise AssertionError("the last try returns or raises")

    async def pause(self, number: int) -> None:
        """Wait before the next try: full jitter below a bound that doubles."""
        await asyncio.sleep(_random.uniform(0, min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**number)))

    @property
    def tries(self) -> int:
        """How often a request is sent at most."""
        return self.access.tries


async def side_by_side(work: Sequence[Awaitable[Any]]) -> list[Any]:
    """The results in order; the first failure cancels the rest and is raised."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def connect(how: S3Access) -> S3Connection:
    """The connection of this process for this access: made on first use, then shared."""
    return _connected(how, os.getpid())


@lru_cache(maxsize=16)
def _connected(how: S3Access, _pid: int) -> S3Connection:
    # by process: a fork would share the sockets and miss the thread that serves them
    return S3Connection(how)
