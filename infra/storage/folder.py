"""A folder that serves datasets: every change is one rename, so a reader finds the old state or the new one."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import re
import shutil
import tempfile
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from contract.errors import PreconditionFailed, PublishError, Refused
from contract.layout import check_relative
from infra.storage.beneath import (
    locked,
    open_file,
    open_folder,
    pour,
    remove_tree,
    rename_new,
    settle,
    umask,
    write_new,
)
from infra.storage.folder_store import copy_in, digests_below, move_in, prune, remove_quietly
from infra.storage.keys import AREA, segments_of, store_segments
from infra.storage.protocol import Addresses, StandingObject, Stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = ["FolderTarget"]

_STAGING = (AREA, "staging")
_LOCKS = (AREA, "locks")
_REMOVED = "removed-"
_TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ROOT_OBJECT = "zarr.json"

_log = logging.getLogger("zarrmill.storage")


class FolderTarget:
    """The ``Target`` of a folder on a local file system of Linux.

    Parameters
    ----------
    root
        Absolute path. Made by the first write.
    port
        Of the gateway that serves the folder on 127.0.0.1; only the addresses name it.
    """

    marks_stores = False  # an exchange gives every object a new inode
    looks_cost_requests = False

    def __init__(self, root: Path, *, port: int) -> None:
        self.root = root
        self.url = str(root)
        self._port = port

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FolderTarget) and (self.root, self._port) == (other.root, other._port)

    def __hash__(self) -> int:
        return hash((self.root, self._port))

    def __repr__(self) -> str:
        return f"FolderTarget({self.url!r}, port={self._port})"

    def addresses(self, dataset_id: str) -> Addresses:
        """The address fields for one dataset: the gateway on this machine."""
        check_relative(dataset_id)
        base = f"http://127.0.0.1:{self._port}/{dataset_id}/zarr/"
        return Addresses(
            contract_base=base,
            data_base=base,
            data_base_kind="local-http",
            s3_uri=f"s3://local/{dataset_id}/zarr/",
            s3_region="local",
            s3_anonymous=False,
        )

    @property
    def decides_conditions(self) -> bool:
        """Always: under a lock in the folder itself."""
        return True

    def prepare(self, *, public: bool = False) -> bool | None:
        """Make the folder, and write and remove a file in it; see ``Target.prepare``."""
        if public:
            raise Refused("--public is for s3:// targets: who can read a folder is up to its permissions.")
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.root) as probe:
                probe.write(b"\0" * 4096)
        except OSError as error:
            raise Refused(
                f"The target {self.url} cannot be written: {error.strerror}. Make it writable, or name another with --to."
            ) from error
        return None

    def read(self, key: str) -> Stored | None:
        """The object, or None when it definitely does not exist. A broken link, a file in the way and the like raise."""
        stream = self._open(key)
        if stream is None:
            return None
        with stream:
            data = stream.read()
        return Stored(data, hashlib.sha256(data).hexdigest())

    def etag(self, key: str) -> str | None:
        """SHA-256 of the object in hex, or None when it definitely does not exist. Reads the bytes block by block."""
        stream = self._open(key)
        if stream is None:
            return None
        with stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def fetch(self, key: str, path: Path) -> str | None:
        """Copy the object into a new file at ``path``; its etag, or None when it definitely does not exist."""
        stream = self._open(key)
        if stream is None:
            return None
        with stream, path.open("xb") as out:
            return pour(stream, out)

    def _open(self, key: str) -> BufferedReader | None:
        try:
            return os.fdopen(open_file(self.root, segments_of(key)), "rb")
        except FileNotFoundError:
            return None

    def put(
        self, key: str, data: bytes | Path, *, content_type: str, if_match: str | None = None, if_absent: bool = False
    ) -> str:
        """Write an object whole, durable when it returns; its etag, the SHA-256 of the content in hex.

        ``content_type`` is not kept: the gateway derives it from the name.

        Raises
        ------
        PreconditionFailed
            ``if_match`` is not the current etag, or ``if_absent`` and the object exists.
        """
        del content_type
        *above, name = segments_of(key)
        with self._folder(above) as folder, self._locked(key):
            if if_match is not None or if_absent:
                self._check(key, if_match)
            # A fixed name: whoever holds the lock may overwrite what a killed process left.
            temporary = f".{name}.new"
            remove_tree(folder, temporary)
            etag = write_new(folder, temporary, data)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        return etag

    def _check(self, key: str, if_match: str | None) -> None:
        """Raise PreconditionFailed unless the object's etag is ``if_match``; None stands for absent."""
        found = self.etag(key)
        if found != if_match:
            raise PreconditionFailed(
                f"{key} was changed by somebody else.", detail=f"expected {if_match or 'none'}, found {found or 'none'}"
            )

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
        """Replace the store at ``key`` by ``folder``: prepared in the hidden area, then exchanged in one step.

        ``folder`` is renamed where it lies on the same file system, else copied object by object, the root
        ``zarr.json`` last, and its digests are checked on the way.

        Raises
        ------
        PublishError
            ``folder`` does not hold exactly ``objects``, or a copied object has another digest.
        LostLease
            From ``may_write``; what is served stays, and what was prepared is removed.
        """
        del believed  # the new store is exchanged whole, whatever stood there
        *above, name = store_segments(key)
        if _ROOT_OBJECT not in objects:
            raise PublishError(f"The new store for {key} has no root zarr.json.")
        temporary = _temporary(key, token)
        with self._folder(_STAGING) as staging:
            remove_tree(staging, temporary)
            try:
                self._stage(folder, staging, temporary, objects, may_write)
                may_write()
                with self._locked(key), self._folder(above) as parent:
                    may_write()
                    move_in((staging, temporary), (parent, name))
                    os.fsync(parent)
                    os.fsync(staging)
            finally:
                # After the exchange this is the old store, before it what was prepared; garbage both.
                remove_quietly(staging, temporary)
        return {}

    def _stage(
        self, folder: Path, staging: int, temporary: str, objects: Mapping[str, str], may_write: Callable[[], None]
    ) -> None:
        may_write()
        try:
            os.rename(folder, temporary, dst_dir_fd=staging)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            copy_in(folder, staging, temporary, objects, may_write)
            shutil.rmtree(folder)
        new = open_folder(f"/proc/self/fd/{staging}", [temporary])
        try:
            sizes = settle(new, umask())
        finally:
            os.close(new)
        if sizes.keys() != objects.keys():
            odd = sorted(sizes.keys() ^ objects.keys())[:3]
            raise PublishError("The new store does not hold exactly the objects it was checked with.", detail=str(odd))

    def repair_store(self, key: str, *, token: str) -> None:
        """Remove whatever an interrupted ``put_store`` with this token left; what is served stays."""
        store_segments(key)
        with suppress(FileNotFoundError):
            staging = open_folder(self.root, _STAGING)
            try:
                remove_tree(staging, _temporary(key, token))
            finally:
                os.close(staging)

    def store_digests(self, key: str) -> Mapping[str, tuple[int, str]] | None:
        """Size in bytes and SHA-256 of every object below ``key``; None when no folder is there."""
        segments = store_segments(key)
        try:
            top = open_folder(self.root, segments)
        except FileNotFoundError:
            return None
        try:
            return dict(digests_below(top))
        finally:
            os.close(top)

    def store_stands(self, key: str, digests: Mapping[str, tuple[int, str]], etags: Mapping[str, str] | None) -> bool:
        """Whether exactly these objects stand below ``key``. Reads the bytes."""
        del etags
        return self.store_digests(key) == digests

    def list_store(self, key: str) -> Mapping[str, StandingObject]:
        """Every object below ``key`` by its name in the store, its etag being its SHA-256. Reads the bytes."""
        return {name: StandingObject(*one) for name, one in (self.store_digests(key) or {}).items()}

    def list_objects(self, prefix: str) -> Iterator[tuple[str, StandingObject]]:
        """(key, object) of every file whose key begins with ``prefix``, folder by folder. Reads the bytes."""
        *above, _rest = prefix.split("/")
        try:
            top = open_folder(self.root, segments_of("/".join(above)) if above else [])
        except FileNotFoundError:
            return
        base = "".join(f"{segment}/" for segment in above)
        try:
            for name, one in digests_below(top, hidden=False):
                if f"{base}{name}".startswith(prefix):
                    yield f"{base}{name}", StandingObject(*one)
        finally:
            os.close(top)

    def copy_store(self, origin: str, key: str, *, may_write: Callable[[], None]) -> Mapping[str, str]:
        """Make the store at ``key``, where none may stand, a copy of the one at ``origin``; see ``Target.copy_store``."""
        *above, name = store_segments(key)
        digests = self.store_digests(origin)
        if digests is None or _ROOT_OBJECT not in digests:
            raise PublishError("There is no store to be copied.", detail=origin)
        temporary = _temporary(key, "copy")
        objects = {each: sha256 for each, (_size, sha256) in digests.items()}
        with self._folder(_STAGING) as staging, self._locked(key), self._folder(above) as parent:
            remove_tree(staging, temporary)
            try:
                copy_in(self.root / origin, staging, temporary, objects, may_write)
                may_write()
                rename_new((staging, temporary), (parent, name))
                os.fsync(parent)
            except FileExistsError as error:
                raise PublishError("A store can be copied to a free address only.", detail=key) from error
            finally:
                remove_quietly(staging, temporary)
        return {}

    def store_exists(self, key: str) -> bool:
        """Whether a root ``zarr.json`` stands at ``key``: one stat."""
        check_relative(key)
        try:
            os.lstat(f"{self.url}/{key}/{_ROOT_OBJECT}")
        except FileNotFoundError:
            return False
        return True

    def missing_stores(self, keys: Sequence[str]) -> set[str]:
        """Those of ``keys`` at which no root ``zarr.json`` stands: one stat each."""
        return {key for key in keys if not self.store_exists(key)}

    def delete_stores(self, keys: Iterable[str]) -> None:
        """Remove stores and any folders that this leaves empty. Absent keys are fine.

        A store leaves its address in one rename; its bytes are removed after that. What an interrupted removal left
        in the hidden area is removed first.
        """
        with self._folder(_STAGING) as staging:
            for left in os.listdir(staging):  # noqa: PTH208 - pathlib knows no descriptors
                if left.startswith(_REMOVED):
                    remove_tree(staging, left)
            for key in keys:
                segments = store_segments(key)
                aside = f"{_REMOVED}{uuid4().hex}"
                with self._locked(key):
                    if self._set_aside(segments, staging, aside):
                        prune(self.root, segments[:-1])
                remove_tree(staging, aside)

    def _set_aside(self, segments: list[str], staging: int, aside: str) -> bool:
        try:
            parent = open_folder(self.root, segments[:-1])
        except FileNotFoundError:
            return False
        try:
            os.rename(segments[-1], aside, src_dir_fd=parent, dst_dir_fd=staging)
            os.fsync(parent)
        except FileNotFoundError:
            return False
        finally:
            os.close(parent)
        return True

    def delete(self, key: str) -> None:
        """Remove one object. Absent is fine."""
        *above, name = segments_of(key)
        try:
            folder = open_folder(self.root, above)
        except FileNotFoundError:
            return
        try:
            with self._locked(key):
                os.unlink(name, dir_fd=folder)
                os.fsync(folder)
        except FileNotFoundError:
            return
        finally:
            os.close(folder)

    @contextmanager
    def _folder(self, segments: Iterable[str]) -> Iterator[int]:
        try:
            folder = open_folder(self.root, list(segments), create=True)
        except NotADirectoryError as error:
            raise PublishError(
                "Something that is not a folder is in the way; zarrmill follows no links below a target.",
                detail=str(error.filename),
            ) from error
        try:
            yield folder
        finally:
            os.close(folder)

    @contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        """The lock of everything that shares the key's first segment: one dataset, or one document at the root."""
        with self._folder(_LOCKS) as locks, locked(locks, key.split("/", 1)[0]):
            yield


def _temporary(key: str, token: str) -> str:
    if not _TOKEN.fullmatch(token):
        raise PublishError(
            "The token of a publish may hold only letters, digits, dot, dash and underscore.", detail=token
        )
    return f"{token}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
