"""A long list, a part at a time: what is shown of it, and the addresses of its other parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["Paging", "with_query"]


def with_query(request: Request, **changes: object) -> str:
    """The address of this page with these parameters changed; None and an empty text take one away."""
    kept = [(name, value) for name, value in request.query_params.multi_items() if name not in changes and value]
    kept += [(name, str(value)) for name, value in changes.items() if value is not None and value != ""]
    return f"{request.url.path}?{urlencode(kept)}" if kept else request.url.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Paging:
    """A part of ``total`` rows: at most ``limit`` behind the first ``offset``."""

    total: int
    limit: int
    offset: int

    @property
    def first(self) -> int:
        """The number of the first row shown, counted from 1; 0 when there is none."""
        return min(self.offset + 1, self.total)

    @property
    def last(self) -> int:
        """The number of the last row shown."""
        return min(self.offset + self.limit, self.total)

    @property
    def previous(self) -> int | None:
        """The offset of the part before this one; None at the beginning."""
        return None if self.offset == 0 else max(self.offset - self.limit, 0)

    @property
    def next(self) -> int | None:
        """The offset of the part behind this one; None at the end."""
        return None if self.last >= self.total else self.offset + self.limit

    @property
    def final(self) -> int:
        """The offset of the last part."""
        return max(self.total - 1, 0) // self.limit * self.limit
