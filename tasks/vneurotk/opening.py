"""HDF5 files of unknown origin, opened so that nothing is read but themselves, and not more than is asked for.

A file may lead to other files (external and soft links, virtual datasets, samples kept elsewhere), name filters that are looked
for on this machine, or declare far more than it holds. Each of these is refused where it is met.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from tasks.formats.content import corrupt, reading, unsupported

__all__ = ["attribute", "dataset", "group", "members", "number", "opened", "shown", "text", "texts", "understood"]

_MAGIC: Final = b"\x89HDF\r\n\x1a\n"
_SUPERBLOCKS: Final = (0, 512, 1024, 2048)
_DEFLATE: Final = 1
_FILTERS: Final = frozenset({_DEFLATE, 2, 3, 32000})
"""Deflate, shuffle, Fletcher's sum and LZF. The others of HDF5 hold a constant of any size in a few bytes, or are libraries that are
looked for by their number."""
_MOST_EXPANDED: Final = 1040
"""Deflate makes at most 1,032 bytes of one; LZF fewer."""
_MOST_VALUES: Final = 65_536
_MOST_SHOWN: Final = 60


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The open ``h5py.File`` at ``path``, for reading; what goes wrong meanwhile is one of our errors.

    Raises
    ------
    RecordingFailed
        ``unsupported_format`` for what is no HDF5, ``corrupt_or_truncated`` for a broken one.
    NotNow
        A condition of the machine.
    """
    with reading(path):
        if not _is_hdf5(path):
            raise unsupported(f"{path.name} is no HDF5 file")
        import h5py

        # rows are read by whole chunks, so nothing is gained by keeping one
        with understood(path.name), h5py.File(path, "r", locking=False, rdcc_nbytes=0) as file:
            yield file


@contextlib.contextmanager
def understood(name: str) -> Iterator[None]:
    """Turn what HDF5 says of a file's structures and chunks into a verdict.

    Raises
    ------
    RecordingFailed
        ``corrupt_or_truncated``. Also where the library finds no memory: a structure of a header that wants so much is none.
    """
    try:
        yield
    except (RuntimeError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise corrupt(f"{name} cannot be read: {error}") from error


def _is_hdf5(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(_SUPERBLOCKS[-1] + len(_MAGIC))
    return any(start[at : at + len(_MAGIC)] == _MAGIC for at in _SUPERBLOCKS)


def shown(value: Any) -> str:
    """A value from a file, for a sentence."""
    said = ascii(value.item() if isinstance(value, np.generic) else value)
    return said if len(said) <= _MOST_SHOWN else said[: _MOST_SHOWN - 1] + "…"


def _member(parent: Any, name: str) -> Any:
    """A member that is a part of the same file; None without one."""
    import h5py

    key = name.encode()
    if not parent.id.links.exists(key):
        return None
    # asked of the link itself: h5py's own ``in`` opens what an external link names
    if parent.id.links.get_info(key).type != h5py.h5l.TYPE_HARD:
        raise unsupported(f"{name} is a link that leads elsewhere, which is not followed")
    return parent[name]


def group(parent: Any, name: str) -> Any:
    """The group ``name`` of an open group; None without one."""
    import h5py

    found = _member(parent, name)
    if found is not None and not isinstance(found, h5py.Group):
        raise corrupt(f"{name} is no group")
    return found


def members(parent: Any, *, most: int) -> list[str]:
    """Names of the members of a group that are parts of the same file, sorted; at most ``most`` of them."""
    import h5py

    # a name that is no UTF-8 comes as bytes, and nothing that is read here has such a one
    names = [name for name in islice(parent, most) if isinstance(name, str)]
    links = parent.id.links
    return sorted(name for name in names if links.get_info(name.encode()).type == h5py.h5l.TYPE_HARD)


def dataset(parent: Any, name: str) -> Any:
    """The dataset ``name`` of an open group, whose values are in the file itself; None without one.

    Raises
    ------
    RecordingFailed
        ``unsupported_format`` when its values are elsewhere or behind a filter that is not HDF5's own, ``corrupt_or_truncated``
        when it declares more than the file can hold.
    """
    import h5py

    found = _member(parent, name)
    if found is None:
        return None
    if not isinstance(found, h5py.Dataset):
        raise corrupt(f"{name} is no dataset")
    plan = found.id.get_create_plist()
    if plan.get_layout() == h5py.h5d.VIRTUAL or plan.get_external_count():
        raise unsupported(f"the values of {name} are in another file, which is not followed")
    filters = [plan.get_filter(position)[0] for position in range(plan.get_nfilters())]
    foreign = [code for code in filters if code not in _FILTERS]
    if foreign or filters.count(_DEFLATE) > 1:
        raise unsupported(f"{name} is compressed in a way that is not read (filters {filters})")
    if found.shape is None:
        raise corrupt(f"{name} holds nothing")
    declared = math.prod(found.shape) * found.dtype.itemsize
    holds = found.file.id.get_filesize() * (_MOST_EXPANDED if filters else 1)
    if declared > holds:
        raise corrupt(f"{name} declares {declared} bytes, more than the file can hold")
    return found


def attribute(node: Any, name: str, *, most: int = _MOST_VALUES) -> Any:
    """The value of an attribute; None without it. At most ``most`` values."""
    key = name.encode()
    import h5py

    if not h5py.h5a.exists(node.id, key):
        return None
    space = h5py.h5a.open(node.id, key).get_space()
    if space.get_simple_extent_npoints() > most:
        raise corrupt(f"the attribute {name} holds more than {most} values")
    return node.attrs[name]


def text(value: Any) -> str | None:
    """A single text, of variable or fixed length; None for anything else."""
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return None
    return str(value) if isinstance(value, str) else None


def texts(value: Any) -> tuple[str, ...] | None:
    """A list of texts; None for anything else."""
    if not isinstance(value, np.ndarray) or value.ndim != 1:
        return None
    found = [text(one.item() if isinstance(one, np.generic) else one) for one in value]
    return None if None in found else tuple(one for one in found if one is not None)


def number(value: Any) -> float | None:
    """A single finite number; None for anything else."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        return None
    return float(value) if math.isfinite(value) else None
