from __future__ import annotations

import string
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract import layout
from contract.errors import Refused

NAME = st.text(string.ascii_letters + string.digits + "-_. éß漢#%+", min_size=1, max_size=12).filter(
    lambda t: t not in (".", "..")
)
PATHS = st.lists(NAME, min_size=1, max_size=4).map("/".join)


@pytest.mark.parametrize(
    ("recording", "extension", "store"),
    [
        ("sub-01/eeg/sub-01_task-rest_eeg.set", ".set", "sub-01/eeg/sub-01_task-rest_eeg.zarr"),
        ("sub-01/eeg/sub-01_task-rest_eeg.EDF", ".EDF", "sub-01/eeg/sub-01_task-rest_eeg.zarr"),
        ("sub-01/meg/sub-01_split-01_meg.fif", ".fif", "sub-01/meg/sub-01_split-01_meg.zarr"),
        ("sub-01/meg/sub-01_meg.ds", ".ds", "sub-01/meg/sub-01_meg.zarr"),
        ("sub-01/ieeg/sub-01_ieeg.mefd", ".mefd", "sub-01/ieeg/sub-01_ieeg.zarr"),
        ("sub-01/meg/sub-01_meg", "", "sub-01/meg/sub-01_meg.zarr"),
        ("sub-01/meg/sub-01_acq-1.5T_meg", "", "sub-01/meg/sub-01_acq-1.5T_meg.zarr"),
        ("sub-01.edf/x", "", "sub-01.edf/x.zarr"),
        ("a.b.edf", ".edf", "a.b.zarr"),
        (".edf", "", ".edf.zarr"),
    ],
)
def test_a_store_stands_where_its_recording_does(recording: str, extension: str, store: str) -> None:
    assert layout.store_path(recording, extension) == store


@given(path=PATHS, extension=st.sampled_from([".edf", ".fif.gz", ".ds", ".SET"]))
def test_a_store_path_replaces_the_extension_and_nothing_else(path: str, extension: str) -> None:
    store = layout.store_path(path + extension, extension)
    assert store == f"{path}.zarr"
    assert layout.store_key("xx000001", store) == f"xx000001/zarr/{path}.zarr"


@given(path=PATHS)
def test_a_relative_path_is_given_back(path: str) -> None:
    assert layout.check_relative(path) == path


@given(
    path=PATHS,
    bad=st.sampled_from(["/{}", "{}/", "../{}", "{}/..", "./{}", "a//{}", "{}\\b", "{}\0", "a/../{}", "a/./{}"]),
)
def test_a_path_that_could_leave_is_refused(path: str, bad: str) -> None:
    with pytest.raises(Refused):
        layout.check_relative(bad.format(path))


@pytest.mark.parametrize("path", ["", "/", ".", "..", "C:\\x"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(Refused):
        layout.check_relative(path)


@given(path=PATHS)
def test_a_store_url_leads_back_to_the_store(path: str) -> None:
    base = layout.contract_base("https://zarr.nemar.org", "nm000103")
    parts = urlsplit(layout.store_url(base, f"{path}.zarr"))
    assert unquote(parts.path) == f"/nm000103/zarr/{path}.zarr/"
    assert (parts.query, parts.fragment) == ("", "")


def test_addresses_and_keys_of_a_dataset() -> None:
    base = layout.contract_base("http://127.0.0.1:8321/", "xx000001")
    assert base == "http://127.0.0.1:8321/xx000001/zarr/"
    zarr = "sub-01/eeg/sub-01_task-rest_eeg.zarr"
    assert layout.store_url(base, zarr) == f"{base}{zarr}/"
    assert layout.index_key("xx000001") == "xx000001/zarr/index.json"
    assert layout.manifest_key("xx000001") == "xx000001/zarr/manifest.json"
    assert layout.events_key("xx000001") == "xx000001/zarr/events.parquet"
    assert layout.CATALOG_KEY == "zarr-catalog.json"
    assert layout.level0_path(zarr, "eeg_250hz") == f"{zarr}/eeg_250hz/0"
    assert layout.view_path(zarr, "eeg_250hz", 2) == f"{zarr}/eeg_250hz/view/2"


@pytest.mark.parametrize("dataset_id", ["", "nm00103", "NM000103", "nm0001033", "../000001", "nm000103\n", "nm000103/"])
def test_an_id_of_another_shape_has_no_keys(dataset_id: str) -> None:
    assert not layout.is_dataset_id(dataset_id)
    with pytest.raises(Refused):
        layout.index_key(dataset_id)


def test_a_store_key_needs_a_store_path() -> None:
    with pytest.raises(Refused):
        layout.store_key("xx000001", "sub-01/eeg")
    with pytest.raises(Refused):
        layout.store_key("xx000001", "../xx000002/zarr/a.zarr")


@given(modality=st.sampled_from(["EEG", "MEG", "IEEG", "EMG", "misc"]), rate=st.integers(1, 50_000))
def test_a_group_is_named_by_modality_and_served_rate(modality: str, rate: int) -> None:
    assert layout.group_name(modality, float(rate)) == f"{modality.lower()}_{rate}hz"
    assert layout.group_name(modality, rate + 0.3) == f"{modality.lower()}_{rate}hz"


@pytest.mark.parametrize(
    ("rate", "native", "taken", "name"),
    [
        (0.1, 0.1, [], "eeg_0.1hz"),
        (12.5, 12.5, [], "eeg_12hz"),
        (12.4, 12.4, ["eeg_12hz"], "eeg_12hz_from12.4"),
        (250.0, 512.0, ["eeg_250hz"], "eeg_250hz_from512"),
        (250.0, 333.33, ["eeg_250hz", "eeg_250hz_from512"], "eeg_250hz_from333.33"),
        (250.0, 512.0, ["meg_250hz"], "eeg_250hz"),
        (1e-5, 1e-5, [], "eeg_0.00001hz"),
    ],
)
def test_groups_of_one_served_rate_are_told_apart_by_their_native_one(
    rate: float, native: float, taken: list[str], name: str
) -> None:
    assert layout.group_name("EEG", rate, native_hz=native, taken=taken) == name


def test_the_templates_and_the_geometry_are_those_of_the_contract() -> None:
    assert (layout.CHUNK_SECONDS, layout.SHARD_SECONDS, layout.VIEW_CHUNK_COLUMNS) == (4.0, 300.0, 1024)
    assert (layout.LAYOUT_LEVEL0, layout.LAYOUT_VIEW) == ("<zarr>/<group>/0", "<zarr>/<group>/view/<L>")
    assert layout.ENGINE_VERSION == "4"
