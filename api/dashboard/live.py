"""What moves on a dataset's page, told to whoever has it open: one look at the database for all of them.

Listeners of a dataset share one task that looks every ``interval_s``; a connection of the pool is held for the length of a look and never for
that of a listener. Every event holds the whole of what moves, and its id is a digest of it: a listener that comes again with the id of its
last event is told nothing until something is otherwise.
"""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from api.errors import ApiError
from db.census import Census, census
from db.progress import AtWork, Progress, at_work, progress

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from api.service import Service
    from db.dataset_values import Dataset

__all__ = ["Moment", "Watch", "look"]

_LOG = logging.getLogger("zarrmill.api")
_AT_WORK: Final = 6
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What moves of a dataset, at one moment. ``id`` does not depend on when it was looked at."""

    census: Census
    progress: Progress
    at_work: tuple[AtWork, ...]
    id: str

    @property
    def as_of(self) -> datetime:
        """The moment, by the database's clock."""
        return self.progress.as_of


def look(service: Service, dataset: Dataset) -> Moment:
    """How the dataset stands now, by three statements."""
    with service.reading() as c:
        counted = census(c, dataset=dataset)
        how_far = progress(c, dataset_pk=dataset.pk)
        working = tuple(at_work(c, dataset_pk=dataset.pk, limit=_AT_WORK))
    timeless = replace(how_far, as_of=_EPOCH, lately=0, lately_s=0.0)
    name = sha256(repr((counted, timeless, working)).encode()).hexdigest()[:24]
    return Moment(census=counted, progress=how_far, at_work=working, id=name)


class _Topic:
    """One dataset that somebody listens to."""

    def __init__(self) -> None:
        self.listeners = 0
        self.latest: Moment | None = None
        self.changed = asyncio.Condition()
        self.task: asyncio.Task[None] | None = None


class Watch:
    """The listeners of one server.

    Parameters
    ----------
    most
        Listeners at once; one more is told to come again.
    longest_s
        After so long a listener is let go; a browser comes again by itself.
    """

    def __init__(
        self,
        service: Service,
        *,
        interval_s: float = 2.0,
        heartbeat_s: float = 15.0,
        longest_s: float = 1800.0,
        most: int = 64,
    ) -> None:
        self._service = service
        self._interval_s = interval_s
        self._heartbeat_s = heartbeat_s
        self._longest_s = longest_s
        self._most = most
        self._topics: dict[int, _Topic] = {}

    @property
    def listeners(self) -> int:
        """How many listen now."""
        return sum(topic.listeners for topic in self._topics.values())

    def check_room(self) -> None:
        """Make sure that one more may listen; ApiError 503 when not."""
        if self.listeners >= self._most:
            raise ApiError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "As many pages as may are followed already; load this one anew to see how it stands.",
                headers={"Retry-After": "60"},
            )

    async def events(
        self, dataset: Dataset, *, last_id: str | None, shown: Callable[[Moment], str]
    ) -> AsyncIterator[str]:
        """Server-sent events until nothing moves any more: ``progress`` with what ``shown`` makes of each moment, then ``end``."""
        topic = self._topics.setdefault(dataset.pk, _Topic())
        topic.listeners += 1
        if topic.task is None or topic.task.done():
            topic.latest = None  # it is of a time when nothing moved
            topic.task = asyncio.create_task(self._follow(topic, dataset))
        ends_at = asyncio.get_running_loop().time() + self._longest_s
        told = last_id
        try:
            yield "retry: 3000\n\n"
            while asyncio.get_running_loop().time() < ends_at:
                moment = await self._next(topic, told)
                if moment is None:
                    yield ": nothing is otherwise\n\n"
                    continue
                if moment.id != told:
                    told = moment.id
                    html = await run_in_threadpool(shown, moment)
                    yield f"id: {moment.id}\nevent: progress\ndata: {json.dumps({'html': html})}\n\n"
                if not moment.progress.is_moving:
                    yield f"id: {moment.id}\nevent: end\ndata: {{}}\n\n"
                    return
        finally:
            topic.listeners -= 1
            if not topic.listeners and self._topics.get(dataset.pk) is topic:
                del self._topics[dataset.pk]
                topic.task.cancel()

    async def _next(self, topic: _Topic, told: str | None) -> Moment | None:
        """The next moment that differs from what was told, or the last of all; None after a while without one."""

        def is_news() -> bool:
            latest = topic.latest
            return latest is not None and (latest.id != told or not latest.progress.is_moving)

        with suppress(TimeoutError):
            async with asyncio.timeout(self._heartbeat_s), topic.changed:
                await topic.changed.wait_for(is_news)
                return topic.latest
        return None

    async def _follow(self, topic: _Topic, dataset: Dataset) -> None:
        while topic.listeners:
            try:
                moment = await run_in_threadpool(look, self._service, dataset)
            except SQLAlchemyError as trouble:
                _LOG.warning("%s cannot be followed now: %s", dataset.dataset_id, type(trouble).__name__)
            else:
                async with topic.changed:
                    topic.latest = moment
                    topic.changed.notify_all()
                if not moment.progress.is_moving:
                    return
            await asyncio.sleep(self._interval_s)
