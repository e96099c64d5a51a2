"""Columns, names and order of events.parquet, and the keys under which trial types are counted."""

from __future__ import annotations

import math
from collections import Counter
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "COMPRESSION",
    "CONTENT_TYPE",
    "FIXED_COLUMNS",
    "ROW_GROUP_ROWS",
    "SOURCE_COLUMNS",
    "event_order",
    "passthrough_names",
    "source_columns",
    "trial_type_counts",
]

FIXED_COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "store_path": "dictionary",
        "subject": "dictionary",
        "session": "dictionary",
        "task": "dictionary",
        "run": "dictionary",
        "onset_s": "float64",
        "duration_s": "float32",
        "sample_index": "int64",
        "group_name": "dictionary",
        "trial_type": "dictionary",
        "value": "dictionary",
        "hed": "dictionary",
    }
)
"""The twelve columns that every file has, in order, with their types; ``dictionary`` is a string by int32 code."""

SOURCE_COLUMNS: Mapping[str, str] = MappingProxyType(
    {"onset": "onset_s", "duration": "duration_s", "trial_type": "trial_type", "value": "value", "hed": "hed"}
)
"""Columns of events.tsv (lower case) that fill fixed columns."""

ROW_GROUP_ROWS = 65_536
"""Rows after which a row group is closed, at the next boundary between stores."""
COMPRESSION = "zstd"
CONTENT_TYPE = "application/vnd.apache.parquet"

_LONGEST_LABEL = 128


def source_columns(headers: Sequence[str]) -> dict[str, int]:
    """Position of each column that fills a fixed one, by the fixed one's name; the first match in any case counts."""
    found: dict[str, int] = {}
    for position, header in enumerate(headers):
        name = SOURCE_COLUMNS.get(header.strip().lower())
        if name is not None:
            found.setdefault(name, position)
    return found


def passthrough_names(headers: Sequence[str]) -> dict[int, str]:
    """Published name of every other column of one events.tsv, by its position.

    A column keeps its own name unless a fixed column or another column of the file has it: then ``x_`` is put before it
    until the name is free. Columns that need no change choose first, so a name never depends on the order of columns
    that do. A column without a name is left out. In the file the published names stand in alphabetical order.
    """
    claimed = set(source_columns(headers).values())
    taken = set(FIXED_COLUMNS)
    stripped = [(position, header.strip()) for position, header in enumerate(headers)]
    rest = [(position, name) for position, name in stripped if name and position not in claimed]
    names: dict[int, str] = {}
    for position, name in rest:
        if name not in taken:
            names[position] = name
            taken.add(name)
    for position, name in rest:
        if position not in names:
            free = name
            while free in taken:
                free = f"x_{free}"
            names[position] = free
            taken.add(free)
    return dict(sorted(names.items()))


def event_order(onsets_s: Sequence[float | None]) -> list[int]:
    """Positions of the events of one store in published order: by onset, unknown onsets last, ties as in the file."""

    def rank(position: int) -> tuple[bool, float, int]:
        onset = onsets_s[position]
        known = onset is not None and math.isfinite(onset)
        return (not known, onset if known and onset is not None else 0.0, position)

    return sorted(range(len(onsets_s)), key=rank)


def trial_type_counts(labels: Iterable[str | None]) -> dict[str, int]:
    """How often each trial type occurs, by its key in ``trial_types``, sorted by key. None (blank, ``n/a``) is left out.

    A label of more than 128 characters, as free text in that column has, is keyed by its first 13 characters, ``~`` and
    14 hexadecimal digits of its SHA-256, so that an index stays small. Short labels choose first; a taken key is
    salted. The result depends on the labels only, not on their order, and counting the keys again changes nothing.
    """
    counts = Counter(label for label in labels if label is not None)
    keyed = {label: count for label, count in counts.items() if len(label) <= _LONGEST_LABEL}
    for label in sorted(label for label in counts if len(label) > _LONGEST_LABEL):
        salt, key = 0, _digest_key(label, label)
        while key in keyed:
            salt += 1
            key = _digest_key(label, f"{salt}\0{label}")
        keyed[key] = counts[label]
    return dict(sorted(keyed.items()))


def _digest_key(label: str, hashed: str) -> str:
    return f"{label[:13]}~{sha256(hashed.encode('utf-8', 'surrogatepass')).hexdigest()[:14]}"
