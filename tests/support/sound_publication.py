"""The documents of a publication, and whether they are sound."""

from __future__ import annotations

import pyarrow.parquet as pq
from press import Press

from contract.documents import parse
from contract.index import LocalIndex
from contract.manifest import Manifest

DOCUMENTS = ("index.json", "manifest.json", "events.parquet")


def identity(press: Press) -> dict[str, tuple[int, int]]:
    """Inode and time of change of every document: both change with every write."""
    files = [press.home / name for name in DOCUMENTS]
    return {file.name: (file.stat().st_ino, file.stat().st_mtime_ns) for file in files if file.exists()}


def sound(press: Press) -> LocalIndex:
    """The index, after everything that must hold between the documents and the stores was checked."""
    index = parse(LocalIndex, (press.home / "index.json").read_bytes())
    manifest = parse(Manifest, (press.home / "manifest.json").read_bytes())
    assert [store.zarr for store in manifest.stores] == [store.zarr for store in index.stores]
    for store in index.stores:
        assert (press.home / store.zarr / "zarr.json").is_file()
    if index.events_row_count is None:
        assert not (press.home / "events.parquet").exists()
        assert manifest.files is None
    else:
        table = pq.read_table(press.home / "events.parquet")
        assert table.num_rows == index.events_row_count
        assert set(table["store_path"].to_pylist()) <= {store.zarr for store in index.stores}
        assert manifest.files is not None
        assert manifest.files[0].row_count == index.events_row_count
        assert manifest.files[0].size_bytes == (press.home / "events.parquet").stat().st_size
    return index
