"""Where in an S3 service a source lies, and how that service is asked."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contract.codes import PendingReason
from contract.errors import NotNow, PreconditionFailed, Refused, StorageError
from infra.storage.bucket import Bucket
from infra.storage.s3_connection import access, connect
from tasks.sources.protocol import SourceChanged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.settings import Settings

__all__ = ["S3Place", "answering", "is_s3", "open_bucket", "read_s3_url"]

_URL = re.compile(r"[sS]3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class S3Place:
    """A prefix of a bucket; ``prefix`` is empty or ends with a slash."""

    bucket: str
    prefix: str

    @property
    def url(self) -> str:
        """``s3://bucket/prefix``, without a closing slash: one way to write one place."""
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


def is_s3(url: str) -> bool:
    """Whether the address is meant to be one of an S3 service."""
    return url[:5].lower() == "s3://"


def read_s3_url(url: str, *, what: str) -> S3Place:
    """The place that ``s3://bucket/prefix`` names.

    Raises
    ------
    Refused
        It is written otherwise; the sentence begins with ``what``.
    """
    found = _URL.fullmatch(url)
    path = (found.group(2) or "").strip("/") if found else ""
    odd = any(segment in {"", ".", ".."} for segment in path.split("/")) if path else False
    if found is None or odd or not path.isprintable():
        raise Refused(f"{what} {url!r} cannot be read: write it s3://bucket/prefix.")
    return S3Place(found.group(1), f"{path}/" if path else "")


def open_bucket(place: S3Place, settings: Settings | None) -> Bucket:
    """The bucket of a source, by the settings for sources where there are some, else by those for targets.

    Raises
    ------
    Refused
        There are no settings to go by.
    """
    if settings is None:
        raise Refused(f"{place.url} cannot be reached from here.")
    how = access(settings, anonymous=settings.source_anonymous)
    how = replace(
        how,
        endpoint=settings.source_endpoint or how.endpoint,
        region=settings.source_region or how.region,
    )
    return Bucket(connect(how), place.bucket)


@contextmanager
def answering(name: str) -> Iterator[None]:
    """What a service's answers mean for the attempt that wants the file ``name``.

    A denial, a failure and an object of another size are conditions of the service, and never count against a recording.

    Raises
    ------
    NotNow
        The service did not give what was asked.
    SourceChanged
        The object was replaced.
    """
    try:
        yield
    except PreconditionFailed as error:
        raise SourceChanged(f"{name} was replaced") from error
    except (StorageError, Refused) as error:
        said = error.sentence + (f" ({error.detail})" if error.detail and error.detail not in error.sentence else "")
        raise NotNow(PendingReason.INFRA_FAILURE, detail=f"{name}: {said}", counted=False) from error
