"""Addresses of objects that are good for a while, signed here without a request."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from contract.errors import StorageDenied

if TYPE_CHECKING:
    from infra.storage.s3_connection import S3Access

__all__ = ["signed_url"]


def signed_url(how: S3Access, bucket: str, key: str, *, seconds: int) -> str:
    """An address at which anybody may read the object for ``seconds``.

    Raises
    ------
    StorageDenied
        No credentials are found to sign it with.
    """
    try:
        url: str = _client(how).generate_presigned_url(
            "get_object", Params={"Bucket": bucket, "Key": key}, ExpiresIn=seconds
        )
    except BotoCoreError as error:
        raise StorageDenied(
            "No address can be signed: no credentials were found.", detail=type(error).__name__
        ) from error
    return url


@lru_cache(maxsize=4)
def _client(how: S3Access) -> Any:
    style = {"addressing_style": "path"} if how.endpoint else {}
    return botocore.session.get_session().create_client(
        "s3",
        region_name=how.region,
        endpoint_url=how.endpoint,
        aws_access_key_id=how.key,
        aws_secret_access_key=how.secret,
        aws_session_token=how.token,
        # the default signature of some regions is still the old one, which newer services refuse
        config=Config(signature_version="s3v4", s3=style),
    )
