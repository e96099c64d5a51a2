"""A target to export from."""

from __future__ import annotations

import pytest
from export_scene import put_scene

from infra.storage.folder import FolderTarget
from tasks.read.place import Place, target_place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = tmp_path_factory.mktemp("exporting")
    target = FolderTarget(root / "served", port=8321)
    put_scene(target, root)
    return target_place(target)
