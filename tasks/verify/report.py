"""What was looked at, what did not hold, and the verdict that follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from contract.redact import redact
from contract.verification import Check
from tasks.bids.scope import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Found", "NoVerdict", "Report", "Status", "Unverifiable"]

Status = Literal["verified", "failed", "unverifiable"]
_MOST_EXAMPLES = 20
_LONGEST = 200


class NoVerdict(Exception):
    """The machine, the network or the moment does not let a store be judged; whatever was known of it stays."""


class Unverifiable(Exception):
    """Something of the source cannot be compared, now or later: the sentence says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The verdict on one store, or on a dataset's documents.

    Parameters
    ----------
    why
        What could not be compared, of an unverifiable store; None otherwise.
    checked
        How many things were compared.
    mismatches
        How many of them did not hold.
    examples
        At most 20 of those, and of what is only disclosed: ``check``, ``path`` and ``detail``, as they may be read by anyone.
    """

    status: Status
    why: str | None
    checked: int
    mismatches: int
    examples: tuple[Mapping[str, str], ...]


class Report:
    """Collects what a sweep finds about one thing, called ``path``."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.checked = 0
        self.mismatches = 0
        self._examples: list[Mapping[str, str]] = []
        self._unchecked: list[str] = []

    def hold(self, check: Check, holds: bool, detail: str) -> bool:
        """Count one thing that was compared; ``detail`` says how it does not hold. Gives back ``holds``."""
        self.checked += 1
        if not holds:
            self._note(check, detail)
        return holds

    def fail(self, check: Check, detail: str) -> None:
        """Note that something does not hold."""
        self.hold(check, holds=False, detail=detail)

    def could_not(self, why: str) -> None:
        """Note that something which a verdict of ``verified`` needs could not be compared."""
        self._unchecked.append(_public(why))

    def disclose(self, check: Check, detail: str) -> None:
        """Say something that the verdict does not depend on."""
        self._example(check, detail)

    def _note(self, check: Check, detail: str) -> None:
        self.mismatches += 1
        self._example(check, detail)

    def _example(self, check: Check, detail: str) -> None:
        if len(self._examples) < _MOST_EXAMPLES:
            path = redact(printable(self._path)) or ""
            self._examples.append({"check": check.value, "path": path, "detail": _public(detail)})

    def found(self) -> Found:
        """The verdict: failed for anything that does not hold, else unverifiable for what could not be compared."""
        status: Status = "failed" if self.mismatches else "verified"
        if status == "verified" and (self._unchecked or not self.checked):
            status = "unverifiable"
        why = "; ".join(dict.fromkeys(self._unchecked)) or "nothing could be compared"
        return Found(
            status=status,
            why=why if status == "unverifiable" else None,
            checked=self.checked,
            mismatches=self.mismatches,
            examples=tuple(self._examples),
        )


def _public(text: str) -> str:
    line = redact(printable(text)) or ""
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
