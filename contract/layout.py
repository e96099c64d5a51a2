"""Where things are: store paths, object keys, URLs, group names and the constants of the layout.

Everything here is a pure function of its arguments. Paths use ``/`` and are relative to the dataset or to the bucket.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING
from urllib.parse import quote

from contract.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Container
    from uuid import UUID

__all__ = [
    "CATALOG_KEY",
    "CHUNK_SECONDS",
    "CONVERSION_REVISION",
    "DATASET_ID_PATTERN",
    "ENGINE_VERSION",
    "LAYOUT_EVENTS",
    "LAYOUT_LEVEL0",
    "LAYOUT_SCALE_OFFSET",
    "LAYOUT_VIEW",
    "LAYOUT_VIEW_LEVELS",
    "ROOT_METADATA",
    "RUNS_AREA",
    "SHARD_SECONDS",
    "SIGNAL_DTYPE",
    "VIEW_CHUNK_COLUMNS",
    "VIEW_DOWNSAMPLE",
    "check_relative",
    "contract_base",
    "dataset_prefix",
    "events_key",
    "group_name",
    "index_key",
    "is_dataset_id",
    "level0_path",
    "manifest_key",
    "run_report_key",
    "store_key",
    "store_path",
    "store_url",
    "view_path",
]

ENGINE_VERSION = "4"
"""Generation of discovery and dispatch; changes only when discovery finds more, and then rebuilds every dataset."""
CONVERSION_REVISION = 5
"""Our own part of the options fingerprint: raise it when the bytes of an unchanged recording's store change."""

DATASET_ID_PATTERN = r"^[a-z]{2}[0-9]{6}$"
CATALOG_KEY = "zarr-catalog.json"
RUNS_AREA = "_runs"
"""First segment of the keys of what runs say for their operators; no reader is served from there."""
ROOT_METADATA = "zarr.json"
"""The object that makes a folder of objects a store; written last and removed first."""

CHUNK_SECONDS = 4.0
SHARD_SECONDS = 300.0
VIEW_CHUNK_COLUMNS = 1024
VIEW_DOWNSAMPLE = 4
SIGNAL_DTYPE = "int16"

LAYOUT_LEVEL0 = "<zarr>/<group>/0"
LAYOUT_VIEW = "<zarr>/<group>/view/<L>"
LAYOUT_VIEW_LEVELS = "1..n_view_levels from the group attrs"
LAYOUT_SCALE_OFFSET = "level-0 array attrs scale[] and offset[]; physical = digital * scale + offset"
LAYOUT_EVENTS = "<data_base>events.parquet"

_DATASET_ID = re.compile(DATASET_ID_PATTERN)


def check_relative(path: str) -> str:
    """``path`` itself, when it stays below whatever it is joined to.

    Raises
    ------
    Refused
        The path is empty or absolute, has an empty, ``.`` or ``..`` segment, a backslash or a NUL.
    """
    if not path or "\0" in path or "\\" in path:
        raise Refused(f"The path {path!r} is empty or contains a backslash or a NUL; rename the file.")
    if any(segment in ("", ".", "..") for segment in path.split("/")):
        raise Refused(f"The path {path!r} is absolute or has an empty, '.' or '..' segment.")
    return path


def is_dataset_id(text: str) -> bool:
    """Whether ``text`` is two lower-case letters and six digits."""
    return _DATASET_ID.fullmatch(text) is not None


def store_path(recording_path: str, extension: str = "") -> str:
    """The store's path for a recording: its ``extension`` becomes ``.zarr``; without one it gets it appended.

    Parameters
    ----------
    extension
        The ending by which the recording's format is known, as it stands in the path; empty for a 4D/BTi folder, whose
        name may hold dots.
    """
    return f"{check_relative(recording_path).removesuffix(extension)}.zarr"


def dataset_prefix(dataset_id: str) -> str:
    """Key prefix of everything that is served for a dataset, with its closing slash.

    Raises
    ------
    Refused
        ``dataset_id`` is not two lower-case letters and six digits.
    """
    if not is_dataset_id(dataset_id):
        raise Refused(f"The dataset id {dataset_id!r} is not two lower-case letters and six digits, such as xx000001.")
    return f"{dataset_id}/zarr/"


def index_key(dataset_id: str) -> str:
    """Key of the dataset's index.json."""
    return f"{dataset_prefix(dataset_id)}index.json"


def manifest_key(dataset_id: str) -> str:
    """Key of the dataset's manifest.json."""
    return f"{dataset_prefix(dataset_id)}manifest.json"


def events_key(dataset_id: str) -> str:
    """Key of the dataset's events.parquet."""
    return f"{dataset_prefix(dataset_id)}events.parquet"


def run_report_key(run_id: UUID) -> str:
    """Key of the report that a run leaves for its operators; it lies beside the datasets, never below one."""
    return f"{RUNS_AREA}/{run_id}/report.html"


def store_key(dataset_id: str, zarr: str) -> str:
    """Key of a store's folder, without a closing slash.

    Raises
    ------
    Refused
        ``zarr`` does not end in ``.zarr`` or could leave the dataset.
    """
    if not check_relative(zarr).endswith(".zarr"):
        raise Refused(f"The store path {zarr!r} does not end in .zarr.")
    return f"{dataset_prefix(dataset_id)}{zarr}"


def contract_base(contract_host: str, dataset_id: str) -> str:
    """The stable base URL of a dataset, ``<host>/<id>/zarr/``."""
    return f"{contract_host.rstrip('/')}/{dataset_prefix(dataset_id)}"


def store_url(base: str, zarr: str) -> str:
    """The store's own address below a contract base, with a closing slash.

    Characters that a URL cannot hold are percent-encoded; for a name of plain letters this is ``<base><zarr>/``.
    """
    return f"{base}{quote(check_relative(zarr), safe='/')}/"


def group_name(modality: str, rate_hz: float, *, native_hz: float | None = None, taken: Container[str] = ()) -> str:
    """Name of a channel group, ``eeg_250hz``, unlike every name in ``taken``.

    The rate is the served one, rounded as biosigIO rounds it (half to even); one that rounds to nothing is written out,
    ``eeg_0.1hz``. A group whose name is taken is told apart by its native rate, ``eeg_250hz_from512``, which is
    written out when it is no whole number: ``eeg_250hz_from333.33``.
    """
    name = f"{modality.lower()}_{round(rate_hz) or _written_out(rate_hz)}hz"
    if name not in taken:
        return name
    return f"{name}_from{_written_out(rate_hz if native_hz is None else native_hz)}"


def _written_out(rate_hz: float) -> str:
    """The shortest decimal that is this rate, without an exponent or a closing ``.0``."""
    return f"{Decimal(repr(float(rate_hz))).normalize():f}"


def level0_path(zarr: str, group: str) -> str:
    """Path of a group's level-0 array, relative to the contract base (the template ``LAYOUT_LEVEL0`` filled in)."""
    return f"{zarr}/{group}/0"


def view_path(zarr: str, group: str, level: int) -> str:
    """Path of a view level's array, relative to the contract base (the template ``LAYOUT_VIEW`` filled in)."""
    return f"{zarr}/{group}/view/{level}"
