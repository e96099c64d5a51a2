"""What operators send: closed objects, so that a misspelt field is told and not ignored."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from contract.codes import FailureCode, PendingReason
from contract.layout import DATASET_ID_PATTERN

__all__ = ["Acknowledge", "Drain", "Requeue", "Trigger", "Why"]


def _plain(text: str) -> str:
    if "\x00" in text:
        raise ValueError("it must not hold a NUL")
    return text


Line = Annotated[str, Field(max_length=1000), AfterValidator(_plain)]
_CLOSED = ConfigDict(extra="forbid")


class Why(BaseModel):
    """An action without parameters."""

    model_config = _CLOSED
    why: Line | None = Field(default=None, description="Kept with the action.", examples=["asked for by the author"])


class Trigger(Why):
    """A conversion."""

    mode: Literal["auto", "retry-pending", "full"] = "auto"
    commit: Annotated[str, Field(max_length=250), AfterValidator(_plain)] | None = None
    rebuild_on: list[Literal["options", "engine", "biosigio"]] = Field(default=["options", "engine"], max_length=3)


class Requeue(Why):
    """Which recordings become due again. An empty list leaves everything of that kind in."""

    datasets: list[Annotated[str, Field(pattern=DATASET_ID_PATTERN)]] = Field(default=[], max_length=1000)
    states: list[Literal["clean", "round", "soon", "exhausted", "backoff", "given_up", "terminal"]] = Field(
        default=[], max_length=7, description="Of a dataset's policy."
    )
    codes: list[FailureCode] = Field(default=[], max_length=20)
    reasons: list[PendingReason] = Field(default=[], max_length=3)
    all: bool = Field(default=False, description="Everything, where nothing is named.")
    execute: bool = Field(default=False, description="Without it, only what would be done is told.")
    expect: int | None = Field(default=None, description="As many recordings as the dry run told; else 409.")

    @property
    def names_nothing(self) -> bool:
        """Whether neither a dataset nor a condition was named, nor everything asked for."""
        return not (self.datasets or self.states or self.codes or self.reasons or self.all)


class Drain(Why):
    """A worker that takes nothing new."""

    worker: Annotated[str, Field(min_length=1, max_length=300), AfterValidator(_plain)] | None = Field(
        default=None, description="A host, or a worker process; null is every worker."
    )
    grace_s: Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)] | None = None
    undo: bool = False


class Acknowledge(Why):
    """An engine that datasets may be made anew with."""

    columns: list[Literal["options", "engine", "biosigio"]] = Field(
        default=["options", "engine"], min_length=1, max_length=3
    )
    execute: bool = Field(default=False, description="Without it, only what it would cost is told.")
