"""A bucket brought to what serving needs: that it is there, that anybody may read below the prefix, and that web pages may too.

Rights are added to a policy that is there already, under a name of our own, and never taken from it. Nothing is written that stands.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from contract.layout import CATALOG_KEY
from infra.storage.keys import AREA
from infra.storage.s3_connection import connect
from infra.storage.s3_errors import answer

if TYPE_CHECKING:
    from infra.storage.s3_connection import S3Access, S3Connection

__all__ = ["BucketSetup", "SetupStep"]

_DEFAULT_REGION: Final = "us-east-1"
_OPEN: Final = ("*/zarr/*", CATALOG_KEY, f"{AREA}/probe-*")
"""What anybody reads: all of a dataset lies below ``zarr/``, and a probe tells whether anybody does. Not every service knows ``?``."""
_CORS: Final = {
    "AllowedMethods": ["GET", "HEAD"],
    "AllowedOrigins": ["*"],
    "AllowedHeaders": ["*"],
    "ExposeHeaders": ["ETag", "Content-Length", "Content-Range", "Accept-Ranges"],
    "MaxAgeSeconds": 86400,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupStep:
    """One thing that was seen to. ``done`` is False when it stood already."""

    name: str
    done: bool
    sentence: str


class BucketSetup:
    """What ``zarrmill init`` does to a bucket. ``prefix`` ends with a slash or is empty."""

    def __init__(self, how: S3Access, name: str, prefix: str) -> None:
        self._how = how
        self._name = name
        self._prefix = prefix

    def make(self) -> SetupStep:
        """The bucket, made when it is not there.

        Raises
        ------
        StorageError, Refused
            It may not be made or looked at.
        """
        if self._ask("head_bucket", absent=("404", "NoSuchBucket", "NotFound")) is not None:
            return SetupStep(name="bucket", done=False, sentence=f"the bucket {self._name} is there")
        more: dict[str, Any] = {}
        if self._how.region != _DEFAULT_REGION:
            more = {"CreateBucketConfiguration": {"LocationConstraint": self._how.region}}
        # another init may have made it a moment ago
        self._ask("create_bucket", absent=("BucketAlreadyOwnedByYou", "BucketAlreadyExists"), **more)
        return SetupStep(name="bucket", done=True, sentence=f"the bucket {self._name} was made")

    def allow_reading(self) -> SetupStep:
        """Anybody may get datasets, the catalog and probes below the prefix; who may list or write stays as it is.

        What runs leave for their operators lies beside the datasets, and is not among it.
        """
        place = f"{self._name}/{self._prefix}"
        statement: dict[str, Any] = {
            "Sid": f"ZarrmillRead{hashlib.sha256(self._prefix.encode()).hexdigest()[:8]}",
            "Effect": "Allow",
            "Principal": "*",
            "Action": ["s3:GetObject"],
            "Resource": [f"arn:aws:s3:::{place}{each}" for each in _OPEN],
        }
        found = self._ask("get_bucket_policy", absent=("NoSuchBucketPolicy", "404"))
        policy: dict[str, Any] = json.loads(found["Policy"]) if found else {"Version": "2012-10-17", "Statement": []}
        # services spell the rest of a statement in ways of their own
        ours = [one for one in policy["Statement"] if one.get("Sid") == statement["Sid"]]
        if any(sorted(_listed(one.get("Resource"))) == sorted(statement["Resource"]) for one in ours):
            return SetupStep(
                name="policy", done=False, sentence=f"its policy lets anybody read the datasets of {place}"
            )
        # an older one of ours opened everything below the prefix
        others = [one for one in policy["Statement"] if one.get("Sid") != statement["Sid"]]
        policy["Statement"] = [*others, statement]
        self._ask("put_bucket_policy", Policy=json.dumps(policy))
        return SetupStep(name="policy", done=True, sentence=f"its policy now lets anybody read the datasets of {place}")

    def allow_pages(self) -> SetupStep:
        """Web pages of every origin may read. Rules that are there already stay as they are."""
        if self._ask("get_bucket_cors", absent=("NoSuchCORSConfiguration", "404")):
            return SetupStep(name="cors", done=False, sentence="it has CORS rules")
        self._ask("put_bucket_cors", CORSConfiguration={"CORSRules": [_CORS]})
        return SetupStep(name="cors", done=True, sentence="it was given CORS rules: any page may read")

    def _ask(self, operation: str, *, absent: tuple[str, ...] = (), **arguments: Any) -> dict[str, Any] | None:
        """The answer; None for one of the ``absent`` codes."""
        connection: S3Connection = connect(self._how)

        def is_absence(error: BaseException) -> bool:
            return isinstance(error, ClientError) and answer(error)[1] in absent

        named = {"Bucket": self._name, **arguments}
        what = f"{operation} {self._name}"
        found: dict[str, Any] | None = connection.run(
            lambda: connection.request(operation, what, named, absence=is_absence)
        )
        return found


def _listed(resource: Any) -> list[str]:
    return [resource] if isinstance(resource, str) else list(resource or ())
