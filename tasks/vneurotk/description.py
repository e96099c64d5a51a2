"""What a VneuroTK file says of itself, before a sample is touched: schemas 0 and 1, and who is neither."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from contract.codes import FailureCode
from contract.errors import RecordingFailed
from tasks.formats.content import corrupt, empty, not_continuous, unreadable, unsupported
from tasks.vneurotk.layout import CURRENT_SCHEMA, MAGIC, OLDEST_SCHEMA
from tasks.vneurotk.opening import attribute, dataset, group, number, shown, text, texts

__all__ = ["Description", "describe"]

_MODES: Final = frozenset({"continuous", "epochs", "patterns"})
_FORMATS: Final = frozenset({"dense", "coo"})
_TYPO: Final = "continues"
_NUMBERS: Final = "iuf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A continuous recording.

    Parameters
    ----------
    dtype
        Of the samples in the file, (samples x channels).
    chunk_rows
        Samples that are compressed together and so are read together; 0 where rows can be read one by one.
    names, units, types
        Of the channels, where the file has them.
    highpass_hz, lowpass_hz
        Of the filters that were applied, where the file has them.
    """

    schema: int
    n_channels: int
    n_samples: int
    rate_hz: float
    dtype: np.dtype[Any]
    chunk_rows: int
    names: tuple[str, ...] | None
    units: tuple[str, ...] | None
    types: tuple[str, ...] | None
    highpass_hz: float | None
    lowpass_hz: float | None

    @property
    def prefilter(self) -> str | None:
        """The filters as biosigIO writes them; None where the file is silent."""
        parts = [("HP", self.highpass_hz), ("LP", self.lowpass_hz)]
        said = " ".join(f"{kind}:{value:g}Hz" for kind, value in parts if value is not None)
        return said or None


def describe(file: Any, name: str) -> Description:
    """The recording in an open file; ``name`` is the file's, for sentences.

    Raises
    ------
    RecordingFailed
        It is no VneuroTK file, of another version, no continuous recording, or without what a recording must have.
    """
    schema = _schema(file, name)
    mode = _mode(file, name, schema)
    if mode != "continuous":
        raise not_continuous(f"{name} holds {mode} (data_mode)")
    kept = _one_of(file, name, "neuro_format", _FORMATS) or "dense"
    if kept == "coo":
        raise not_continuous(f"{name} holds trials in sparse form (neuro_format is 'coo')")
    neuro = _neuro(file, name)
    n_samples, n_channels = neuro.shape
    info = group(file, "neuro_info")
    rate_hz = None if info is None else number(attribute(info, "sfreq"))
    if info is None or rate_hz is None or rate_hz <= 0:
        found = None if info is None else attribute(info, "sfreq")
        what = "is missing" if found is None else f"is {shown(found)}, no rate"
        raise unreadable(f"neuro_info.sfreq of {name} {what}")
    _agree(info, name, neuro.shape)
    return Description(
        schema=schema,
        n_channels=n_channels,
        n_samples=n_samples,
        rate_hz=rate_hz,
        dtype=neuro.dtype,
        chunk_rows=0 if neuro.chunks is None else int(neuro.chunks[0]),
        names=_names(info, name, n_channels),
        units=_of_each(info, "ch_units", n_channels),
        types=_of_each(info, "ch_types", n_channels),
        highpass_hz=number(attribute(info, "highpass")),
        lowpass_hz=number(attribute(info, "lowpass")),
    )


def _schema(file: Any, name: str) -> int:
    """The version of the file's schema; decided before anything else is looked at."""
    magic, version = (attribute(file, key) for key in ("vneurotk_format", "vneurotk_schema_version"))
    if magic is None and version is None:
        if not _looks_like_schema_0(file):
            raise unsupported(f"{name} is HDF5 of another program: nothing in it says that it is a VneuroTK recording")
        return 0
    for key, value in (("vneurotk_format", magic), ("vneurotk_schema_version", version)):
        if value is None:
            raise unsupported(f"the header of {name} is not whole: it has no {key}")
    if text(magic) != MAGIC:
        raise unsupported(f"vneurotk_format of {name} is {shown(magic)}, not {MAGIC!r}")
    if not isinstance(version, np.integer):
        raise unsupported(f"vneurotk_schema_version of {name} is {shown(version)}, no integer")
    if not OLDEST_SCHEMA <= int(version) <= CURRENT_SCHEMA:
        raise unsupported(
            f"vneurotk_schema_version of {name} is {int(version)}, supported are {OLDEST_SCHEMA} to {CURRENT_SCHEMA}"
        )
    if int(version) >= 1 and text(attribute(file, "writer_version")) is None:
        raise unsupported(f"the header of {name} is not whole: it has no writer_version")
    return int(version)


def _looks_like_schema_0(file: Any) -> bool:
    """Whether a file without a header is VneuroTK's. It takes any file with a dataset ``neuro``; that is too little."""
    links = file.id.links
    if not any(links.exists(key) for key in (b"neuro", b"neuro_data")):
        return False
    return any(attribute(file, key) is not None for key in ("data_mode", "neuro_format"))


def _mode(file: Any, name: str, schema: int) -> str:
    value = attribute(file, "data_mode")
    if schema == 0 and (value is None or text(value) == _TYPO):
        return "continuous"
    if value is None:
        raise unsupported(f"the header of {name} is not whole: it has no data_mode")
    return _one_of(file, name, "data_mode", _MODES) or ""


def _one_of(file: Any, name: str, key: str, known: frozenset[str]) -> str | None:
    value = attribute(file, key)
    if value is None:
        return None
    found = text(value)
    if found not in known:
        raise unsupported(f"{key} of {name} is {shown(value)}, known are {', '.join(sorted(known))}")
    return found


def _neuro(file: Any, name: str) -> Any:
    neuro = dataset(file, "neuro")
    if neuro is None:
        raise corrupt(f"{name} holds no samples (neuro)")
    if neuro.dtype.kind not in _NUMBERS:
        raise unsupported(f"the samples of {name} are of the type {neuro.dtype}, no real numbers")
    if len(neuro.shape) == 3:
        raise not_continuous(f"{name} holds {neuro.shape[0]} trials (neuro has three axes)")
    if len(neuro.shape) != 2:
        raise corrupt(f"neuro of {name} has {len(neuro.shape)} axes, a recording two")
    if 0 in neuro.shape:
        raise empty(f"{name} holds {neuro.shape[0]} samples of {neuro.shape[1]} channels")
    return neuro


def _agree(info: Any, name: str, shape: tuple[int, ...]) -> None:
    declared = attribute(info, "shape")
    if declared is None:
        return
    if not isinstance(declared, np.ndarray) or tuple(np.ravel(declared).tolist()) != shape:
        raise corrupt(f"neuro_info.shape of {name} is {shown(declared)}, neuro has {shape}")


def _names(info: Any, name: str, n_channels: int) -> tuple[str, ...] | None:
    value = attribute(info, "ch_names")
    if value is None:
        return None
    found = texts(value)
    if found is None:
        raise corrupt(f"neuro_info.ch_names of {name} is no list of names")
    if len(found) != n_channels:
        detail = f"neuro_info.ch_names of {name} names {len(found)} channels, neuro has {n_channels}"
        raise RecordingFailed(FailureCode.CHANNEL_COUNT_MISMATCH, detail=detail)
    return found


def _of_each(info: Any, key: str, n_channels: int) -> tuple[str, ...] | None:
    """What other programs note of each channel; taken where it is one text a channel, for the format does not know it."""
    found = texts(attribute(info, key))
    return found if found is not None and len(found) == n_channels else None
