"""The target: whether it can be used, and what anybody may do there, by unsigned calls."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from contract.errors import Refused, StorageError
from flows.doctor.findings import Finding, alarm, healthy, unknown
from flows.doctor.machine import space
from flows.initialise import openness_line
from infra.storage import open_target
from infra.storage.folder import FolderTarget
from infra.storage.s3_target import S3Target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.settings import Settings
    from infra.storage.openness import Openness

__all__ = ["examine_target", "openness_finding"]


def examine_target(settings: Settings, url: str, *, said_open: bool | None) -> Iterator[Finding]:
    """Lines about one target. ``said_open`` is what its documents say of it; None when it has none."""
    target = open_target(url, settings)
    if isinstance(target, FolderTarget):
        yield from _examine_folder(target.root)
        return
    assert isinstance(target, S3Target), "there are two kinds"
    try:
        target.prepare()
        conditions = target.decides_conditions
        seen = target.openness()
    except Refused as error:
        yield alarm("target", error.sentence)
        return
    except StorageError as error:
        yield unknown("target", error.sentence)
        return
    yield healthy("target", f"{target.url} can be read and written")
    yield (
        healthy("conditional PUT", "If-Match and If-None-Match are decided by the service")
        if conditions
        else alarm(
            "conditional PUT", "the service decides no conditions: only installations of one Postgres may publish there"
        )
    )
    yield openness_finding(seen, said_open=said_open)


def _examine_folder(root: Path) -> Iterator[Finding]:
    """Whether a folder, or the nearest above one that is not there yet, takes something new, and its space."""
    there = next(place for place in (root, *root.parents) if place.exists())
    try:
        # what may be done is not what can be: /proc and read-only mounts refuse the superuser too
        Path(mkdtemp(prefix=".zarrmill-doctor-", dir=there)).rmdir()
    except OSError as error:
        yield alarm(
            "target",
            f"{root} cannot be written ({error.strerror} at {there}); name another folder, or make it writable",
        )
        return
    yield healthy(
        "target", f"{root} can be written" if there == root else f"nothing is served at {root} yet; it can be made"
    )
    yield space("space of the target", root)


def openness_finding(seen: Openness, *, said_open: bool | None) -> Finding:
    """The line about what anybody may do."""
    told = openness_line(seen)
    if seen.may_write or seen.may_list:
        return alarm("unsigned calls", f"{told}; take from everybody what is more than reading, in the bucket's policy")
    if said_open and seen.may_read is False:
        return alarm(
            "unsigned calls", f"{told}; documents say that anybody may read: run zarrmill init --public, or republish"
        )
    if seen.may_read and seen.cors is False:
        return alarm("unsigned calls", f"{told}; zarrmill init --public sets CORS rules")
    if seen.is_as_published or seen.is_closed:
        return healthy("unsigned calls", told)
    return unknown("unsigned calls", told)
