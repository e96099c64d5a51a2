"""How much of what a verify sweep found is kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["kept"]

_MOST_EXAMPLES = 20
_MOST_BYTES = 4096


def kept(examples: Sequence[Any]) -> list[Any]:
    """The first examples: at most 20, and 4 KiB as JSON."""
    first = list(examples[:_MOST_EXAMPLES])
    while first and len(json.dumps(first)) > _MOST_BYTES:
        first.pop()
    return first
