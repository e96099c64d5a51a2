"""What is set from outside about the service that runs by itself; part of ``infra.settings.Settings``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings

__all__ = ["RunningSettings"]


class RunningSettings(BaseSettings):
    """The settings of ``zarrmill runner``."""

    datasets_at_a_time: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=2,
        description="Datasets that `zarrmill runner` converts at a time, each as a process of its own.",
        examples=["2"],
    )
