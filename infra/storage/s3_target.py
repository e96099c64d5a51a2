"""A bucket, or a part of one, that serves datasets: documents by conditional PUT, stores object by object with the root last."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit
from uuid import uuid4

from contract.errors import PreconditionFailed, Refused, StorageDenied, StorageError
from contract.layout import check_relative
from infra.storage.bucket import Bucket, ObjectHead
from infra.storage.bucket_setup import BucketSetup
from infra.storage.headers import cache_control
from infra.storage.keys import AREA, segments_of, store_segments
from infra.storage.openness import Openness, look
from infra.storage.protocol import Addresses, StandingObject, Stored
from infra.storage.s3_connection import S3Access, connect
from infra.storage.s3_links import signed_url
from infra.storage.s3_store import S3Stores
from infra.storage.s3_upload import Upload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["OpenObject", "S3Target"]

_ROOT_OBJECT = "zarr.json"
_RANGE_BYTES = 8 * 1024 * 1024
_log = logging.getLogger("zarrmill.storage")


class OpenObject:
    """One version of an object of a bucket."""

    def __init__(self, bucket: Bucket, key: str, head: ObjectHead) -> None:
        self._bucket = bucket
        self._key = key
        self.size_bytes = head.size_bytes
        self.etag = head.etag

    def read(self, start: int, length: int) -> bytes | None:
        """Up to ``length`` bytes from ``start``; None when the object is gone, PreconditionFailed when it was replaced."""
        return self._bucket.read_range(self._key, start, length, etag=self.etag)


class S3Target:
    """The ``Target`` of an S3 bucket.

    Parameters
    ----------
    how
        The service and who asks it.
    bucket, prefix
        Where in it; ``prefix`` without slashes at its ends, empty for the bucket itself.
    contract_host
        The stable public address that leads here; None where readers use the bucket's own.
    """

    marks_stores = True
    looks_cost_requests = True

    def __init__(self, how: S3Access, bucket: str, prefix: str = "", *, contract_host: str | None = None) -> None:
        self.url = f"s3://{bucket}/{prefix}".rstrip("/")
        self._how = how
        self._bucket_name = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._contract_host = contract_host
        self._decides: bool | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, S3Target) and (self.url, self._how) == (other.url, other._how)

    def __hash__(self) -> int:
        return hash((self.url, self._how))

    def __repr__(self) -> str:
        return f"S3Target({self.url!r})"

    @cached_property
    def _bucket(self) -> Bucket:
        return Bucket(connect(self._how), self._bucket_name)

    @cached_property
    def _stores(self) -> S3Stores:
        return S3Stores(self._bucket, self._prefix)

    def addresses(self, dataset_id: str) -> Addresses:
        """The address fields for one dataset: the bucket's own, below the stable host where there is one."""
        check_relative(dataset_id)
        below = f"{dataset_id}/zarr/"
        direct = f"{self._public_base()}{quote(self._prefix)}{below}"
        stable = direct if self._contract_host is None else f"{self._contract_host}/{below}"
        return Addresses(
            contract_base=stable,
            data_base=direct if _can_be_named(direct) else stable,
            data_base_kind="s3-public",
            s3_uri=f"{self.url}/{below}",
            s3_region=self._how.region,
            s3_anonymous=False,
        )

    def _public_base(self) -> str:
        if self._how.endpoint is not None:
            return f"{self._how.endpoint}/{self._bucket_name}/"
        if "." in self._bucket_name:  # no certificate covers such a name as part of a host
            return f"https://s3.{self._how.region}.amazonaws.com/{self._bucket_name}/"
        return f"https://{self._bucket_name}.s3.{self._how.region}.amazonaws.com/"

    def public_url(self, key: str) -> str:
        """The bucket's own address of an object."""
        return f"{self._public_base()}{quote(self._key(key))}"

    def signed_url(self, key: str, *, seconds: int) -> str:
        """An address at which anybody may read the object for ``seconds``, also where the bucket is private."""
        return signed_url(self._how, self._bucket_name, self._key(key), seconds=seconds)

    def prepare(self, *, public: bool = False) -> bool | None:
        """Write, read and remove a small object, and learn whether the service decides conditions; see ``Target.prepare``."""
        if not _can_be_named(self.addresses("xx000000").contract_base):
            raise Refused(
                f"Documents may name only https:// addresses, and {self._how.endpoint} is none: set ZARRMILL_CONTRACT_HOST "
                "to the https:// address at which readers find the datasets."
            )
        probe = self._probe_key()
        try:
            self._decides = self._probe(probe)
            is_open = self._anybody_reads(probe, public=public)
        except StorageDenied as error:
            raise Refused(
                f"The target {self.url} cannot be used: {error.sentence} It needs the rights to list the bucket, and to get, put "
                "and delete its objects.",
                detail=error.detail,
            ) from error
        finally:
            self._forget_probe(probe)
        if not self._decides:
            _log.warning(
                "the S3 service of %s does not decide conditions (If-Match, If-None-Match): a lock in Postgres guards its documents, "
                "so only installations that share this Postgres may publish there",
                self.url,
            )
        return is_open

    @property
    def decides_conditions(self) -> bool:
        """Whether the service honours If-Match and If-None-Match; found out by a probe on first use."""
        if self._decides is None:
            probe = self._probe_key()
            try:
                self._decides = self._probe(probe)
            finally:
                self._forget_probe(probe)
        return self._decides

    def _probe_key(self) -> str:
        return f"{self._prefix}{AREA}/probe-{uuid4().hex}"

    def _probe(self, probe: str) -> bool:
        bucket, upload = self._bucket, Upload(content_type="text/plain", cache_control="no-store")
        bucket.put(probe, b"0", upload)
        for data, condition in ((b"1", {"if_absent": True}), (b"2", {"if_match": "0" * 32})):
            try:
                bucket.put(probe, data, upload, **condition)
            except PreconditionFailed:
                continue
            except StorageDenied:
                raise
            except StorageError:  # a service that does not know the header refuses the request
                return False
            return False
        return True

    def _forget_probe(self, probe: str) -> None:
        try:
            self._bucket.delete([probe])
        except (StorageError, Refused) as error:
            _log.info("the probe %s was not removed: %s", probe, error)

    def _anybody_reads(self, probe: str, *, public: bool) -> bool | None:
        """Whether an unsigned request reads the probe; None when there is no telling, which ``public`` does not put up with."""
        anybody = replace(self._how, key=None, secret=None, token=None, anonymous=True)
        try:
            found = Bucket(connect(anybody), self._bucket_name).read(probe)
        except StorageDenied:
            found = None
        except StorageError as error:
            if public:
                raise
            _log.warning("whether anybody may read %s could not be found out: %s", self.url, error)
            return None
        if found is None and public:
            raise Refused(
                f"{self.url} cannot be read without credentials, so it cannot be published with --public: let the bucket's policy "
                "allow s3:GetObject to everybody, or leave --public away."
            )
        return found is not None

    def setup(self) -> BucketSetup:
        """What brings the bucket to what serving needs."""
        return BucketSetup(self._how, self._bucket_name, self._prefix)

    def openness(self) -> Openness:
        """What anybody may do here, seen by unsigned requests.

        Raises
        ------
        StorageError, Refused
            The object that they ask about cannot be put.
        """
        probe, unwritten = self._probe_key(), self._probe_key()
        try:
            self._bucket.put(probe, b"0", Upload(content_type="text/plain", cache_control="no-store"))
            return look(self._public_base(), quote(probe), unwritten=quote(unwritten))
        finally:
            self._forget_probe(probe)
            self._forget_probe(unwritten)

    def read(self, key: str) -> Stored | None:
        """The object, compared with its length and SHA-256, or None when it definitely does not exist."""
        found = self._bucket.read(self._key(key))
        return None if found is None else Stored(found.data, found.head.etag)

    def etag(self, key: str) -> str | None:
        """The etag of the object, or None when it definitely does not exist."""
        head = self._bucket.head(self._key(key))
        return None if head is None else head.etag

    def fetch(self, key: str, path: Path) -> str | None:
        """Copy one version of the object into a new file at ``path``, a part at a time; its etag, or None without one."""
        bucket, where = self._bucket, self._key(key)
        head = bucket.head(where)
        if head is None:
            return None
        digest = hashlib.sha256()
        with path.open("xb") as out:
            for start in range(0, head.size_bytes, _RANGE_BYTES):
                part = bucket.read_range(where, start, _RANGE_BYTES, etag=head.etag)
                if part is None:
                    raise PreconditionFailed("The object was removed while it was read.", detail=key)
                digest.update(part)
                out.write(part)
        if head.sha256 not in (None, digest.hexdigest()):
            raise StorageError("An object does not hold what was put there.", detail=key)
        return head.etag

    def open(self, key: str) -> OpenObject | None:
        """One version of the object, to be read in parts; None when it definitely does not exist."""
        where = self._key(key)
        head = self._bucket.head(where)
        return None if head is None else OpenObject(self._bucket, where, head)

    def put(
        self, key: str, data: bytes | Path, *, content_type: str, if_match: str | None = None, if_absent: bool = False
    ) -> str:
        """Write an object whole; its etag. See ``Target.put``.

        Where the service does not decide conditions they are looked at just before, under the caller's lock.
        """
        where = self._key(key)
        conditional = if_match is not None or if_absent
        if not isinstance(data, bytes) and not conditional:
            upload = Upload(content_type=content_type, cache_control=cache_control(key), path=data)
            return self._bucket.put_files([(where, upload)])[where]
        body = data if isinstance(data, bytes) else data.read_bytes()
        upload = Upload(content_type=content_type, cache_control=cache_control(key))
        if conditional and not self.decides_conditions:
            found = self.etag(key)
            if found != if_match:
                raise PreconditionFailed(
                    f"{key} was changed by somebody else.",
                    detail=f"expected {if_match or 'none'}, found {found or 'none'}",
                )
            return self._bucket.put(where, body, upload)
        return self._bucket.put(where, body, upload, if_match=if_match, if_absent=if_absent)

    def put_store(
        self,
        key: str,
        folder: Path,
        objects: Mapping[str, str],
        *,
        token: str,
        may_write: Callable[[], None],
        believed: Mapping[str, tuple[str, str]] | None = None,
    ) -> Mapping[str, str]:
        """Bring the store at ``key`` to what ``folder`` holds, sending only what differs; see ``Target.put_store``.

        The root ``zarr.json`` goes first and comes last, and the whole store is read back by its etags.

        Raises
        ------
        PublishError
            ``folder`` does not hold ``objects``, or something else stands there when all is put.
        """
        del token  # nothing of its own stands beside the store
        store_segments(key)
        return self._stores.put(key, folder, objects, may_write=may_write, believed=believed or {})

    def repair_store(self, key: str, *, token: str) -> None:
        """Remove the parts of uploads that an interrupted ``put_store`` left unfinished."""
        del token
        store_segments(key)
        self._stores.abort_uploads(key)

    def store_stands(self, key: str, digests: Mapping[str, tuple[int, str]], etags: Mapping[str, str] | None) -> bool:
        """Whether exactly these objects stand below ``key``; by one listing where the etags are known."""
        if etags is None:
            return self.store_digests(key) == digests
        expected = {name: StandingObject(size, etags.get(name, "")) for name, (size, _sha256) in digests.items()}
        return self.list_store(key) == expected

    def store_digests(self, key: str) -> Mapping[str, tuple[int, str]] | None:
        """Size and SHA-256 of every object below ``key``; None when nothing is there. Reads the bytes."""
        found: dict[str, tuple[int, str]] = {}
        for name in self.list_store(key):
            stored = self.read(f"{key}/{name}")
            if stored is not None:
                found[name] = (len(stored.data), hashlib.sha256(stored.data).hexdigest())
        return found or None

    def list_store(self, key: str) -> Mapping[str, StandingObject]:
        """Every object below ``key`` by its name in the store; a request for each thousand."""
        store_segments(key)
        return self._stores.standing(key)

    def list_objects(self, prefix: str) -> Iterator[tuple[str, StandingObject]]:
        """(key, object) of everything whose key begins with ``prefix``, by key; a request for each thousand."""
        for one in self._bucket.listing(f"{self._prefix}{prefix}"):
            key = one.key.removeprefix(self._prefix)
            if not any(segment.startswith(".") for segment in key.split("/")):
                yield key, StandingObject(one.size_bytes, one.etag)

    def copy_store(self, origin: str, key: str, *, may_write: Callable[[], None]) -> Mapping[str, str]:
        """Copy a store inside the bucket, its root last; see ``Target.copy_store``."""
        store_segments(origin)
        store_segments(key)
        return self._stores.copy(origin, key, may_write=may_write)

    def store_exists(self, key: str) -> bool:
        """Whether a root ``zarr.json`` stands at ``key``: one HEAD."""
        return self._bucket.head(self._key(f"{key}/{_ROOT_OBJECT}")) is not None

    def missing_stores(self, keys: Sequence[str]) -> set[str]:
        """Those of ``keys`` at which no root ``zarr.json`` stands: one HEAD each, side by side."""
        heads = self._bucket.heads([self._key(f"{key}/{_ROOT_OBJECT}") for key in keys])
        return {key for key, head in zip(keys, heads, strict=True) if head is None}

    def delete_stores(self, keys: Iterable[str]) -> None:
        """Remove stores, each root first, so that a reader finds a store whole or not at all. Absent keys are fine."""
        for key in keys:
            store_segments(key)
            self._stores.delete(key)

    def delete(self, key: str) -> None:
        """Remove one object. Absent is fine."""
        self._bucket.delete([self._key(key)])

    def _key(self, key: str) -> str:
        segments_of(key)
        return f"{self._prefix}{key}"


def _can_be_named(base: str) -> bool:
    """Whether documents may name an address: https anywhere, http on this machine only."""
    parts = urlsplit(base)
    return parts.scheme == "https" or parts.hostname == "127.0.0.1"
