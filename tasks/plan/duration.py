"""How long a conversion will take, roughly: it decides the order in which recordings start, and nothing else."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from db.durations import KindTook

__all__ = ["NOTHING_TOOK", "expected_s"]

NOTHING_TOOK: Mapping[tuple[str, str], KindTook] = MappingProxyType({})
_FIXED_S: Final = 0.1  # a child's start, its gate and its digests
_BYTES_PER_S: Final = 25e6  # of any format until some of it was converted
_WORTH_ATTEMPTS: Final = 5  # the assumed pace weighs as much as this many attempts, so that one odd one moves it little


def expected_s(
    kind: tuple[str, str], size_bytes: int, took: Mapping[tuple[str, str], KindTook] = NOTHING_TOOK
) -> float:
    """Seconds of one conversion of ``size_bytes`` in the source: a fixed part and the pace of the newest of its format and route."""
    found = took.get(kind)
    s_per_byte = 1 / _BYTES_PER_S
    if found is not None and found.size_bytes > 0:
        measured = max(found.seconds - _FIXED_S * found.attempts, 0.0) / found.size_bytes
        s_per_byte = (_WORTH_ATTEMPTS * s_per_byte + found.attempts * measured) / (_WORTH_ATTEMPTS + found.attempts)
    return _FIXED_S + size_bytes * s_per_byte
