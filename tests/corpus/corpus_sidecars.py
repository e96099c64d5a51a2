"""Sidecars in every state in which people upload them. The recording is a sound EDF; it is always served."""

from __future__ import annotations

from corpus_columns import NAMES, SHAPES, UNITS, UNUSABLE
from corpus_events import COMMAS, ENCODINGS, LABELS, ONSETS
from corpus_placing import INHERITANCE, JSONS, MISSING, PLACES

ROWS = [
    *ENCODINGS,
    *ONSETS,
    *COMMAS,
    *LABELS,
    *SHAPES,
    *UNUSABLE,
    *UNITS,
    *NAMES,
    *JSONS,
    *PLACES,
    *INHERITANCE,
    *MISSING,
]
