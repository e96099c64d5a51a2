"""From what a person types to a source."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from contract.errors import Refused
from tasks.sources.folder import FolderSource

if TYPE_CHECKING:
    from tasks.sources.protocol import Source

__all__ = ["open_source"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def open_source(url: str, *, hash_signals: bool = False, allow_dirty: bool = False) -> Source:
    """The dataset at a path or a ``file:///…`` URL.

    Parameters
    ----------
    hash_signals
        Identify signals by their bytes too (``--hash``).
    allow_dirty
        Name the state of a git checkout by the hash of its files (``--allow-dirty``).

    Raises
    ------
    Refused
        There is no folder that can be listed, or it is empty; the sentence says which.
    """
    folder = Path(_local_path(url)).expanduser()
    try:
        with os.scandir(folder) as entries:
            empty = next(entries, None) is None
    except FileNotFoundError:
        raise Refused(f"SOURCE {url} does not exist: give the folder of a BIDS dataset.") from None
    except NotADirectoryError:
        raise Refused(f"SOURCE {url} is not a folder: give the folder that holds dataset_description.json.") from None
    except (OSError, ValueError) as error:
        raise Refused(f"SOURCE {url!r} cannot be listed: {getattr(error, 'strerror', None) or error}.") from error
    if empty:
        raise Refused(f"SOURCE {url} is an empty folder: give the folder of a BIDS dataset.")
    return FolderSource(folder, hash_signals=hash_signals, allow_dirty=allow_dirty)


def _local_path(url: str) -> str:
    if not url:
        raise Refused("SOURCE is empty: give the folder of a BIDS dataset.")
    if not _SCHEME.match(url):
        return url
    parts = urlsplit(url)
    if parts.scheme.lower() == "file" and parts.netloc in {"", "localhost"}:
        return unquote(parts.path)
    raise Refused(f"SOURCE {parts.scheme}://… is not supported: give the folder of a BIDS dataset.")
