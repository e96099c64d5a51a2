"""Datasets made known by their source or by a catalog API over HTTP, and where their provenance comes from then."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from catalog_api import CatalogApi, catalog_api
from small_dataset import write_recording, write_root
from sqlalchemy import Engine

from contract.errors import Refused
from db import datasets, operators
from db.dataset_values import Dataset, DatasetFacts
from flows.operations import Operator
from flows.reconvert import reconvert
from flows.registration import import_catalog, register_source
from flows.request import ReconvertRequest
from flows.stop import StopSignal
from flows.survey import survey
from infra.settings import Settings
from tasks.upstream import UpstreamTrouble, checked_base, fetch_provenance, list_upstream

ANA = Operator(name="ana")


@pytest.fixture
def settings(home: Path, database_url: str) -> Settings:
    return Settings(home=home, database_url=database_url)


@pytest.fixture
def api() -> Iterator[CatalogApi]:
    with catalog_api() as served:
        yield served


def row(number: int, **more: Any) -> dict[str, Any]:
    return {"dataset_id": f"nm{number:06d}", "name": f"Dataset {number}", "license": "CC0"} | more


def known(engine: Engine) -> dict[str, Dataset]:
    with engine.connect() as c:
        return {one.dataset_id: one for one in datasets.list_datasets(c)}


def test_a_source_is_registered_with_what_it_says_of_itself(settings: Settings, engine: Engine, tmp_path: Path) -> None:
    source = tmp_path / "source"
    write_root(source)
    write_recording(source, "01")
    (source / "dataset_description.json").write_text(
        json.dumps({"Name": "Blinks", "License": "CC0", "BIDSVersion": "1.10.0"})
    )
    asked = ReconvertRequest(source=str(source), target=str(tmp_path / "served"))
    done = register_source(settings, engine, asked, ANA, visibility="private", upstream="http://api.example.org/")
    assert (done.is_new, done.discovered) == (True, 1)
    dataset = known(engine)["xx000001"]
    assert (dataset.facts.name, dataset.facts.license, dataset.facts.modalities) == ("Blinks", "CC0", ("eeg",))
    assert (dataset.visibility, dataset.upstream, dataset.status) == ("private", "http://api.example.org", None)
    assert not (tmp_path / "served").exists(), "nothing is written to the target"
    with engine.connect() as c:
        assert {one.verb for one in operators.last_actions(c, subject="xx000001")} == {"register", "dataset set"}
    with pytest.raises(Refused, match="does not exist"):
        register_source(settings, engine, ReconvertRequest(source=str(tmp_path / "no"), target=str(tmp_path)), ANA)


@pytest.mark.parametrize("data", [b"[]", b"{", b"not json", b""])
def test_a_description_that_is_no_json_object_is_refused_by_its_name(
    settings: Settings, engine: Engine, tmp_path: Path, data: bytes
) -> None:
    source = tmp_path / "source"
    write_root(source)
    write_recording(source, "01")
    (source / "dataset_description.json").write_bytes(data)
    asked = ReconvertRequest(source=str(source), target=str(tmp_path / "served"))
    with pytest.raises(Refused, match=r"dataset_description\.json of SOURCE"):
        register_source(settings, engine, asked, ANA)
    assert known(engine) == {}


def test_a_dataset_without_a_recording_is_registered_with_a_warning_and_never_published(
    settings: Settings, engine: Engine, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    write_root(source)
    asked = ReconvertRequest(source=str(source), target=str(tmp_path / "served"))
    done = register_source(settings, engine, asked, ANA)
    assert (done.discovered, "no recording" in done.notes[0]) == (0, True)
    with pytest.raises(Refused, match="holds no recording"):
        reconvert(settings, asked, lambda _event: None, StopSignal())
    assert known(engine)[done.dataset.dataset_id].status is None
    assert not (tmp_path / "served").exists()


@pytest.mark.parametrize("left", [None, (), ("lost+found/x",)], ids=["gone", "empty", "another disk"])
def test_a_source_that_is_not_there_is_refused_and_never_taken_for_one_without_recordings(
    settings: Settings, engine: Engine, tmp_path: Path, left: tuple[str, ...] | None
) -> None:
    source = tmp_path / "source"
    write_root(source)
    write_recording(source, "01")
    asked = ReconvertRequest(source=str(source), target=str(tmp_path / "served"))
    register_source(settings, engine, asked, ANA)
    shutil.rmtree(source)
    if left is not None:
        source.mkdir()
    for name in left or ():
        (source / name).parent.mkdir()
        (source / name).touch()
    with pytest.raises(Refused, match=f"SOURCE {source}"):
        survey(settings, engine, asked)


def test_a_catalog_is_imported_by_pages_and_what_it_lists_no_more_takes_no_part(
    settings: Settings, engine: Engine, tmp_path: Path, api: CatalogApi
) -> None:
    api.rows = [row(number) for number in range(1, 452)]
    api.rows.append({"dataset_id": "not an id\n", "name": "x"})
    sources = ReconvertRequest(source=str(tmp_path / "archive"), target=str(tmp_path / "served"), annex="s3://annex/a")
    shown = import_catalog(settings, engine, sources, ANA, catalog=api.url, execute=False)
    assert (shown.listed, len(shown.added), known(engine)) == (451, 451, {})
    assert shown.rejected == (repr("not an id\n"),)
    assert [path for path in api.asked if "offset" in path] == [
        f"/datasets?limit=200&offset={offset}" for offset in (0, 200, 400)
    ]
    (tmp_path / "archive/nm000002.git").mkdir(parents=True)
    (tmp_path / "archive/nm000002.git/HEAD").write_text("ref: refs/heads/main\n")
    import_catalog(settings, engine, sources, ANA, catalog=api.url, execute=True)
    now = known(engine)
    assert len(now) == 451
    assert (now["nm000001"].facts.name, now["nm000001"].upstream) == ("Dataset 1", api.url)
    assert now["nm000001"].source == str(tmp_path / "archive/nm000001")
    assert now["nm000001"].annex == "s3://annex/a/nm000001"
    assert now["nm000002"].source == str(tmp_path / "archive/nm000002.git")
    api.rows = [one for one in api.rows if one["dataset_id"] != "nm000007"]
    again = import_catalog(settings, engine, sources, ANA, catalog=api.url, execute=True)
    assert (again.added, again.known, again.unlisted) == ((), 450, ("nm000007",))
    assert not known(engine)["nm000007"].active
    api.rows.append(row(7))
    assert import_catalog(settings, engine, sources, ANA, catalog=api.url, execute=True).relisted == ("nm000007",)
    assert not known(engine)["nm000007"].active, "an operator decides that"


LIES: dict[str, tuple[dict[str, Any], str]] = {
    "a fallback": ({"fallback": True, "warning": "degraded"}, "fallback"),
    "fewer than it says": ({"total_count": 9}, "says that it lists 9"),
    "no list": ({"datasets": "none"}, "page of datasets"),
    "no count": ({"total_count": "many"}, "page of datasets"),
    "rows that are none": ({"datasets": [1, 2, 3], "total_count": 3}, "page of datasets"),
}


@pytest.mark.parametrize(("lies", "told"), LIES.values(), ids=LIES)
def test_a_listing_that_is_not_whole_is_never_taken_for_the_whole(
    api: CatalogApi, lies: dict[str, Any], told: str
) -> None:
    api.rows = [row(1), row(2)]
    api.lies = lies
    with pytest.raises(UpstreamTrouble, match=told):
        list_upstream(api.url)


def test_a_dataset_told_twice_is_not_a_whole_listing(api: CatalogApi) -> None:
    api.rows = [row(1), row(1)]
    with pytest.raises(UpstreamTrouble, match="told 1 of them"):
        list_upstream(api.url)


@pytest.mark.parametrize(
    ("status", "raw", "told"), [(503, None, "answered 503"), (200, b"<html>", "JSON"), (200, b"[]", "JSON object")]
)
def test_trouble_upstream_is_told(api: CatalogApi, status: int, raw: bytes | None, told: str) -> None:
    api.status, api.raw = status, raw
    with pytest.raises(UpstreamTrouble, match=told):
        fetch_provenance(api.url, "nm000001")


def test_what_upstream_says_is_checked(api: CatalogApi) -> None:
    api.rows = [
        row(
            1,
            name=["a", "list"],
            concept_doi="https://doi.org/10.5072/nm.1",
            citation="Two\nlines",
            license="CC0\x1b[31m",
            participants=True,
            modalities="meg,eeg, eeg",
            hed_version=" 8.3.0 ",
        )
    ]
    (one,) = list_upstream(api.url).datasets
    assert one.facts == DatasetFacts(
        doi="10.5072/nm.1", citation="Two lines", hed_version="8.3.0", modalities=("eeg", "meg")
    )


@pytest.mark.parametrize(
    "url", ["", "ftp://x", "https://me:secret@x", "https://x?token=1", "http://[x", "api.example.org"]
)
def test_an_address_that_is_none_or_holds_a_secret_is_refused(url: str) -> None:
    with pytest.raises(Refused, match="catalog API"):
        checked_base(url)


def test_provenance_comes_from_upstream_and_stands_while_that_cannot_be_read(
    settings: Settings, engine: Engine, tmp_path: Path, api: CatalogApi
) -> None:
    source = tmp_path / "source"
    write_root(source)
    (source / "dataset_description.json").write_text(
        json.dumps({"Name": "Own", "License": "PD", "BIDSVersion": "1.10.0"})
    )
    api.rows = [row(1, license="CC-BY", citation="Cite this", concept_doi="10.5072/nm.1")]
    asked = ReconvertRequest(source=str(source), target=str(tmp_path / "served"), dataset_id="nm000001")
    assert survey(settings, engine, asked).facts.license == "PD"
    register_source(settings, engine, asked, ANA, upstream=api.url)
    told = survey(settings, engine, asked)
    assert (told.facts.name, told.facts.license, told.facts.citation) == ("Own", "CC-BY", "Cite this")
    assert not told.provenance_fetch_failed
    register_source(settings, engine, asked, ANA)
    api.status = 500
    kept = survey(settings, engine, asked)
    assert (kept.facts, kept.provenance_fetch_failed) == (told.facts, True)
    assert any("provenance stays" in note for note in kept.notes)
