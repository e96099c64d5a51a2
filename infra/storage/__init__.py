"""Places that serve datasets, each behind the Protocol of ``infra.storage.protocol``."""

from __future__ import annotations

from infra.storage.opening import open_target

__all__ = ["open_target"]
