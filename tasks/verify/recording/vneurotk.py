"""VneuroTK's HDF5 files by h5py, as their format page describes them: time-major samples and the trials beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.verify.recording.protocol import SourceChannel
from tasks.verify.report import Unverifiable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["VneurotkReading", "trials_of"]


class VneurotkReading:
    """A continuous recording. A file without units has those of its channels.tsv."""

    def __init__(self, path: Path) -> None:
        import h5py

        self._file = h5py.File(path, "r", locking=False)
        try:
            self._neuro = _here(self._file, "neuro")
            info = dict(_here(self._file, "neuro_info").attrs)
            n_samples, count = self._neuro.shape
        except BaseException:
            self._file.close()
            raise
        names, units = _list(info.get("ch_names")), _list(info.get("ch_units"))
        has_units = len(units) == count
        self.channels: Sequence[SourceChannel] = [
            SourceChannel(
                names[row] if names else "",
                float(info["sfreq"]),
                n_samples,
                units[row] if has_units else "",
                named=bool(names),
                unit_is_declared=not (has_units and units[row].strip()),
            )
            for row in range(count)
        ]

    def read(self, rows: Sequence[int], start: int, stop: int) -> NDArray[np.float64]:
        """Samples as the file has them; see ``Reading.read``."""
        taken: NDArray[np.float64] = np.asarray(self._neuro[start:stop, :])[:, list(rows)].T.astype(np.float64)
        return taken

    def close(self) -> None:
        """Let the file go."""
        self._file.close()


def trials_of(path: Path) -> list[tuple[float, float | None, str | None, str | None]] | None:
    """Onset, duration, trial type and value of each trial, in the order of the file; None where it has no trials."""
    import h5py

    with h5py.File(path, "r", locking=False) as file:
        if "vision_onsets" not in file:
            return None
        onsets = [int(one) for one in _here(file, "vision_onsets")[()]]
        if not onsets:
            return None
        rate_hz = float(_here(file, "neuro_info").attrs["sfreq"])
        meta = _meta(file, len(onsets))
        labels = [_stimulus(file, onset) for onset in onsets]
        kinds = meta.get("trial_type", labels)
        lengths = meta.get("duration", meta.get("duration_s", [None] * len(onsets)))
        values = meta.get("value", [None] * len(onsets))
        return [
            (onset / rate_hz, _number(length), kind or None, value or None)
            for onset, length, kind, value in zip(onsets, lengths, kinds, values, strict=True)
        ]


def _here(parent: Any, name: str) -> Any:
    """A member that is in the file itself."""
    import h5py

    if not isinstance(parent.get(name, getlink=True), h5py.HardLink):
        raise Unverifiable(f"its {name} is not in the file itself")
    found = parent[name]
    if isinstance(found, h5py.Dataset) and (found.is_virtual or found.external):
        raise Unverifiable(f"its {name} is not in the file itself")
    return found


def _list(value: Any) -> list[str]:
    return [] if value is None else [str(one) for one in np.ravel(value)]


def _stimulus(file: Any, onset: int) -> str | None:
    labels = _here(file, "stim_labels") if "stim_labels" in file else None
    if labels is None:
        return None
    if "types" in labels:
        return _typed(int(labels["types"][onset]), labels["values"][onset].decode())
    value = labels[onset]
    if isinstance(value, bytes):
        return value.decode() or None
    if np.isnan(value):
        return None
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _typed(code: int, text: str) -> str | None:
    match code:
        case 1:
            return str(text == "1")
        case 2 | 4:
            return text or None
        case 3:
            value = float.fromhex(text)
            return None if np.isnan(value) else str(int(value)) if value.is_integer() else repr(value)
    return None


def _meta(file: Any, count: int) -> dict[str, list[str | None]]:
    """The columns of trial_meta that say what an events.tsv would, those of plain numbers and of typed scalars."""
    if "trial_meta" not in file:
        return {}
    table = _here(file, "trial_meta")
    if "columns" not in table:
        columns = {name: _here(table, name) for name in table}
        return {name.lower(): [_cell(one) for one in column[()]] for name, column in columns.items()}
    names = _series(_here(_here(table, "column_index"), "data"))
    columns = {name or "": _here(table["columns"], str(place)) for place, name in enumerate(names)}
    wanted = {"trial_type", "duration", "duration_s", "value"}
    return {name.lower(): _series(column)[:count] for name, column in columns.items() if name.lower() in wanted}


def _series(series: Any) -> list[str | None]:
    values, kind = _here(series, "values") if "values" in series else None, series.attrs.get("kind")
    if kind == "numpy" and values is not None:
        return [_cell(one) for one in values[()]]
    if kind in {"nullable", "object_scalars"} and values is not None:
        pairs = zip(values["types"][()], values["values"][()], strict=True)
        return [_column_cell(int(code), text.decode()) for code, text in pairs]
    raise Unverifiable(f"a column of its trial_meta is of the kind {kind}, which is read by one program only")


def _column_cell(code: int, text: str) -> str | None:
    """As ``_typed``, but for numbers: a column keeps 1.0 as it is."""
    return repr(float.fromhex(text)) if code == 3 and text != "nan" else _typed(code, text)


def _cell(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode() or None
    if isinstance(value, np.floating):
        return None if np.isnan(value) else repr(float(value))
    return str(value)


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else None
    except ValueError:
        return None
    return value if value is None or np.isfinite(value) else None
