"""The objects of a store, against the digests that its conversion left."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from contract.layout import ROOT_METADATA
from contract.verification import Check

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.storage.protocol import StandingObject
    from tasks.verify.report import Report

__all__ = ["body_digest", "check_objects"]


def body_digest(digests: Mapping[str, tuple[int, str]]) -> str:
    """SHA-256 over everything of a store but its root, which alone changes when only provenance does."""
    body = sorted((name, size, sha256) for name, (size, sha256) in digests.items() if name != ROOT_METADATA)
    return hashlib.sha256(json.dumps(body).encode()).hexdigest()


def check_objects(
    standing: Mapping[str, StandingObject],
    digests: Mapping[str, tuple[int, str]],
    etags: Mapping[str, str] | None,
    report: Report,
) -> None:
    """Compare what stands with what was left: every name, its size, and its etag, which in a folder is its hash."""
    if not digests:
        report.could_not("it was taken over, so that what its conversion left is not known")
        return
    for name in sorted(digests.keys() - standing.keys()):
        report.fail(Check.OBJECT_MISSING, f"{name} is not there")
    for name in sorted(standing.keys() - digests.keys()):
        report.fail(Check.OBJECT_FOREIGN, f"{name} stands there, and no conversion left it")
    for name in sorted(digests.keys() & standing.keys()):
        size, sha256 = digests[name]
        found = standing[name]
        detail = f"{name} holds {found.size_bytes} bytes, {size} were left"
        if not report.hold(Check.OBJECT_DIFFERS, found.size_bytes == size, detail):
            continue
        wanted = sha256 if etags is None else etags.get(name)
        report.hold(Check.OBJECT_DIFFERS, found.etag == wanted, f"{name} holds other bytes than were left")
