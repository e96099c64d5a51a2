"""docs/read/cost.md says how many requests a question costs; here they are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zarr
from loopback import running
from product import ROOT
from signal_store import CHUNK, DATASET, GROUP, SHARD, ZARR, put_index, put_version
from zarr.storage import FsspecStore

from api.app import create_app
from infra.settings import Settings
from infra.storage.folder import FolderTarget

PAGE = (ROOT / "docs" / "read" / "cost.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Callable[[], int]]]:
    """The URL of a store, and a function that tells the requests since it was last called."""
    root = tmp_path_factory.mktemp("counted")
    target = FolderTarget(root / "served", port=8321)
    put_index(target)
    put_version(target, root, 2)
    app = create_app(target, Settings())
    seen: list[str] = []

    async def counting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            seen.append(scope["path"])
        await app(scope, receive, send)

    def told() -> int:
        count = len(seen)
        seen.clear()
        return count

    with running(counting) as port:  # type: ignore[arg-type]  # an application as good as FastAPI's
        yield f"http://127.0.0.1:{port}/{DATASET}/zarr/{ZARR}", told


def test_a_window_costs_what_the_page_says(counted: tuple[str, Callable[[], int]]) -> None:
    url, told = counted
    assert "1 for metadata, then for each shard 1 for its index and 1 for each chunk of 4 s" in PAGE
    array = zarr.open_array(FsspecStore.from_url(url), path=f"{GROUP}/0", mode="r", zarr_format=3)
    assert told() == 1
    for start, stop, shards, chunks in (
        (0, 1, 1, 1),
        (0, CHUNK, 1, 1),
        (CHUNK - 1, CHUNK + 1, 1, 2),
        (SHARD - 1, SHARD + 1, 2, 2),
        (SHARD, SHARD + 2 * CHUNK, 1, 2),
    ):
        _ = array[:, start:stop]
        assert told() == shards + chunks, (start, stop)
    assert "are one object, which a single request without a range can get" in PAGE
    _ = array[:, :SHARD]
    assert told() == 1


def test_a_picture_costs_what_the_page_says(counted: tuple[str, Callable[[], int]]) -> None:
    url, told = counted
    assert "2 for metadata, then 1 for each 1,024 columns" in PAGE
    group = zarr.open_group(FsspecStore.from_url(url), path=GROUP, mode="r", zarr_format=3)
    view = group["view/1"]
    assert told() == 2
    _ = view[:, :, 100:300]  # this store's views have 128 columns in a chunk
    assert told() == 3
