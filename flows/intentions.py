"""What an operator means to do with a dataset, and what that would do: the values between pages and proposals."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from contract.errors import Refused

if TYPE_CHECKING:
    from db.cost import Toll
    from db.requests import RequestMode

__all__ = ["VERBS", "ChangedMeanwhile", "Intention", "Proposal"]

VERBS: Final = ("trigger", "requeue", "pause", "resume", "verify", "standing", "withdraw", "engine")
"""What an operator can do from the page of a dataset; ``engine`` concerns every dataset that another converter made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intention:
    """What an operator means to do with a dataset.

    Parameters
    ----------
    mode, commit
        Of ``trigger``.
    codes, reasons, recording
        Which recordings ``requeue`` makes due again: those with these words, and of them the one with this key; with none, all that
        failed or wait.
    visibility, active
        Of ``standing``; None leaves it as it is.
    """

    verb: str
    mode: RequestMode = "auto"
    commit: str | None = None
    codes: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    recording: int | None = None
    visibility: str | None = None
    active: bool | None = None

    def parameters(self) -> dict[str, Any]:
        """Its fields but the verb, as JSON has them."""
        fields = {
            name: sorted(value) if isinstance(value, frozenset) else value for name, value in asdict(self).items()
        }
        return {name: value for name, value in fields.items() if name != "verb" and value not in (None, [])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What would happen.

    Parameters
    ----------
    title
        The action with its object, as its button says it.
    sentences
        What happens, one after the other.
    cautions
        What keeps it from happening soon, or cannot be taken back.
    cost
        What the conversions would take; None for an action that converts nothing.
    changes
        False where it would change nothing, so that there is nothing to press.
    standing
        A digest over how what it concerns stands.
    digest
        Over that and the intention: what ``carry_out`` is given.
    """

    title: str
    sentences: tuple[str, ...]
    cautions: tuple[str, ...] = ()
    cost: Toll | None = None
    changes: bool = True
    standing: str
    digest: str = ""


class ChangedMeanwhile(Refused):
    """Nothing was done, because what it would concern has changed; ``proposal`` is what it would be now."""

    def __init__(self, proposal: Proposal) -> None:
        super().__init__("What this concerns has changed since you looked, so nothing was done.")
        self.proposal = proposal
