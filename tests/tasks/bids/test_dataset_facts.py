from __future__ import annotations

import json
from pathlib import Path

import pytest

from tasks.bids.dataset_facts import DescribedDataset, compose_citation, dataset_facts, normalised_doi
from tasks.bids.discovery import discover_source
from tasks.sources import open_source


def facts_of(folder: Path) -> DescribedDataset:
    source = open_source(str(folder))
    return dataset_facts(source, discover_source(source), archive_name="NEMAR")


def dataset(folder: Path, description: object, participants: str | None = None) -> Path:
    for subject in ("01", "02"):
        (folder / f"sub-{subject}" / "eeg").mkdir(parents=True)
        (folder / f"sub-{subject}" / "eeg" / f"sub-{subject}_task-rest_eeg.edf").write_bytes(b"x")
    (folder / "sub-03" / "anat").mkdir(parents=True)
    (folder / "sub-03" / "anat" / "sub-03_T1w.json").write_text("{}")
    text = description if isinstance(description, str) else json.dumps(description)
    (folder / "dataset_description.json").write_text(text)
    if participants is not None:
        (folder / "participants.tsv").write_text(participants)
    return folder


def test_the_facts_of_a_full_description(tmp_path: Path) -> None:
    described = facts_of(
        dataset(
            tmp_path,
            {
                "Name": " Rest  and\nwork ",
                "BIDSVersion": "1.9.0",
                "License": "CC0",
                "Authors": ["A. One", "B. Two", None, ""],
                "DatasetDOI": "doi:10.18112/openneuro.ds000001.v1",
                "HEDVersion": ["8.3.0", "sc:1.0.0"],
            },
            "participant_id\tage\nsub-01\t3\nsub-02\tn/a\nsub-02\t4\nn/a\t\n",
        )
    )
    facts = described.facts
    assert (facts.name, facts.license, facts.doi) == ("Rest and work", "CC0", "10.18112/openneuro.ds000001.v1")
    assert (facts.hed_version, facts.has_hed) == ("8.3.0, sc:1.0.0", True)
    assert facts.citation == "A. One, B. Two. Rest and work. NEMAR. https://doi.org/10.18112/openneuro.ds000001.v1"
    assert (facts.modalities, facts.tasks, facts.subject_count) == (("eeg",), ("rest",), 2)
    assert (described.authors, described.bids_version, described.notes) == (("A. One", "B. Two"), "1.9.0", ())


@pytest.mark.parametrize(
    "description", ["{,}", "[]", "", '{"Name": 3, "Authors": {"a": 1}, "DatasetDOI": ["x"], "License": null}']
)
def test_a_malformed_description_makes_facts_none_and_the_run_goes_on(tmp_path: Path, description: str) -> None:
    described = facts_of(dataset(tmp_path, description))
    facts = described.facts
    assert (facts.name, facts.doi, facts.license, facts.citation, facts.hed_version, facts.has_hed) == (None,) * 6
    assert (facts.subject_count, facts.tasks) == (3, ("rest",))
    assert bool(described.notes) is (not description.startswith('{"Name"'))


def test_a_missing_description_is_noted(tmp_path: Path) -> None:
    folder = dataset(tmp_path, {})
    (folder / "dataset_description.json").unlink()
    assert facts_of(folder).notes == ("there is no dataset_description.json",)


@pytest.mark.parametrize("participants", ["", "subject\nsub-01\n", "participant_id\n"])
def test_participants_without_ids_are_counted_by_their_folders(tmp_path: Path, participants: str) -> None:
    described = facts_of(dataset(tmp_path, {"Name": "x"}, participants))
    assert described.facts.subject_count == 3
    assert described.notes[-1].startswith("participants.tsv: no participant_id")


@pytest.mark.parametrize(
    ("text", "doi"),
    [
        ("10.18112/x.y", "10.18112/x.y"),
        (" doi:10.18112/x.y ", "10.18112/x.y"),
        ("DOI: 10.18112/x.y", "10.18112/x.y"),
        ("https://doi.org/10.18112/x.y", "10.18112/x.y"),
        ("http://dx.doi.org/10.18112/x(y)_z", "10.18112/x(y)_z"),
        ("n/a", None),
        ("10.18112/x y", None),
        ("https://example.org/10.18112/x", None),
        (None, None),
    ],
)
def test_a_doi_is_published_bare(text: str | None, doi: str | None) -> None:
    assert normalised_doi(text) == doi


@pytest.mark.parametrize(
    ("authors", "name", "doi", "citation"),
    [
        ([], "N", None, "N. NEMAR."),
        (["A B."], "N.", None, "A B. N. NEMAR."),
        (["A"], None, "10.1234/x", None),
    ],
)
def test_what_a_citation_lacks_is_left_out(
    authors: list[str], name: str | None, doi: str | None, citation: str | None
) -> None:
    assert compose_citation(authors=authors, name=name, doi=doi, archive_name="NEMAR") == citation


def test_real_datasets_describe_themselves(recordings: Path) -> None:
    tiny = facts_of(recordings / "brainvision" / "tiny_bids").facts
    assert (tiny.name, tiny.hed_version, tiny.subject_count, tiny.modalities) == ("tiny_bids", "8.3.0", 1, ("eeg",))
    emg = facts_of(recordings / "emg" / "emg_TwoWristbands").facts
    assert (emg.license, emg.tasks, emg.modalities) == ("BSD 3-Clause", ("typing",), ("emg",))
