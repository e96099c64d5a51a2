"""What every route works with: the target, the settings, and the database if there is one."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from api.codes import ErrorCode
from api.errors import ApiError
from db.public_recordings import may_be_read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine

    from infra.settings import Settings
    from infra.storage.protocol import Target

__all__ = ["Service"]


@dataclass(slots=True)
class Service:
    """One target and its state. ``engine`` is None while a target is served without a database; one may come later."""

    target: Target
    settings: Settings
    engine: Engine | None

    @property
    def state(self) -> Engine:
        """The database; ApiError 503 where there is none."""
        if self.engine is None:
            raise ApiError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "This server has no database, so it answers for the objects of the target only.",
                code=ErrorCode.NO_DATABASE,
            )
        return self.engine

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for questions: each statement stands alone, so that none costs a BEGIN and a ROLLBACK."""
        with self.state.connect() as c:
            yield c.execution_options(isolation_level="AUTOCOMMIT")

    def is_public(self, dataset_id: str) -> bool:
        """Whether the objects of a dataset are for everybody: what the database does not know, somebody else put there."""
        if self.engine is None:
            return True
        with self.reading() as c:
            return may_be_read(c, target=self.target.url, dataset_id=dataset_id)
