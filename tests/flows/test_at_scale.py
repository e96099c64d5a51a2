"""What a plan and a rerun cost at an archive's scale: counted in requests, on datasets that the benchmarks make up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
from archive import DATASET_ID, fill, request_of, write_dataset
from s3_server import S3Place
from sqlalchemy import Engine

from flows.preview import preview
from flows.reconvert import reconvert
from flows.request import ReconvertRequest
from flows.stop import StopSignal
from infra.settings import Settings
from tasks.publish.live import LOOKED_FOR

ROOT = "served/nm000001/zarr/"


def rerun(settings: Settings, request: ReconvertRequest) -> bool:
    """Whether a run over a dataset in which nothing changed changed something."""
    summary = reconvert(settings, request, lambda _event: None, StopSignal())
    assert (summary.run_number, summary.converted) == (None, 0)
    return summary.changed


def test_the_archive_of_the_benchmarks_is_one_of_which_nothing_is_due(
    engine: Engine, database_url: str, home: Path, tmp_path: Path
) -> None:
    source, target = tmp_path / "source", tmp_path / "served"
    write_dataset(source, 5)
    settings = Settings(home=home, database_url=database_url)
    fill(settings, engine, source, target)
    planned = preview(settings, request_of(source, target))
    assert [row.action for row in planned.rows] == ["carry"] * 5
    assert planned.documents_current
    assert not rerun(settings, request_of(source, target))
    edited = source / "sub-0000/ses-00/eeg/sub-0000_ses-00_task-rest_run-03_channels.tsv"
    edited.write_bytes(edited.read_bytes() + b"extra\tEEG\tuV\n")
    rows = preview(settings, request_of(source, target)).rows
    assert [row.path.rpartition("_run-")[2][:2] for row in rows if row.action != "carry"] == ["03"]


@dataclass(frozen=True)
class Served:
    """As many recordings, served from a bucket as if a run had converted them."""

    engine: Engine
    settings: Settings
    s3: S3Place
    folder: Path

    @cached_property
    def request(self) -> ReconvertRequest:
        return request_of(self.folder, f"s3://{self.s3.name}/served")

    def fill(self, count: int) -> None:
        write_dataset(self.folder, count)
        target = self.request.target
        fill(
            self.settings,
            self.engine,
            self.folder,
            target,
            put_root=lambda zarr: self.s3.put(f"{ROOT}{zarr}/zarr.json", b"{}") and None,
        )

    def roots(self) -> list[str]:
        return [key for key in self.s3.keys(ROOT) if key.endswith(".zarr/zarr.json")]

    def asked(self) -> Counter[str]:
        """Requests of a plan and of a run that have nothing to do."""
        self.s3.proxy.forget()
        assert preview(self.settings, self.request).documents_current
        assert not rerun(self.settings, self.request)
        return self.s3.proxy.counts()


@pytest.fixture
def served(engine: Engine, database_url: str, home: Path, s3: S3Place, tmp_path: Path) -> Served:
    return Served(engine, s3.settings(home=home, database_url=database_url), s3, tmp_path / "source")


@pytest.mark.parametrize("count", [LOOKED_FOR + 10, 2 * LOOKED_FOR + 50])
def test_a_rerun_against_a_bucket_costs_as_many_requests_whatever_it_serves(served: Served, count: int) -> None:
    served.fill(count)
    asked = served.asked()
    assert asked.keys() == {"HEAD", "GET"}, "nothing is listed and nothing is written"
    assert asked["HEAD"] <= 2 * (LOOKED_FOR + 8)
    assert asked["GET"] <= 2
    assert sum(key.endswith(".zarr/zarr.json") for _word, key in served.s3.proxy.asked) == 2 * LOOKED_FOR


def test_stores_that_vanished_from_a_bucket_are_found(served: Served) -> None:
    """One of a hundred that are looked for tells that all must be; all are when the index is not the one that was put."""
    served.fill(LOOKED_FOR + 20)
    roots = served.roots()
    for key in roots[20:]:  # the twenty that are left are too few for a hundred that all stand
        served.s3.plain.delete_object(Bucket=served.s3.name, Key=key)
    found = preview(served.settings, served.request)
    assert sum(row.why == "lost" for row in found.rows) == LOOKED_FOR
    for key in roots[20:]:
        served.s3.put(key, b"{}")
    served.s3.plain.delete_object(Bucket=served.s3.name, Key=roots[7])
    index = served.s3.get(f"{ROOT}index.json")
    served.s3.put(f"{ROOT}index.json", index + b"\n")
    found = preview(served.settings, served.request)
    assert [row.action for row in found.rows].count("convert") == 1
    assert found.dataset_id == DATASET_ID
