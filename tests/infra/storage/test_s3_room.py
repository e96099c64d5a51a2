"""How many bodies of files one process holds for an S3 service at once."""

from __future__ import annotations

import asyncio

import pytest

from infra.storage.s3_connection import S3Access, S3Connection

MIB = 1 << 20


@pytest.mark.parametrize(("concurrency", "large"), [(16, 8), (3, 1), (1, 1)])
def test_half_of_the_requests_may_be_large(concurrency: int, large: int) -> None:
    how = S3Access(
        endpoint="http://127.0.0.1:9",
        region="us-east-1",
        key="key",
        secret="secret",
        token=None,
        concurrency=concurrency,
        tries=1,
    )
    connection = S3Connection(how)

    async def most(size_bytes: int | None) -> int:
        room, taken = connection.holding(size_bytes), 0
        while not room.locked():
            await room.acquire()
            taken += 1
        for _ in range(taken):
            room.release()
        return taken

    async def all_sizes() -> list[int]:
        return [await most(size) for size in (0, MIB, MIB + 1, None)]

    assert asyncio.run(all_sizes()) == [concurrency, concurrency, large, large]
    assert connection.holding(None) is connection.holding(8 * MIB), "large ones share one room"
