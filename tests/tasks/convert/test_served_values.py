"""Served values against an independent reading of the source, on a recording of every format; the table of docs/formats.md."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from conversion import Bench
from format_cases import CASES, Case
from format_table import Group, block, rendered, rows, steps, write
from open_store import served
from reference_signal import disagreements, expected

from contract.rates import RATE_CAPS_HZ
from tasks.bids.discovery import discover
from tasks.bids.recording import DiscoveredRecording
from tasks.convert.order import ConvertedStore
from tasks.formats import load
from tasks.sources.protocol import TreeEntry

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"


@dataclass(frozen=True)
class Converted:
    case: Case
    result: ConvertedStore
    bench: Bench
    route: str
    groups: tuple[Group, ...]


def discovered(source: Path, path: str) -> DiscoveredRecording:
    """What discovery makes of the files that were put, so that every member counts as it does in a dataset."""
    files = {p.relative_to(source).as_posix(): p.stat().st_size for p in source.rglob("*") if p.is_file()}
    tree = {name: TreeEntry(size, name) for name, size in files.items() if "/classic/" not in name}
    return next(one for one in discover(tree).recordings if one.path == path)


def convert(case: Case, recordings: Path, scratch: Path) -> Converted:
    bench = Bench(scratch)
    path = f"sub-01/{case.modality}/{case.bids}"
    primary = bench.source / path
    primary.parent.mkdir(parents=True)
    case.put(primary, recordings)
    one = load()[case.format]
    recording = discovered(bench.source, path)
    assert recording.format == case.format
    result = bench.convert(recording)
    groups = []
    for entry in result.entry.groups or ():
        signal = served(bench.store, entry.name)
        source = case.read(primary, signal.source_rate_hz)
        wanted = expected(source, signal, RATE_CAPS_HZ[case.modality.upper()])
        groups.append(Group(signal, wanted, source.data.shape[1]))
    return Converted(case, result, bench, one.route(one.header(primary)).value, tuple(groups))


@pytest.fixture(scope="module")
def results(recordings: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], Converted]:
    """What came of a case; each is converted once."""
    known: dict[str, Converted] = {}

    def of(case: Case) -> Converted:
        if case.name not in known:
            known[case.name] = convert(case, recordings, tmp_path_factory.mktemp("case"))
        return known[case.name]

    return of


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def converted(request: pytest.FixtureRequest, results: Callable[[Case], Converted]) -> Converted:
    return results(request.param)


def test_values_are_those_of_the_source_within_one_quantisation_step(converted: Converted) -> None:
    for group in converted.groups:
        assert disagreements(group.served, group.wanted) == []


def test_the_comparison_notices_a_shift_a_factor_and_swapped_channels(converted: Converted) -> None:
    for group in converted.groups:
        physical = group.served.physical
        spoiled = {"shifted": np.roll(physical, 1, axis=1), "doubled": 2 * physical}
        if len(physical) > 1:
            spoiled["swapped"] = np.roll(physical, 1, axis=0)
        for how, wrong in spoiled.items():
            assert disagreements(replace(group.served, physical=wrong), group.wanted), how


def test_no_channel_is_missing_and_the_entry_says_what_the_store_holds(converted: Converted) -> None:
    for entry, group in zip(converted.result.entry.groups or (), converted.groups, strict=True):
        assert (entry.n_channels, entry.n_samples) == group.served.physical.shape
        assert entry.n_channels == len(group.wanted)


def test_a_store_holds_no_local_path_no_marker_of_the_file_and_no_name_it_had_before(converted: Converted) -> None:
    assert not (converted.bench.store / "events").exists()
    root = json.loads((converted.bench.store / "zarr.json").read_bytes())["attributes"]
    assert root["recording_metadata"]["source_file"] == converted.result.entry.path
    assert "events" not in root["recording_metadata"]
    for document in converted.bench.store.rglob("zarr.json"):
        text = document.read_text(encoding="utf-8")
        assert str(converted.bench.scratch) not in text
        assert "/tmp/" not in text


def test_labels_in_other_letters_than_ascii_are_the_files(results: Callable[[Case], Converted]) -> None:
    (case,) = (case for case in CASES if case.name == "edf-latin-1")
    (group,) = results(case).groups
    assert (group.served.labels, group.served.units) == (("Débit", "B"), ("uV", "uV"))


def test_every_format_is_among_the_cases() -> None:
    assert {case.format for case in CASES} == set(load())
    assert len({case.name for case in CASES}) == len(CASES)


def test_the_page_shows_what_was_measured(request: pytest.FixtureRequest, results: Callable[[Case], Converted]) -> None:
    """After a change that is meant, ``make format-table`` writes the page."""
    lines = [line for case in CASES for line in rows(case, results(case).route, results(case).groups)]
    if request.config.getoption("--write-tables"):
        write(PAGE, rendered(lines))
    assert block(PAGE) == rendered(lines)


def test_a_wrong_value_would_show_in_the_table(results: Callable[[Case], Converted]) -> None:
    (group,) = results(CASES[0]).groups
    assert steps(group) <= 1
    off = replace(group.served, physical=group.served.physical + 3 * group.served.scale[:, None])
    assert steps(replace(group, served=off)) > 2
