"""VneuroTK's typed scalars: lists of identifiers in HDF5 that keep 1, "1" and True apart.

A list is a group with the attribute ``encoding`` and two datasets of one length: ``types``, a code for each value, and
``values``, their texts. An identifier is never a part of an HDF5 path.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np

from contract.errors import Refused
from tasks.vneurotk.opening import attribute, dataset

__all__ = ["ENCODING", "MISSING", "BadScalars", "Missing", "Scalar", "ScalarType", "TypedScalars", "as_text"]

ENCODING: Final = "vneurotk_scalar_v1"
MOST_DIGITS: Final = 4300
"""Digits of the longest integer: Python's own limit, so that a text is not a way to keep a processor busy."""
MOST_SHOWN: Final = 80
TEXT_BYTES: Final = 64 << 20
"""Most that the texts of one list may hold together when it is read."""


class ScalarType(IntEnum):
    """Code of a value's type, as in ``types``."""

    BOOL = 1
    INT = 2
    FLOAT = 3
    STR = 4
    NONE = 5
    NA = 6
    NAT = 7


class Missing(IntEnum):
    """A missing value that is not None: pandas tells its NA from its NaT, and so does the file."""

    NA = ScalarType.NA
    NAT = ScalarType.NAT


Scalar = bool | int | float | str | Missing | None

MISSING: Final = frozenset({ScalarType.NONE, ScalarType.NA, ScalarType.NAT})
_TOO_LONG: Final = 10**MOST_DIGITS
_DECIMAL = re.compile(r"-?[0-9]+", re.ASCII)
_PANDAS = {"NAType": Missing.NA, "NaTType": Missing.NAT}


class BadScalars(ValueError):
    """A list in a file is not encoded as it says."""


@dataclass(frozen=True, slots=True)
class TypedScalars:
    """An encoded list: the code and the text of every value."""

    types: tuple[ScalarType, ...]
    texts: tuple[str, ...]

    @classmethod
    def encode(cls, values: Iterable[Any], *, what: str = "identifiers", missing: bool = False) -> TypedScalars:
        """Every value as its type and its text; NumPy's scalars as Python's.

        Parameters
        ----------
        values
            bool, int, finite float, str; with ``missing`` also None, NaN, ``Missing`` and pandas' NA and NaT.
        what
            What the values are, for the sentence of a refusal.

        Raises
        ------
        Refused
            A value cannot be kept; nothing was written.
        """
        pairs = [_encoded(value, what, missing) for value in values]
        return cls(tuple(code for code, _ in pairs), tuple(text for _, text in pairs))

    def decode(self, *, missing: bool = False) -> list[Scalar]:
        """The values again.

        Raises
        ------
        BadScalars
            A text is none of its type, or a value is missing where none may be.
        """
        return [_decoded(code, text, missing) for code, text in zip(self.types, self.texts, strict=True)]

    def write(self, parent: Any, name: str) -> None:
        """Make the group ``name`` in an open, writable h5py group."""
        import h5py

        group = parent.create_group(name)
        group.attrs["encoding"] = ENCODING
        group.create_dataset("types", data=np.array([int(code) for code in self.types], dtype=np.uint8))
        group.create_dataset("values", data=np.array(self.texts, dtype=object), dtype=h5py.string_dtype())

    @classmethod
    def read(cls, group: Any, *, most: int) -> TypedScalars:
        """The list in an open h5py group (None: it is not there); at most ``most`` values, whatever the file declares.

        Raises
        ------
        BadScalars
            Another encoding, lists of unlike lengths, an unknown code, or more than may be read.
        RecordingFailed
            The values are elsewhere, or more than the file can hold.
        """
        encoding = None if group is None else attribute(group, "encoding")
        if encoding != ENCODING:
            raise BadScalars(f"the encoding is {_shown(encoding)}, not {ENCODING}")
        types, values = dataset(group, "types"), dataset(group, "values")
        if types is None or values is None:
            raise BadScalars("the list has no types or no values")
        if types.ndim != 1 or values.ndim != 1 or types.shape != values.shape:
            raise BadScalars(f"{types.shape} types belong to {values.shape} values")
        if types.shape[0] > most:
            raise BadScalars(f"{types.shape[0]} values are listed, more than {most}")
        if types.dtype.kind not in "ui":
            raise BadScalars("the types are no integers")
        known = {int(code) for code in ScalarType}
        codes = types[()].tolist()
        if unknown := sorted(set(codes) - known):
            raise BadScalars(f"the type {unknown[0]} is unknown")
        return cls(tuple(map(ScalarType, codes)), tuple(_texts(values)))


def _texts(values: Any) -> list[str]:
    """Texts of a dataset of strings, a few at a time: many places may point to one long text."""
    found: list[str] = []
    held = 0
    step = max(1, min(1024, TEXT_BYTES // max(values.file.id.get_filesize(), 1)))
    for start in range(0, values.shape[0], step):
        for raw in values[start : start + step]:
            if not isinstance(raw, bytes):
                raise BadScalars("the values are no texts")
            held += len(raw)
            if held > TEXT_BYTES:
                raise BadScalars(f"the texts are longer than {TEXT_BYTES} bytes together")
            try:
                found.append(raw.decode("utf-8"))
            except UnicodeDecodeError:
                raise BadScalars(f"the text {_shown(raw)} is not UTF-8") from None
    return found


def _encoded(value: Any, what: str, missing: bool) -> tuple[ScalarType, str]:
    if isinstance(value, np.generic):
        value = value.item()
    absent = _absent(value)
    if absent is not None:
        if not missing:
            raise _refused(value, what, "a missing value stands for nothing; leave it out")
        return absent, ("nan" if absent is ScalarType.FLOAT else "")
    # bool before int: True is an int to Python, and not the identifier 1
    if isinstance(value, bool):
        return ScalarType.BOOL, "1" if value else "0"
    if isinstance(value, int):
        if abs(value) >= _TOO_LONG:
            raise _refused("a longer integer", what, f"it must have at most {MOST_DIGITS} digits")
        return ScalarType.INT, str(int(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _refused(value, what, "a number must be finite")
        return ScalarType.FLOAT, float(value).hex()
    if isinstance(value, str):
        return ScalarType.STR, _storable(value, what)
    raise _refused(value, what, "it must be a bool, an integer, a finite number or a text")


def _absent(value: Any) -> ScalarType | None:
    """The code of a missing value; None when it is not missing."""
    if value is None:
        return ScalarType.NONE
    if isinstance(value, Missing):
        return ScalarType(int(value))
    if type(value).__module__.partition(".")[0] == "pandas" and type(value).__name__ in _PANDAS:
        return ScalarType(int(_PANDAS[type(value).__name__]))
    return ScalarType.FLOAT if isinstance(value, float) and math.isnan(value) else None


def _storable(text: str, what: str) -> str:
    if "\0" in text:
        raise _refused(text, what, "HDF5 ends a text at NUL; leave it out")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _refused(text, what, "it is not valid Unicode") from None
    return str(text)


def _refused(value: Any, what: str, why: str) -> Refused:
    return Refused(f"{what}: {_shown(value)} cannot be written: {why}.")


def _shown(value: Any) -> str:
    said = ascii(value)
    return said if len(said) <= MOST_SHOWN else said[: MOST_SHOWN - 1] + "…"


def _decoded(code: ScalarType, text: str, missing: bool) -> Scalar:
    if code in MISSING:
        if not missing or text:
            raise BadScalars("a value is missing where none may be" if not text else "a missing value has a text")
        return None if code is ScalarType.NONE else Missing(int(code))
    return _READERS[code](text, missing)


def _bool(text: str, _missing: bool) -> bool:
    if text not in {"0", "1"}:
        raise BadScalars(f"{_shown(text)} is neither 0 nor 1")
    return text == "1"


def _int(text: str, _missing: bool) -> int:
    if not _DECIMAL.fullmatch(text) or len(text) > MOST_DIGITS:
        raise BadScalars(f"{_shown(text)} is no integer")
    return int(text)


def _float(text: str, missing: bool) -> float:
    try:
        value = float.fromhex(text)
    except (ValueError, OverflowError):
        raise BadScalars(f"{_shown(text)} is no number") from None
    if math.isfinite(value) or (missing and math.isnan(value)):
        return value
    raise BadScalars(f"{_shown(text)} is not finite")


def _str(text: str, _missing: bool) -> str:
    if "\0" in text:
        raise BadScalars(f"{_shown(text)} holds a NUL")
    return text


_READERS: Final[dict[ScalarType, Callable[[str, bool], Scalar]]] = {
    ScalarType.BOOL: _bool,
    ScalarType.INT: _int,
    ScalarType.FLOAT: _float,
    ScalarType.STR: _str,
}


def as_text(value: Scalar) -> str:
    """A value for people, as a cell of a table; empty when it is missing."""
    if value is None or isinstance(value, Missing) or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(value)
