"""An archive that is read over HTTP only: any server of the serving contract, this one's gateway or another's."""

from __future__ import annotations

import errno
import time
from http import HTTPStatus
from random import SystemRandom
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import httpx

from contract.errors import Refused, StorageDenied, StorageError, StorageUnavailable
from infra.storage.keys import segments_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.storage.opened import Opened

__all__ = ["HttpArchive"]

_FIRST_WAIT_S = 0.2
_LONGEST_WAIT_S = 3.0
_WORTH_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_AGENT = "zarrmill (reader)"  # an archive behind Cloudflare refuses the agents of bare libraries
_FRESH = {"Cache-Control": "no-cache", "Accept-Encoding": "identity"}

_random = SystemRandom()


class HttpArchive:
    """The datasets below a base URL.

    Parameters
    ----------
    base_url
        Where ``catalog.json`` is, such as ``https://zarr.example.org/``.
    tries
        How often a question is put while trouble may pass.

    Notes
    -----
    Redirects are followed, as to the bucket behind a gateway; there a missing object is answered 403, because listing is
    denied, and counts as absent.
    """

    def __init__(self, base_url: str, *, tries: int = 5) -> None:
        parts = urlsplit(base_url)
        if (
            parts.scheme not in {"http", "https"}
            or not parts.hostname
            or parts.username
            or parts.query
            or parts.fragment
        ):
            raise Refused(
                f"{base_url!r} (--url, --from) is no base URL of an archive; write it like https://zarr.example.org/."
            )
        self.url = f"{base_url.rstrip('/')}/"
        self._tries = tries
        self._client = httpx.Client(
            follow_redirects=True,
            headers={"User-Agent": _AGENT},
            timeout=httpx.Timeout(30.0, connect=10.0),
            limits=httpx.Limits(max_connections=16),
            trust_env=False,
        )

    def close(self) -> None:
        """Let go of the connections that are kept."""
        self._client.close()

    def open(self, key: str) -> Opened | None:
        """One version of an object, its state asked of the archive itself and not of a cache; None when it is not there.

        Raises
        ------
        StorageError
            The archive does not answer, or answers with an error.
        """
        address = self._address(key)
        answered = self._ask("HEAD", address, _FRESH)
        if answered is None:
            return None
        length = answered.headers.get("content-length")
        if length is None or not length.isdigit():
            raise StorageError("The archive does not tell the size of an object.", detail=key)
        return _HttpObject(
            self._ask, address, int(length), _etag(answered) or f"{length}-{answered.headers.get('last-modified')}"
        )

    def get(self, path: str) -> bytes | None:
        """The whole answer to a path below the base, such as a question to the API of the archive; None for 404."""
        answered = self._ask("GET", f"{self.url}{path}", {})
        return None if answered is None else answered.content

    def _address(self, key: str) -> str:
        return f"{self.url}{quote('/'.join(segments_of(key)))}"

    def _ask(self, method: str, address: str, headers: dict[str, str]) -> httpx.Response | None:
        """The answer, asked for again while trouble may pass; None when the object is not there."""
        for number in range(1, self._tries + 1):
            try:
                answered = self._client.request(method, address, headers=headers)
            except httpx.HTTPError as error:
                if number == self._tries:
                    raise StorageUnavailable("The archive is out of reach.", detail=type(error).__name__) from error
            else:
                if answered.status_code not in _WORTH_AGAIN:
                    return _judged(answered)
                if number == self._tries:
                    raise StorageUnavailable(
                        "The archive has trouble; try again.", detail=f"HTTP {answered.status_code}"
                    )
            time.sleep(_random.uniform(0.05, min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**number)))
        raise AssertionError("the last try returns or raises")


class _HttpObject:
    def __init__(
        self, ask: Callable[[str, str, dict[str, str]], httpx.Response | None], address: str, size_bytes: int, etag: str
    ) -> None:
        self._ask = ask
        self._address = address
        self.size_bytes = size_bytes
        self.etag = etag

    def read(self, start: int, length: int) -> bytes:
        """Up to ``length`` bytes from ``start``; OSError when another version answers."""
        length = min(length, self.size_bytes - start)
        if length <= 0:
            return b""
        headers = {"Range": f"bytes={start}-{start + length - 1}", "Accept-Encoding": "identity"}
        answered = self._ask("GET", self._address, headers)
        if answered is None or _etag(answered) not in (None, self.etag):
            raise OSError(errno.ESTALE, "an object of the archive was replaced while it was read")
        data = answered.content
        if answered.status_code == HTTPStatus.OK:
            data = data[start : start + length]
        if len(data) != length:
            raise OSError(errno.ESTALE, "an object of the archive became shorter while it was read")
        return data

    def close(self) -> None:
        """Nothing is held open."""


def _etag(answered: httpx.Response) -> str | None:
    """The ETag without its quotes; a weak one, which a proxy made by compressing, names the same version."""
    found = answered.headers.get("etag")
    return found.removeprefix("W/").strip('"') if found else None


def _judged(answered: httpx.Response) -> httpx.Response | None:
    status = answered.status_code
    if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE) or (status == HTTPStatus.FORBIDDEN and answered.history):
        return None
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise StorageDenied("The archive does not let this be read.", detail=f"HTTP {status}")
    if not answered.is_success:
        raise StorageError("The archive answered with an error.", detail=f"HTTP {status}")
    return answered
