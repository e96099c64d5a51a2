"""What the answers of an S3 service mean: absence, a met condition, a refusal, or something that may pass."""

from __future__ import annotations

import asyncio

import aiohttp
from botocore import exceptions as boto

from contract.errors import (
    PreconditionFailed,
    Refused,
    StorageDenied,
    StorageError,
    StorageUnavailable,
    ZarrmillError,
)

__all__ = ["TRANSIENT", "Spoiled", "answer", "is_absence", "is_condition", "is_transient", "translate"]


class Spoiled(Exception):
    """An answer that arrived without an error and cannot be right: too short, or with other content than was put."""


TRANSIENT = (
    Spoiled,
    boto.HTTPClientError,
    boto.ConnectionError,
    boto.ResponseStreamingError,
    boto.IncompleteReadError,
    aiohttp.ClientError,
    TimeoutError,
    asyncio.TimeoutError,
    ConnectionError,
)
"""What happens to a request on its way; whether the server did the work is unknown."""

_THROTTLED = frozenset(
    {"SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests", "ServiceUnavailable"}
)
_WORTH_AGAIN = _THROTTLED | {
    "InternalError",
    "RequestTimeout",
    "OperationAborted",
    "ConditionalRequestConflict",
    "BadDigest",
    "IncompleteBody",
    "RequestTimeTooSkewed",
}
_CONDITION = frozenset({"PreconditionFailed", "412"})
_ABSENT_KEY = frozenset({"NoSuchKey", "404", "NoSuchVersion", "NotFound"})


def answer(error: BaseException) -> tuple[int, str]:
    """Status and code of the service's answer; (0, "") when there was none."""
    if not isinstance(error, boto.ClientError):
        return 0, ""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return int(status), str(error.response.get("Error", {}).get("Code", ""))


def is_absence(error: BaseException) -> bool:
    """Whether the service says that the key does not exist. A missing bucket, a denial and a failure are not that."""
    status, code = answer(error)
    return status == 404 and code in _ABSENT_KEY


def is_condition(error: BaseException) -> bool:
    """Whether If-Match or If-None-Match was not met."""
    status, code = answer(error)
    return status == 412 or code in _CONDITION


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed when it is sent again."""
    if isinstance(error, TRANSIENT):
        return True
    status, code = answer(error)
    return status >= 500 or status == 429 or code in _WORTH_AGAIN


def translate(error: BaseException, what: str, tries: int = 1) -> ZarrmillError:
    """The error of ours for one of the client's, raised by ``what``, such as ``PUT xx000001/zarr/index.json``.

    Its sentence names the status and the code and nothing else of the answer, which may repeat credentials.
    """
    if isinstance(error, ZarrmillError):
        return error
    status, code = answer(error)
    if is_condition(error):
        return PreconditionFailed("The object was changed by somebody else.", detail=what)
    if isinstance(error, boto.NoCredentialsError | boto.PartialCredentialsError | boto.CredentialRetrievalError):
        return StorageDenied(
            "There are no credentials for the S3 service: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.", detail=what
        )
    if code == "NoSuchBucket":
        return Refused("The S3 service has no such bucket; make it, or name another.", detail=what)
    if status in (401, 403):
        return StorageDenied(f"The S3 service refused a request ({status} {code}): {what}.", detail=what)
    if is_transient(error):
        said = f"{status} {code}" if status else type(error).__name__
        return StorageUnavailable(f"The S3 service could not be used ({said}, {tries} tries): {what}.", detail=what)
    said = f"{status} {code}" if status else type(error).__name__
    return StorageError(f"The S3 service did not do what was asked ({said}): {what}.", detail=what)
