"""A catalog API upstream: the datasets that it lists, and what it says of one of them. What it says is checked, never believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

from contract.errors import Refused, ZarrmillError
from contract.layout import is_dataset_id
from contract.redact import error_line
from db.dataset_values import DatasetFacts
from tasks.bids.dataset_facts import normalised_doi

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Listing", "UpstreamDataset", "UpstreamTrouble", "checked_base", "fetch_provenance", "list_upstream"]

PAGE = 200
_TIMEOUT = httpx.Timeout(30.0, connect=10.0)
_LONGEST_TEXT = 4000
_LARGEST_BYTES = 32 * 1024 * 1024
_MOST_DATASETS = 100_000
_TRIES = 3


class UpstreamTrouble(ZarrmillError):
    """The catalog API could not be read, or what it answered cannot be used."""

    code = "upstream_trouble"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamDataset:
    """A dataset as the catalog API lists it."""

    dataset_id: str
    facts: DatasetFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A whole listing. ``rejected``: rows whose id is none of a dataset."""

    datasets: tuple[UpstreamDataset, ...]
    rejected: tuple[str, ...]


def checked_base(url: str) -> str:
    """The address of a catalog API without a slash at its end.

    Raises
    ------
    Refused
        It is none, or holds a user or password, which would be stored and shown.
    """
    try:
        parts = urlsplit(url)
        host, user = parts.hostname, parts.username
    except ValueError:
        host, user, parts = None, None, urlsplit("")
    if parts.scheme not in {"http", "https"} or not host or user is not None or parts.query or parts.fragment:
        raise Refused(f"{url!r} is no address of a catalog API: give one like https://api.example.org")
    return url.rstrip("/")


def list_upstream(base: str) -> Listing:
    """Every dataset of the catalog API, by pages of 200.

    A listing that changes while it is read is read again. A page that says it is a fallback, and a listing that is not as
    long as it says, are never taken for the whole.

    Raises
    ------
    UpstreamTrouble
        The catalog API does not answer, or not with a whole listing.
    """
    with _client() as client:
        for _ in range(_TRIES):
            rows, total = _pages(client, base)
            ids = {str(row.get("dataset_id")) for row in rows}
            if len(ids) == len(rows) == total:
                return _listing(rows)
    raise UpstreamTrouble(f"{base} says that it lists {total} datasets and told {len(ids)} of them; try again later.")


def _pages(client: httpx.Client, base: str) -> tuple[list[Mapping[str, Any]], int]:
    rows: list[Mapping[str, Any]] = []
    total = 0
    while len(rows) <= _MOST_DATASETS:
        page = _get(client, f"{base}/datasets", limit=PAGE, offset=len(rows))
        found, counted = page.get("datasets"), page.get("total_count")
        if page.get("fallback") or page.get("warning"):
            raise UpstreamTrouble(f"{base} answers from a fallback, which lists only a part; try again later.")
        if (
            not isinstance(found, list)
            or not isinstance(counted, int)
            or not all(isinstance(one, dict) for one in found)
        ):
            raise UpstreamTrouble(f"{base}/datasets does not answer with a page of datasets.")
        rows += found
        total = counted
        if not found or len(rows) >= total:
            return rows, total
    raise UpstreamTrouble(f"{base} lists more than {_MOST_DATASETS:,} datasets.")


def fetch_provenance(base: str, dataset_id: str) -> DatasetFacts:
    """DOI, licence, citation and HED version of a dataset, as ``GET /datasets/<id>`` tells them; the rest is None.

    Raises
    ------
    UpstreamTrouble
        It could not be read.
    """
    with _client() as client:
        answer = _get(client, f"{base}/datasets/{dataset_id}")
    row = answer.get("dataset", answer)
    if not isinstance(row, dict) or row.get("dataset_id") != dataset_id:
        raise UpstreamTrouble(f"{base}/datasets/{dataset_id} does not answer with that dataset.")
    facts = _facts(row)
    return DatasetFacts(doi=facts.doi, license=facts.license, citation=facts.citation, hed_version=facts.hed_version)


def _client() -> httpx.Client:
    # neither redirects nor proxies of the environment: what is asked is what was named
    return httpx.Client(
        timeout=_TIMEOUT,
        follow_redirects=False,
        trust_env=False,
        headers={"User-Agent": "zarrmill", "Accept": "application/json"},
    )


def _get(client: httpx.Client, url: str, **parameters: int) -> Mapping[str, Any]:
    try:
        with client.stream("GET", url, params=parameters) as answer:
            if answer.status_code != httpx.codes.OK:
                raise UpstreamTrouble(f"{url} answered {answer.status_code}.")
            body = bytearray()
            for part in answer.iter_bytes():
                body += part
                if len(body) > _LARGEST_BYTES:
                    raise UpstreamTrouble(f"{url} answered with more than {_LARGEST_BYTES:,} bytes.")
        value = httpx.Response(200, content=bytes(body)).json()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise UpstreamTrouble(f"{url} could not be read: {error_line(error)}") from error
    except ValueError as error:
        raise UpstreamTrouble(f"{url} did not answer with JSON.") from error
    if not isinstance(value, dict):
        raise UpstreamTrouble(f"{url} did not answer with a JSON object.")
    return value


def _listing(rows: list[Mapping[str, Any]]) -> Listing:
    good = [row for row in rows if isinstance(row.get("dataset_id"), str) and is_dataset_id(row["dataset_id"])]
    bad = [str(row.get("dataset_id"))[:40] for row in rows if row not in good]
    return Listing(
        datasets=tuple(
            UpstreamDataset(dataset_id=row["dataset_id"], facts=_facts(row))
            for row in sorted(good, key=lambda row: str(row["dataset_id"]))
        ),
        rejected=tuple(one if one.isprintable() else repr(one) for one in bad),
    )


def _facts(row: Mapping[str, Any]) -> DatasetFacts:
    subjects = row.get("participants")
    has_hed = row.get("has_hed")
    return DatasetFacts(
        name=_text(row.get("name")),
        doi=normalised_doi(_text(row.get("concept_doi")) or _text(row.get("doi"))),
        license=_text(row.get("license")),
        citation=_text(row.get("citation")),
        hed_version=_text(row.get("hed_version")),
        has_hed=bool(has_hed) if isinstance(has_hed, bool | int) else None,
        modalities=_words(row.get("modalities")),
        tasks=_words(row.get("tasks")),
        subject_count=subjects
        if isinstance(subjects, int) and not isinstance(subjects, bool) and subjects >= 0
        else None,
    )


def _text(value: Any) -> str | None:
    """One line of printable text; None for anything else."""
    if not isinstance(value, str):
        return None
    line = " ".join(value.split())
    return line[:_LONGEST_TEXT] if line and line.isprintable() else None


def _words(value: Any) -> tuple[str, ...]:
    """The words of a text with commas, as the API writes lists, or of a list; sorted."""
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(sorted({word for part in parts if (word := _text(part))}))
