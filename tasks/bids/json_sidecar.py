"""The one reader of JSON sidecars."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tasks.bids.text import decode

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["JsonSidecar", "parse_json"]

_MAY_SMUGGLE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_SMUGGLED = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class JsonSidecar:
    """A JSON sidecar.

    Parameters
    ----------
    values
        Its object; empty when it could not be read.
    readable
        False for a file that exists and holds no JSON object, which is not the same as no file.
    notes
        A sentence for everything that was repaired or is wrong.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    readable: bool = True
    notes: tuple[str, ...] = ()


def parse_json(data: bytes) -> JsonSidecar:
    """The object in the bytes of a ``.json`` file; whatever they hold, nothing is raised.

    Of a repeated key the last value counts. NaN and infinities, which are no JSON, become None. NUL and lone
    surrogates, which escapes can smuggle in and no database or document takes, become U+FFFD.
    """
    decoded = decode(data)
    notes = list(decoded.notes)

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(found)
        if len(values) < len(found):
            repeated = sorted(key for key, times in Counter(key for key, _ in found).items() if times > 1)
            notes.append(f"repeated keys, the last value counts: {', '.join(repeated[:5])}")
        return values

    def number(text: str) -> float | None:
        value = float(text)
        if math.isfinite(value):
            return value
        notes.append(f"{text} is no finite number and counts as null")
        return None

    try:
        value = json.loads(decoded.text, object_pairs_hook=pairs, parse_constant=number, parse_float=number)
        if _MAY_SMUGGLE.search(decoded.text) is not None:
            value = _clean(value)
    except (ValueError, RecursionError) as error:
        # the words of the error differ between versions of Python, and notes are part of a store
        where = f" from line {error.lineno} on" if isinstance(error, json.JSONDecodeError) else ""
        return JsonSidecar({}, readable=False, notes=(*decoded.notes, f"the file is no JSON{where}"))
    if not isinstance(value, dict):
        return JsonSidecar({}, readable=False, notes=(*notes, "the file holds no JSON object"))
    return JsonSidecar(value, notes=tuple(notes))


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _SMUGGLED.sub("\ufffd", value)
    if isinstance(value, list):
        return [_clean(inner) for inner in value]
    if isinstance(value, dict):
        return {_clean(key): _clean(inner) for key, inner in value.items()}
    return value
