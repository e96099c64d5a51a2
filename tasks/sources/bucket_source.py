"""A dataset below a prefix of a bucket, as OpenNeuro lays them out: every file an object under its own name."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from contract.errors import Refused, StorageError
from contract.layout import check_relative
from infra.storage.s3_download import Piece
from tasks.bids.folders import EXCLUDED, Folders
from tasks.bids.scope import printable
from tasks.formats.registry import endings
from tasks.plan.fingerprint import state_hash
from tasks.sources.annexed import LONGEST_SIDECAR_BYTES
from tasks.sources.protocol import Problem, SourceAddress, SourceChanged, TreeEntry
from tasks.sources.s3_place import answering
from tasks.sources.small_contents import SMALL_BYTES, SmallContents

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from infra.storage.bucket import Bucket, Listed
    from tasks.sources.s3_place import S3Place

__all__ = ["BucketSource"]

_SIDE_BY_SIDE = 8
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class BucketSource:
    """The objects below a prefix at the moment they are first listed, or as they were at a moment.

    Parameters
    ----------
    at
        ``YYYY-MM-DDTHH:MM:SSZ``: the versions that stood then, in a bucket that keeps versions.

    Raises
    ------
    Refused
        ``at`` is written otherwise.
    """

    def __init__(self, bucket: Bucket, place: S3Place, *, at: str | None = None) -> None:
        self.url = place.url
        self.address = SourceAddress(url=place.url, at=at)
        self._bucket = bucket
        self._prefix = place.prefix
        self._at = None if at is None else _moment(at)
        self._small = SmallContents()
        self._tree: dict[str, TreeEntry] | None = None
        self._problems: list[Problem] = []

    def tree(self) -> Mapping[str, TreeEntry]:
        """Every object outside derivatives, sourcedata and code, sorted by path, from listings alone.

        Raises
        ------
        StorageError
            A page of the listing was denied or failed: a part of it is never taken for the whole.
        Refused
            There is no such bucket.
        """
        if self._tree is None:
            listed = {one.key.removeprefix(self._prefix): one for one in self._listing(self._prefix)}
            self._tree = dict(sorted(self._entries(listed)))
        return self._tree

    def left_out(self) -> tuple[Problem, ...]:
        """Objects whose keys are no paths."""
        self.tree()
        return tuple(self._problems)

    def commit(self, matters: Collection[str]) -> str:
        """A hash of the files that matter: BLAKE2b (20 bytes) over their sorted (path, content id)."""
        tree = self.tree()
        return state_hash((path, tree[path].content_id) for path in matters)

    def read(self, path: str) -> bytes:
        """The content of a sidecar. Raises OSError, also when it cannot be had."""
        entry = self.tree().get(check_relative(path))
        if entry is None:
            raise FileNotFoundError(f"{printable(path)} is not there")
        if (entry.size_bytes or 0) > LONGEST_SIDECAR_BYTES:
            raise OSError(f"{printable(path)} is longer than {LONGEST_SIDECAR_BYTES} bytes")
        try:
            return self._content(path, *_etag_and_size(path, entry.content_id))
        except (StorageError, SourceChanged) as error:
            raise OSError(str(error)) from error

    asks_a_service = True

    def header_folder(self, inputs: Mapping[str, str], scratch: Path) -> Path | None:  # noqa: ARG002 - of the Protocol
        """None: every file would be a download."""
        return None

    def start(self, path: str, content_id: str, length: int) -> bytes | None:
        """The first bytes of the object, if it is still the one that was listed. See ``Source.start``."""
        etag, size = _etag_and_size(path, content_id)
        if not min(length, size):
            return b""
        with answering(printable(path)):
            version = self._version(path, etag)
            found = self._bucket.read_range(
                self._prefix + check_relative(path),
                0,
                min(length, size),
                etag=etag if version is None else None,
                version=version,
            )
        if found is None:
            raise _gone(path)
        return found

    def copied_bytes(self, paths: Iterable[str]) -> int:
        """All of them."""
        return sum(self.tree()[path].size_bytes or 0 for path in paths)

    def fetch(self, inputs: Mapping[str, str], scratch: Path, *, before: Callable[[], None] | None = None) -> None:
        """Download objects side by side, each on condition that it is still the one that was listed. See ``Source.fetch``."""
        # of a small recording the sidecars take as long as the samples: each waits for its answer
        with ThreadPoolExecutor(min(len(inputs), _SIDE_BY_SIDE) or 1) as threads:
            begun = [threads.submit(self._bring, path, of, scratch, before) for path, of in inputs.items()]
            try:
                for one in begun:
                    one.result()
            finally:
                threads.shutdown(cancel_futures=True)

    def _bring(self, path: str, content_id: str, scratch: Path, before: Callable[[], None] | None) -> None:
        place = scratch / check_relative(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        etag, size = _etag_and_size(path, content_id)
        with answering(printable(path)):
            if size <= SMALL_BYTES:
                place.write_bytes(self._content(path, etag, size))
                return
            piece = Piece(
                key=self._prefix + path,
                size_bytes=size,
                etag=etag if self._at is None else None,
                version=self._version(path, etag),
            )
            [found] = self._bucket.download([piece], place, before=before)
            if found is None:
                raise _gone(path)

    def unchanged(self, inputs: Mapping[str, str]) -> bool:  # noqa: ARG002 - part of the Protocol
        """Always: what was fetched is what had the planned etag, whatever stands there now."""
        return True

    def _entries(self, listed: Mapping[str, Listed]) -> Iterator[tuple[str, TreeEntry]]:
        folders = Folders(listed, endings().folders)
        for path, one in listed.items():
            if folders.standing(path.rpartition("/")[0]) is EXCLUDED or path.endswith("/") or not path:
                continue  # a key that ends with a slash stands for a folder
            if any(segment in {"", ".", ".."} or segment.lower() == ".git" for segment in path.split("/")):
                self._problems.append(Problem(printable(path), "is no path of a file; it is not read"))
                continue
            yield path, TreeEntry(one.size_bytes, f"s3:{one.etag}-{one.size_bytes}")

    def _content(self, path: str, etag: str, size: int) -> bytes:
        return self._small.get(f"{path}\0{etag}", lambda: self._read(path, etag, size))

    def _read(self, path: str, etag: str, size: int) -> bytes:
        found = self._bucket.read(self._prefix + path, version=self._version(path, etag))
        if found is None:
            raise _gone(path)
        if found.head.etag != etag or len(found.data) != size:
            raise SourceChanged(f"{printable(path)} was replaced")
        return found.data

    def _version(self, path: str, etag: str) -> str | None:
        """The version that stood at the source's moment; None for a source of now."""
        if self._at is None:
            return None
        key = self._prefix + path
        found = next((one for one in self._listing(key) if one.key == key), None)
        if found is None or found.etag != etag:
            raise SourceChanged(f"{printable(path)} is not what stood there")
        return found.version

    def _listing(self, prefix: str) -> Iterator[Listed]:
        """What stands below a prefix, now or at the source's moment."""
        if self._at is None:
            yield from self._bucket.listing(prefix)
            return
        newest: dict[str, Listed] = {}
        for one in self._bucket.listing(prefix, versions=True):
            assert one.modified is not None, "a listing of versions tells their times"
            stood = newest.get(one.key)
            if one.modified <= self._at and (stood is None or _is_newer(one, stood)):
                newest[one.key] = one
        yield from (one for one in newest.values() if not one.is_deletion)


def _is_newer(one: Listed, other: Listed) -> bool:
    """Of two in the same second: the latest of all; else the one that stands first in the listing, newest first."""
    assert one.modified is not None
    assert other.modified is not None
    if one.modified != other.modified:
        return one.modified > other.modified
    return one.is_latest and not other.is_latest


def _moment(text: str) -> datetime:
    try:
        return datetime.strptime(text if _MOMENT.fullmatch(text) else "", "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise Refused(f"--at {text!r} is no moment: write it in UTC, as 2026-01-31T00:00:00Z.") from None


def _etag_and_size(path: str, content_id: str) -> tuple[str, int]:
    kind, _, rest = content_id.partition(":")
    etag, _, size = rest.rpartition("-")
    if kind != "s3" or not etag or not size.isdecimal():
        raise SourceChanged(f"{printable(path)} was planned from another kind of source")
    return etag, int(size)


def _gone(path: str) -> SourceChanged:
    return SourceChanged(f"{printable(path)} is gone")
