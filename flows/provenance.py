"""Who says what a dataset is called, licensed and cited by: its own description, or a catalog API upstream."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from db.datasets import Dataset, DatasetFacts

__all__ = ["Provenance", "provenance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The facts to publish. ``fetch_failed``: whoever says them could not be asked, and what was said before stands."""

    facts: DatasetFacts
    fetch_failed: bool = False
    notes: tuple[str, ...] = ()


def provenance(registered: Dataset | None, described: DatasetFacts) -> Provenance:
    """DOI, licence, citation and HED version from the catalog API of the dataset, where it has one; else its own description's."""
    if registered is None or registered.upstream is None:
        return Provenance(facts=described)
    from tasks.upstream import UpstreamTrouble, fetch_provenance

    notes: tuple[str, ...] = ()
    try:
        said = fetch_provenance(registered.upstream, registered.dataset_id)
    except UpstreamTrouble as trouble:
        said = registered.facts
        notes = (f"provenance stays as it was last told: {trouble.sentence}",)
    facts = replace(described, doi=said.doi, license=said.license, citation=said.citation, hed_version=said.hed_version)
    return Provenance(facts=facts, fetch_failed=bool(notes), notes=notes)
