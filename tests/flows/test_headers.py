"""Recordings that lie in a bucket are projected from their headers, by few small requests, each once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fault_proxy import Fault
from format_samples import bdf_bytes
from git_dataset import repository
from hypothesis import given
from hypothesis import strategies as st
from s3_server import S3Place
from small_files import brainvision, edf_bytes, eeglab, tones
from sqlalchemy import Engine

from contract.errors import StorageError
from flows.headers import headers
from flows.preview import preview
from flows.request import ReconvertRequest
from infra.settings import Settings
from tasks.bids.discovery import discover_source
from tasks.formats import load
from tasks.formats.protocol import Header
from tasks.plan.header import header_at_source
from tasks.plan.packed_header import packed, unpacked
from tasks.plan.projection import project
from tasks.sources import SourceAddress, open_source
from tasks.sources.protocol import Source

LONG = tones(3, 400_000, 100.0)
MANY = [f"C{number}" for number in range(300)]


def edf(folder: Path, stem: str) -> None:
    (folder / f"{stem}.edf").write_bytes(edf_bytes(("A", "B"), n_records=2000))


def edf_of_many(folder: Path, stem: str) -> None:
    (folder / f"{stem}.edf").write_bytes(edf_bytes(MANY))


def edf_of_two_rates(folder: Path, stem: str) -> None:
    (folder / f"{stem}.edf").write_bytes(edf_bytes(("A", "B"), per_record=(400, 100), n_records=2000))


def edf_with_annotations(folder: Path, stem: str) -> None:
    data = edf_bytes(("A", "EDF Annotations"), per_record=(100, 20), n_records=2000, reserved="EDF+D")
    (folder / f"{stem}.edf").write_bytes(data)


def no_edf(folder: Path, stem: str) -> None:
    (folder / f"{stem}.edf").write_bytes(b"0       " + b"nothing of the kind" * 100)


def bdf(folder: Path, stem: str) -> None:
    (folder / f"{stem}.bdf").write_bytes(bdf_bytes(n_records=2000))


def vhdr(folder: Path, stem: str) -> None:
    brainvision(folder, stem, LONG, 100.0)


def vhdr_as_text(folder: Path, stem: str) -> None:
    path = brainvision(folder, stem, LONG[:, :100], 100.0)
    path.write_text(path.read_text().replace("DataFormat=BINARY", "DataFormat = ASCII"))
    path.with_suffix(".eeg").write_text("1 2 3\n" * 100)


def set_with_fdt(folder: Path, stem: str) -> None:
    eeglab(folder / f"{stem}.set", LONG, 100.0, fdt=True)


def large_set(folder: Path, stem: str) -> None:
    eeglab(folder / f"{stem}.set", LONG, 100.0, compressed=False)


Put = Callable[[Path, str], None]


def dataset(folder: Path, *puts: Put) -> Path:
    (folder / "dataset_description.json").write_bytes(b'{"Name": "x", "BIDSVersion": "1.10.0"}')
    for number, put in enumerate(puts):
        place = folder / f"sub-{number:02}" / "eeg"
        place.mkdir(parents=True)
        put(place, f"sub-{number:02}_task-x_eeg")
    return folder


def bucket_of(s3: S3Place, folder: Path, settings: Settings | None = None) -> Source:
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            s3.put(f"ds/{file.relative_to(folder).as_posix()}", file.read_bytes())
    s3.proxy.forget()
    return open_source(f"s3://{s3.name}/ds", settings or s3.settings())


def read(engine: Engine, source: Source) -> dict[str, Header | None]:
    found = headers(engine, source, discover_source(source).recordings)
    return {recording.path: header for recording, header in found}


@pytest.mark.parametrize(
    ("put", "requests"),
    [
        (edf, 1),
        (edf_of_many, 2),
        (edf_of_two_rates, 1),
        (edf_with_annotations, 1),
        (bdf, 1),
        (vhdr, 1),
        (set_with_fdt, 1),
    ],
)
def test_a_projection_is_that_of_the_whole_file_and_is_asked_for_once(
    s3: S3Place, engine: Engine, tmp_path: Path, put: Put, requests: int
) -> None:
    here = open_source(str(dataset(tmp_path, put)))
    [recording] = discover_source(here).recordings
    one = load()[recording.format]
    whole = header_at_source(here, one, recording)
    assert whole is not None
    source = bucket_of(s3, tmp_path)
    [found] = read(engine, source).values()
    assert found is not None
    expected = project(one, whole, recording.size_bytes, recording.modality)
    assert project(one, found, recording.size_bytes, recording.modality) == expected
    assert s3.proxy.counts() == {"LIST": 1, "GET": requests}
    asked = [
        headers["Range"]
        for (word, _), headers in zip(s3.proxy.asked, s3.proxy.seen_headers, strict=True)
        if word == "GET"
    ]
    assert all(int(one.removeprefix("bytes=0-")) < 1024**2 for one in asked), "no signal is read"
    s3.proxy.forget()
    [again] = read(engine, source).values()
    assert again == unpacked(packed(found))
    assert project(one, again, recording.size_bytes, recording.modality) == expected
    assert s3.proxy.counts() == {}, "what has the same content has the same header"


@pytest.mark.parametrize("put", [vhdr_as_text, large_set, no_edf])
def test_where_a_header_is_not_cheap_or_none_the_size_must_do(
    s3: S3Place, engine: Engine, tmp_path: Path, put: Put
) -> None:
    assert list(read(engine, bucket_of(s3, dataset(tmp_path, put))).values()) == [None]
    assert s3.proxy.counts()["GET"] <= 1


def test_a_changed_object_is_asked_again_and_one_that_was_replaced_meanwhile_is_not_believed(
    s3: S3Place, engine: Engine, tmp_path: Path
) -> None:
    source = bucket_of(s3, dataset(tmp_path, edf))
    [path] = read(engine, source)
    s3.put(f"ds/{path}", edf_bytes(("A", "B", "C")))
    changed = open_source(f"s3://{s3.name}/ds", s3.settings())
    assert [header.n_channels for header in read(engine, changed).values() if header] == [3]
    changed = open_source(f"s3://{s3.name}/ds", s3.settings())
    s3.put(f"ds/{path}", edf_bytes(("A",)))
    changed.tree()
    s3.put(f"ds/{path}", edf_bytes(("A", "B", "C", "D")))
    assert read(engine, changed) == {path: None}


def test_a_service_in_trouble_is_not_asked_for_every_header(s3: S3Place, engine: Engine, tmp_path: Path) -> None:
    source = bucket_of(s3, dataset(tmp_path, *[edf] * 90), s3.settings(s3_tries=1))
    s3.proxy.faults = [Fault(kind="unavailable", method="GET")]
    assert set(read(engine, source).values()) == {None}
    assert 16 <= s3.proxy.counts()["GET"] <= 32
    s3.proxy.forget()
    s3.proxy.faults = [Fault(kind="unavailable", method="GET", share=0.2)]
    found = list(read(engine, source).values())
    assert 50 < len([header for header in found if header]) < 90, "one that is throttled costs no other"
    s3.proxy.faults = [Fault(kind="unavailable", method="LIST")]
    again = open_source(f"s3://{s3.name}/ds", s3.settings(s3_tries=1))
    with pytest.raises(StorageError):
        read(engine, again)


def test_who_has_enough_is_given_the_rest_without_a_request(s3: S3Place, engine: Engine, tmp_path: Path) -> None:
    source = bucket_of(s3, dataset(tmp_path, *[edf] * 3))
    found = list(headers(engine, source, discover_source(source).recordings, enough=lambda: True))
    assert [header for _, header in found] == [None] * 3
    assert s3.proxy.counts() == {"LIST": 1}


@pytest.mark.parametrize("commit", ["HEAD", None], ids=["commit", "folder"])
def test_annexed_content_in_a_bucket_is_looked_at_alike(
    s3: S3Place, engine: Engine, tmp_path: Path, commit: str | None
) -> None:
    folder = dataset(tmp_path / "files", vhdr, edf) if (tmp_path / "files").mkdir() is None else tmp_path
    pointers: dict[str, bytes] = {}
    for file in sorted(folder.rglob("*")):
        if file.suffix in {".edf", ".eeg"}:
            data = file.read_bytes()
            key = f"SHA256E-s{len(data)}--{hashlib.sha256(data).hexdigest()}{file.suffix}"
            s3.put(f"annex/objects/{key}", data)
            pointers[file.relative_to(folder).as_posix()] = f"/annex/objects/{key}\n".encode()
        elif file.is_file():
            pointers[file.relative_to(folder).as_posix()] = file.read_bytes()
    repository(tmp_path / "clone", pointers)
    address = SourceAddress(url=str(tmp_path / "clone"), commit=commit, annex=f"s3://{s3.name}/annex/")
    found = read(engine, open_source(address, s3.settings()))
    assert [header.n_samples for header in found.values() if header] == [400_000, 200_000]
    assert s3.proxy.counts() == {"GET": 1}, "of the samples of a BrainVision recording only the size counts"
    s3.proxy.forget()
    assert len(read(engine, open_source(address, s3.settings()))) == 2
    assert s3.proxy.counts() == {}


def test_a_plan_of_a_bucket_rests_on_headers(
    s3: S3Place, engine: Engine, database_url: str, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "files").mkdir()
    settings = s3.settings(home=home, database_url=database_url)
    source = bucket_of(s3, dataset(tmp_path / "files", edf, large_set), settings)
    asked = ReconvertRequest(source=source.url, target=str(tmp_path / "served"), dataset_id="xx000001")
    assert [row.basis for row in preview(settings, asked).rows] == ["formula", "size"]
    local = preview(settings, replace(asked, source=str(tmp_path / "files")))
    assert [row.basis for row in local.rows] == ["formula", "formula"]
    assert preview(settings, asked).rows[0].projected_bytes == local.rows[0].projected_bytes


@given(
    header=st.builds(
        Header,
        n_channels=st.integers(1, 500),
        n_samples=st.integers(1, 10**8),
        rate_hz=st.just(1000.0),
        rates_hz=st.sampled_from([(1000.0,), (250.0, 1000.0)]),
        tolerant=st.booleans(),
        sample_bytes=st.sampled_from([4, 8]),
        block_samples=st.integers(0, 1000),
        maxshield=st.booleans(),
        copied_bytes=st.integers(0, 10**6),
        notes=st.just(("a note",)),
    ),
    name=st.sampled_from(sorted(load())),
)
def test_what_is_kept_of_a_header_is_what_its_projection_needs(header: Header, name: str) -> None:
    assert project(load()[name], unpacked(packed(header)), 1000, "eeg") == project(load()[name], header, 1000, "eeg")
