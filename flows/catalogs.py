"""The catalogs of all targets, brought up to date."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from contract.errors import ZarrmillError
from contract.redact import error_line
from db import datasets
from infra.storage import open_target
from tasks.catalog import publish_catalog

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from infra.settings import Settings

__all__ = ["publish_catalogs"]

log = logging.getLogger("zarrmill.flows.catalogs")


def publish_catalogs(settings: Settings, engine: Engine, *, target: str | None = None) -> str:
    """Bring the catalog of a target, or of every target that has datasets, up to date; what was done, in a sentence.

    Raises
    ------
    ZarrmillError
        A catalog could not be written; those of the other targets were.
    """
    with engine.connect() as c:
        targets = [target] if target else sorted({one.target for one in datasets.list_datasets(c)})
    written, failed = 0, []
    for url in targets:
        try:
            written += publish_catalog(engine, open_target(url, settings)).changed
        except (OSError, ZarrmillError) as error:
            log.warning("the catalog of %s was not published: %s", url, error_line(error))
            failed.append(url)
    if failed:
        raise ZarrmillError(f"the catalog could not be published at {', '.join(failed)}")
    return f"{len(targets)} catalogs looked at, {written} written"
