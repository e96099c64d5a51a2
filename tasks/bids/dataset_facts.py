"""What a dataset says of itself in dataset_description.json and participants.tsv."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract.errors import Refused
from db.datasets import DatasetFacts
from tasks.bids.json_sidecar import JsonSidecar, parse_json
from tasks.bids.tsv import parse_tsv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tasks.bids.recording import Discovery
    from tasks.sources.protocol import Source

__all__ = ["DescribedDataset", "check_description", "compose_citation", "dataset_facts", "normalised_doi"]

_DOI = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi:\s*)?(10\.[0-9]{4,9}/\S+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedDataset:
    """The facts that are stored and published, what else the description says, and what was wrong with it."""

    facts: DatasetFacts
    authors: tuple[str, ...] = ()
    bids_version: str | None = None
    notes: tuple[str, ...] = ()


def dataset_facts(source: Source, discovery: Discovery, *, archive_name: str) -> DescribedDataset:
    """The facts of a dataset. A missing or malformed file makes facts None and a note, never an error.

    Parameters
    ----------
    archive_name
        Stands in the citation, as the publisher.
    """
    description, notes = _description(source)
    authors = _texts(description.get("Authors"))
    name = _text(description.get("Name"))
    doi = normalised_doi(_text(description.get("DatasetDOI")))
    hed_version = ", ".join(_texts(description.get("HEDVersion"))) or None
    subject_count, more = _subject_count(source)
    facts = DatasetFacts(
        name=name,
        doi=doi,
        license=_text(description.get("License")),
        citation=compose_citation(authors=authors, name=name, doi=doi, archive_name=archive_name),
        hed_version=hed_version,
        has_hed=True if hed_version else None,
        modalities=tuple(sorted({recording.modality for recording in discovery.recordings if recording.modality})),
        tasks=tuple(
            sorted({recording.entities["task"] for recording in discovery.recordings if "task" in recording.entities})
        ),
        subject_count=subject_count,
    )
    return DescribedDataset(
        facts=facts, authors=authors, bids_version=_text(description.get("BIDSVersion")), notes=(*notes, *more)
    )


def check_description(source: Source) -> None:
    """Refuse a dataset whose dataset_description.json holds no JSON object. One that is not there, or not here, is let pass.

    Raises
    ------
    Refused
        The sentence names the file.
    """
    file = "dataset_description.json"
    if file not in source.tree():
        return
    try:
        sidecar = parse_json(source.read(file))
    except OSError:
        return  # annexed content that is elsewhere; discovery leaves a note
    if not sidecar.readable:
        raise Refused(f"{file} of SOURCE {source.url} cannot be used: {'; '.join(sidecar.notes)}. Mend it.")


def normalised_doi(text: str | None) -> str | None:
    """The bare DOI (``10.…``) of a DOI with or without ``doi:`` or a resolver's address; None for any other text."""
    found = _DOI.fullmatch(text.strip()) if text else None
    return found.group(1) if found else None


def compose_citation(*, authors: Sequence[str], name: str | None, doi: str | None, archive_name: str) -> str | None:
    """Authors, name, archive and DOI link in one line; what is missing is left out, without a name there is none.

    A folder knows no version and no year of publication, so neither is claimed.
    """
    if name is None:
        return None
    parts = [
        f"{', '.join(authors).removesuffix('.')}." if authors else "",
        f"{name.removesuffix('.')}.",
        f"{archive_name}.",
    ]
    parts.append(f"https://doi.org/{doi}" if doi else "")
    return " ".join(part for part in parts if part)


def _description(source: Source) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    file = "dataset_description.json"
    if file not in source.tree():
        return {}, (f"there is no {file}",)
    try:
        sidecar = parse_json(source.read(file))
    except OSError as error:
        sidecar = JsonSidecar(readable=False, notes=(f"it cannot be read: {error}",))
    return sidecar.values, tuple(f"{file}: {note}" for note in sidecar.notes)


def _subject_count(source: Source) -> tuple[int | None, tuple[str, ...]]:
    """Distinct participants, else distinct ``sub-`` folders; None when there are neither."""
    in_folders = (
        len({path.partition("/")[0] for path in source.tree() if path.startswith("sub-") and "/" in path}) or None
    )
    file = "participants.tsv"
    if file not in source.tree():
        return in_folders, ()
    try:
        table = parse_tsv(source.read(file))
    except OSError as error:
        return in_folders, (f"{file}: it cannot be read: {error}",)
    notes = [f"{file}: {note}" for note in table.notes]
    participants = {cell for cell in table.column("participant_id") or () if cell not in {"", "n/a"}}
    if not participants:
        return in_folders, (*notes, f"{file}: no participant_id, subjects are counted by their folders")
    return len(participants), tuple(notes)


def _text(value: Any) -> str | None:
    return " ".join(value.split()) or None if isinstance(value, str) else None


def _texts(value: Any) -> tuple[str, ...]:
    """The texts of a text or a list of texts; anything else in it is left out."""
    values = value if isinstance(value, list) else [value]
    return tuple(text for text in map(_text, values) if text)
