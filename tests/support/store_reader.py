"""A reader of one store in a bucket, by the documented protocol or without it; it shares no code with the product."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class StoreReader:
    """Reads ``names`` of the store below ``below``.

    Attributes
    ----------
    used
        (version in the root, versions of the objects) of every read that the protocol allows to be used.
    again
        How often the protocol said to start again.
    """

    client: Any
    bucket: str
    below: str
    names: list[str]
    used: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    again: int = 0

    def read(self, between: Callable[[], None] = lambda: None) -> bool:
        """Read the root, the objects, and the root again; whether what was read may be used."""
        try:
            before, root = self._get("zarr.json")
            versions = set()
            for name in self.names:
                versions.add(self._get(name)[1].decode().split(":")[0])
                between()
            after = self.client.head_object(Bucket=self.bucket, Key=f"{self.below}zarr.json")["ETag"]
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:
                raise
            self.again += 1
            return False
        if before != after:
            self.again += 1
            return False
        self.used.append((json.loads(root)["attributes"]["version"], frozenset(versions)))
        return True

    def mixtures(self) -> list[tuple[str, frozenset[str]]]:
        """Reads that were used and held objects of more than one version, or of another than the root's."""
        return [(root, versions) for root, versions in self.used if versions != {root}]

    def _get(self, name: str) -> tuple[str, bytes]:
        answered = self.client.get_object(Bucket=self.bucket, Key=f"{self.below}{name}")
        return answered["ETag"], answered["Body"].read()
