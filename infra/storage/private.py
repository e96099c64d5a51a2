"""Objects of a target that no reader is served: written only where nobody reads them without the target's credentials."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import httpx

from contract.errors import PublishError, StorageError
from infra.storage.folder import FolderTarget
from infra.storage.folder_store import prune
from infra.storage.headers import content_type

if TYPE_CHECKING:
    from infra.storage.protocol import Target
    from infra.storage.s3_target import S3Target

__all__ = ["delete_private", "put_private"]

_TIMEOUT_S: Final = 10.0


def put_private(target: Target, key: str, data: bytes) -> None:
    """Write an object below an area of its own, ``_runs/…``. In a folder the area is its owner's alone (0700) when it is made.

    Raises
    ------
    PublishError
        Anybody can read what lies in that area of a bucket, so nothing was written there.
    OSError, StorageError
        It cannot be written, or it cannot be found out who reads it.
    """
    area, *_rest = key.split("/")
    if isinstance(target, FolderTarget):
        # a report is no reason to make a target
        with suppress(FileExistsError):
            (target.root / area).mkdir(mode=0o700)
    else:
        _refuse_open(_bucket(target), area)
    target.put(key, data, content_type=content_type(key))


def delete_private(target: Target, key: str) -> None:
    """Remove such an object, and the folder that this empties. Absent is fine."""
    target.delete(key)
    if isinstance(target, FolderTarget):
        prune(target.root, key.split("/")[:-1])


def _bucket(target: Target) -> S3Target:
    from infra.storage.s3_target import S3Target

    assert isinstance(target, S3Target), "there are two kinds of target"
    return target


def _refuse_open(target: S3Target, area: str) -> None:
    """Ask for an object of the area as anybody would; the object is removed again."""
    probe = f"{area}/probe-{uuid4().hex}"
    target.put(probe, b"0", content_type="text/plain")
    try:
        with httpx.Client(timeout=_TIMEOUT_S, follow_redirects=False, trust_env=False) as client:
            status = client.get(target.public_url(probe)).status_code
    except httpx.HTTPError as error:
        raise StorageError(
            f"Whether anybody can read {target.url}/{area}/ could not be found out.", detail=type(error).__name__
        ) from error
    finally:
        target.delete(probe)
    if status < 300:
        raise PublishError(
            f"Anybody can read {target.url}/{area}/: let the bucket's policy open the datasets alone, as `zarrmill init --public` sets it."
        )
    if status not in (401, 403, 404):
        raise StorageError(f"Whether anybody can read {target.url}/{area}/ could not be found out.", detail=f"{status}")
