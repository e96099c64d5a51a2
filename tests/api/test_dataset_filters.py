"""Filters over datasets against a computation over the same states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from asked_api import CODES, Api, made_database, make_api
from filled_state import Kept, Reported
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from db.catalog import catalog_rows

WORDS = ("eeg", "meg", "ieeg")


@pytest.fixture(scope="module")
def filtered(servers: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A database for the filters alone, so that it can be emptied."""
    with made_database(servers) as made:
        yield make_api(made, tmp_path_factory.mktemp("filtered"))


statuses = st.sampled_from([None, "ready", "failed"])
small = st.integers(0, 2)


@st.composite
def kept(draw: st.DrawFn, number: int) -> Kept:
    """A dataset in a state that can be."""
    status = draw(statuses)
    counts = draw(st.tuples(small, small, small)) if status == "ready" or draw(st.booleans()) else None
    if status is None:
        counts = None
    reported = draw(
        st.none()
        | st.builds(
            Reported,
            status=st.sampled_from(["pending", "ready", "failed"]),
            stores=st.none() | small,
            errors=small,
            pending=st.none() | small,
        )
    )
    return Kept(
        number=number,
        is_ours=reported is None or draw(st.booleans()),
        name=draw(st.none() | st.sampled_from(["Rest", "The REST of it", "Oddball %_"])),
        modalities=tuple(sorted(draw(st.sets(st.sampled_from(WORDS))))),
        tasks=tuple(sorted(draw(st.sets(st.sampled_from(["rest", "oddball"]))))),
        visibility=draw(st.sampled_from(["public", "public", "private"])),
        active=draw(st.sampled_from([True, True, False])),
        status=status,
        converting=draw(st.booleans()),
        counts=counts,
        verdicts=tuple(
            draw(
                st.lists(
                    st.sampled_from(
                        ["verified", "verified", "failed", "unverifiable", "verified stale", "verified partial"]
                    ),
                    max_size=2,
                )
            )
        ),
        reported=reported,
        recordings=tuple(
            draw(
                st.lists(
                    st.sampled_from(["served", "pending", *CODES, *(f"served+{code}" for code in CODES)]), max_size=3
                )
            )
        ),
    )


@dataclass(frozen=True)
class Seen:
    """A dataset as a person would work it out from what was put there."""

    kept: Kept
    status: str | None
    stores: int
    missing: int
    verified: bool

    @property
    def has_zarr(self) -> bool:
        return self.status == "ready" and self.stores > 0


def seen(one: Kept) -> Seen | None:
    if not one.is_ours:
        assert one.reported is not None
        return Seen(one, one.reported.status, one.reported.stores or 0, missing(one.reported), False)
    if one.visibility != "public" or not one.active:
        return None
    verified = one.verdicts[-1:] == ("verified",)
    theirs = one.reported
    is_served = theirs is not None and theirs.status == "ready" and bool(theirs.stores)
    if theirs is not None and (one.status is None or (is_served and one.counts is None)):
        return Seen(one, theirs.status, theirs.stores or 0, missing(theirs), verified)
    status = one.status or ("pending" if one.converting else None)
    stores, failures, pending = one.counts or (0, 0, 0)
    return Seen(one, status, stores, failures + pending, verified)


def missing(reported: Reported) -> int:
    if reported.status == "pending":
        return 0
    return reported.errors + (reported.pending or 0)


def names(one: Kept, name: str) -> tuple[str, ...]:
    return getattr(one, name) if one.is_ours else ()


def everything(_one: Seen) -> bool:
    return True


FILTERS: dict[tuple[str, str], Callable[[Seen], bool]] = {
    ("has_zarr", "1"): lambda one: one.has_zarr,
    ("has_zarr", "true"): lambda one: one.has_zarr,
    ("has_zarr", "0"): everything,
    ("has_zarr", "yes"): everything,
    ("has_zarr_verified", "1"): lambda one: one.has_zarr and one.verified,
    ("has_zarr_verified", "false"): everything,
    ("zarr_status", "none"): lambda one: one.status is None,
    ("zarr_status", "pending"): lambda one: one.status == "pending",
    ("zarr_status", "ready"): lambda one: one.status == "ready",
    ("zarr_status", "failed"): lambda one: one.status == "failed",
    ("coverage", "complete"): lambda one: one.stores > 0 and one.missing == 0,
    ("coverage", "partial"): lambda one: one.stores > 0 and one.missing > 0,
    ("coverage", "none"): lambda one: one.stores == 0,
    ("modality", "EEG"): lambda one: any("eeg" in word for word in names(one.kept, "modalities")),
    ("modality", "ieeg"): lambda one: "ieeg" in names(one.kept, "modalities"),
    ("task", "odd"): lambda one: "oddball" in names(one.kept, "tasks"),
    ("search", "rest"): lambda one: one.kept.is_ours and "rest" in (one.kept.name or "").lower(),
    ("search", "%_"): lambda one: one.kept.is_ours and "%_" in (one.kept.name or ""),
    ("search", "XX000002"): lambda one: one.kept.number == 2,
    ("code", CODES[0]): lambda one: one.kept.is_ours and CODES[0] in one.kept.recordings,
    ("code", CODES[1]): lambda one: one.kept.is_ours and CODES[1] in one.kept.recordings,
}


# without Phase.explain, which traces every line of the server
@settings(max_examples=20, phases=(Phase.generate, Phase.shrink))
@given(data=st.data())
def test_filters_agree_with_a_computation_over_the_same_states(filtered: Api, data: st.DataObject) -> None:
    api = filtered
    put_there = [data.draw(kept(number)) for number in range(1, data.draw(st.integers(1, 9)) + 1)]
    with api.engine.begin() as c:
        c.execute(text("DELETE FROM received"))
        c.execute(text("DELETE FROM datasets"))
    api.put(*put_there)
    visible = [one for one in map(seen, put_there) if one is not None]
    assert api.ids() == [one.kept.dataset_id for one in visible]
    for (name, value), fits in FILTERS.items():
        expected = [one.kept.dataset_id for one in visible if fits(one)]
        answer = api.get("/datasets", **{name: value, "limit": 3})
        assert [row["dataset_id"] for row in answer["datasets"]] == expected[:3], (name, value)
        assert (answer["total_count"], answer["count"]) == (len(expected), len(expected[:3])), (name, value)
    (first, wanted), (second, also) = data.draw(
        st.lists(st.sampled_from(list(FILTERS.items())), min_size=2, max_size=2)
    )
    if first[0] != second[0]:
        both = [one.kept.dataset_id for one in visible if wanted(one) and also(one)]
        assert api.ids(**dict([first, second])) == both
    with api.engine.connect() as c:
        catalog = [row.dataset_id for row in catalog_rows(c, target=api.target.url)]
    assert catalog == api.ids(has_zarr="1"), "the catalog equals the filter"
