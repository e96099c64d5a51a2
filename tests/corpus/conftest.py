"""The corpus, written once and converted once a session through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Zarrmill, finish
from corpus_found import Outcomes, outcomes
from corpus_row import Place
from corpus_table import ROWS
from served_dataset import Served

DATASET = "xx000044"


def write_corpus(root: Path) -> None:
    root.mkdir()
    (root / "dataset_description.json").write_text(json.dumps({"Name": "corpus", "BIDSVersion": "1.10.0"}))
    for row in ROWS:
        row.write(Place(root, row.name, row.datatype))


@pytest.fixture(scope="session")
def corpus_command(servers, prefect_url: str, tmp_path_factory: pytest.TempPathFactory) -> Zarrmill:
    """The command line with a database and a home that live as long as the session."""
    folder = tmp_path_factory.mktemp("corpus")
    server = servers.migrated(18)
    server.create_database("corpus", template="migrated")
    (folder / "home").mkdir(mode=0o700)
    return Zarrmill(
        folder / "home", folder, {"ZARRMILL_DATABASE_URL": server.url("corpus"), "PREFECT_API_URL": prefect_url}
    )


@pytest.fixture(scope="session")
def corpus(corpus_command: Zarrmill) -> Outcomes:
    """What came of all rows."""
    root = corpus_command.cwd / DATASET
    write_corpus(root)
    finish(corpus_command.start("convert", root), timeout_s=800)
    served = Served(corpus_command.cwd / "served", DATASET)
    return outcomes(served, root, corpus_command.settings["ZARRMILL_DATABASE_URL"])
