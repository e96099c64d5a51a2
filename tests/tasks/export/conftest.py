from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import pytest
from vneurotk_reader import Reader, install


@pytest.fixture(scope="session")
def vneurotk(require: Callable[[str, str], NoReturn], tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Vneurotk 0.0.1 as it is published, without what it declares and does not need to read a file."""
    folder = tmp_path_factory.mktemp("vneurotk")
    trouble = install(folder)
    if trouble is not None:
        require("vneurotk", f"vneurotk 0.0.1 could not be installed: {trouble}")
    return Reader(folder)
