"""Looks for words in every byte that a target serves beside samples: documents, metadata of stores, events, parquet."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow.parquet as pq

_ENCODINGS = ("utf-8", "utf-16-le", "latin-1")
_SHORTEST = 4
_DOCUMENTS = {".json", ".parquet", ".tsv", ".edf"}
_LONG = 8
"""Samples are scanned for long words only: they are any bytes, and a short word stands in them by chance."""


def found(folder: Path, words: Iterable[str]) -> list[str]:
    """``file: word`` for every word, in any case, in any file below ``folder`` or in what a parquet file unpacks to."""
    wanted = [(word, _spellings(word)) for word in words]
    hits = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = str(path.relative_to(folder))
        texts = [name.lower().encode(), *(text.lower() for text in _texts(path))]
        hits += [
            f"{name}: {word}"
            for word, spellings in wanted
            if (path.suffix in _DOCUMENTS or len(word) >= _LONG)
            and any(spelling in text for spelling in spellings for text in texts)
        ]
    return hits


def places(*folders: Path) -> list[str]:
    """Words that would give this machine away: its name, its user's home, and these folders."""
    names = [str(folder) for folder in folders] + [str(Path.home()), str(Path(__file__).resolve().parents[2])]
    names += [socket.gethostname(), f"/home/{getpass.getuser()}", "/home/", "/root/", "/tmp/", "C:\\", "file://"]
    return [name for name in dict.fromkeys(names) if len(name) >= _SHORTEST or name == "C:\\"]


def _spellings(word: str) -> list[bytes]:
    plain = [word, word.replace("\\", "\\\\"), word.replace("/", "\\/")]
    return [each.lower().encode(encoding) for each in dict.fromkeys(plain) for encoding in _ENCODINGS]


def _texts(path: Path) -> Iterator[bytes]:
    yield path.read_bytes()
    if path.suffix == ".parquet":
        file = pq.ParquetFile(path)
        yield repr(file.metadata.metadata).encode()
        yield str(file.schema_arrow).encode()
        yield str(file.metadata.created_by).encode()
        for group in range(file.num_row_groups):
            yield str(file.metadata.row_group(group).to_dict()).encode()
        yield repr(file.read().to_pylist()).encode()
