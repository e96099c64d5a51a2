"""What a store says of itself, against the dataset's facts, its sidecars and its entry in the index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract.layout import store_url
from contract.verification import Check
from tasks.verify.tables import nearest_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contract.index import StoreEntry
    from db.dataset_values import Dataset
    from tasks.verify.events import Event
    from tasks.verify.groups import Opened
    from tasks.verify.report import Report

__all__ = ["check_entry", "check_root", "check_sidecars"]

_GEOMETRY = ("rate", "n_channels", "n_samples", "n_view_levels", "view_chunk_columns")


def check_root(opened: Opened, dataset: Dataset, *, path: str, zarr: str, contract_base: str, report: Report) -> None:
    """Compare the root's provenance with the recording that it is served for and with the dataset's present facts."""
    source_file = opened.root.recording_metadata.get("source_file")
    report.hold(
        Check.RECORDING, source_file == path, f"the store says that it was made from {source_file}, not from {path}"
    )
    said = opened.root.nemar
    if said is None:
        report.fail(Check.METADATA, "the root does not say what it is (nemar)")
        return
    facts = dataset.facts
    for name, own, wanted in (
        ("dataset_id", said.dataset_id, dataset.dataset_id),
        ("doi", said.doi, facts.doi),
        ("license", said.license, facts.license),
        ("citation", said.citation, facts.citation),
        ("hed_version", said.hed_version, facts.hed_version),
        ("contract_url", said.contract_url, store_url(contract_base, zarr)),
        ("derived", said.derived, opened.root.sss is not None),
    ):
        report.hold(Check.METADATA, own == wanted, f"nemar.{name} of the root is {own!r}, it must be {wanted!r}")


def check_sidecars(opened: Opened, sidecars: Sequence[dict[str, Any]], report: Report) -> None:
    """Compare the mains frequency with what the nearest JSON sidecar declares."""
    declared = nearest_number(sidecars, "PowerLineFrequency")
    own = opened.root.power_line_frequency
    report.hold(
        Check.METADATA, own == declared, f"power_line_frequency of the root is {own}, the sidecars declare {declared}"
    )


def check_entry(
    entry: StoreEntry | None, opened: Opened, events: Sequence[Event] | None, *, events_known: bool, report: Report
) -> None:
    """Compare the store with its entry in the index that is served; None: it has none."""
    if entry is None:
        report.fail(Check.INDEX, "the index does not name the store")
        return
    named = {group.name: group for group in entry.groups or ()}
    own_names = [group.name for group in opened.groups]
    report.hold(
        Check.INDEX, list(named) == own_names, f"the index names the groups {list(named)}, the store {own_names}"
    )
    for group in opened.groups:
        said = named.get(group.name)
        if said is None:
            continue
        has: Mapping[str, Any] = {
            **{name: getattr(group.says, name) for name in _GEOMETRY},
            "modality": group.says.modality,
            "source_rate_hz": group.level0_says.source_rate_hz,
            "chunk_samples": group.level0_says.chunk_samples,
            "shard_samples": group.level0_says.shard_samples,
            "duration_s": group.says.n_samples / group.says.rate,
        }
        wrong = [name for name, value in has.items() if getattr(said, name) != value]
        report.hold(Check.INDEX, not wrong, f"{group.name}: the index and the store differ in {', '.join(wrong)}")
    frequency = opened.root.power_line_frequency
    detail = f"the index says power_line_frequency {entry.power_line_frequency}, the store {frequency}"
    report.hold(Check.INDEX, entry.power_line_frequency == frequency, detail)
    report.hold(
        Check.INDEX, entry.derived == (opened.root.sss is not None), "the index and the store differ in derived"
    )
    if events_known:
        count = None if events is None else len(events)
        report.hold(
            Check.INDEX, entry.n_events == count, f"the index counts {entry.n_events} events, events.tsv has {count}"
        )
