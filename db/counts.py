"""The numbers that must balance: what was discovered is in exactly one of the published lists."""

from __future__ import annotations

from dataclasses import dataclass

from contract.errors import ZarrmillError

__all__ = ["Coverage", "Unaccounted"]


class Unaccounted(ZarrmillError):
    """The published lists do not add up to what was discovered. Nothing may be published from such a state."""

    code = "unaccounted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many recordings were discovered, and in which published list they are."""

    discovered: int
    stores: int
    failures: int
    pending: int

    def __post_init__(self) -> None:
        if self.discovered != self.stores + self.failures + self.pending:
            raise Unaccounted(
                f"{self.discovered} recordings were discovered, but {self.stores} stores, {self.failures} failures and "
                f"{self.pending} pending do not add up to them"
            )
