"""JSON of our own values, as commands print it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

__all__ = ["json_line", "jsonable"]


def jsonable(value: Any) -> Any:
    """A value of ours as JSON has it: dataclasses as objects, sets sorted, moments in ISO 8601."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(jsonable(key)): jsonable(each) for key, each in value.items()}
    if isinstance(value, Set):
        return sorted(jsonable(each) for each in value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [jsonable(each) for each in value]
    return value


def json_line(value: Any) -> str:
    """One line of JSON, without NaN."""
    return json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False)
