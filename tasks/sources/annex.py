"""git-annex keys: how they are known, what they say of their content, and where an object store keeps it.

A key comes from the repository, that is from a stranger. One that is not written as git-annex writes keys is none: it is
neither joined into a path nor asked for anywhere.
"""

from __future__ import annotations

import hashlib
import re
import struct
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = [
    "POINTER_LIMIT_BYTES",
    "Digest",
    "chunk_name",
    "chunk_prefix",
    "chunk_size_bytes",
    "content_digest",
    "is_content",
    "is_key",
    "key_of_link",
    "key_of_pointer",
    "key_size_bytes",
    "local_places",
    "remote_name",
]

POINTER_LIMIT_BYTES = 1024
"""Files from this size on are content; an unlocked pointer is one short line."""


class Digest(Protocol):
    """What ``hashlib`` makes, as far as it is used here."""

    def update(self, data: bytes, /) -> None:
        """Take more of the content."""

    def hexdigest(self) -> str:
        """The digest of the content taken so far, in lower-case hex."""


_LONGEST = 255
_BLOCK_BYTES = 1 << 20
# A key is BACKEND, fields and a name behind "--": without that a link could call any file content of an annex.
_FREE = r"[^/\\\x00-\x1f\x7f\ud800-\udfff]"
_SHAPE = rf"[A-Z0-9_]+(?:-[A-Za-z][A-Za-z0-9]*)*--{_FREE}+"
_KEY = re.compile(_SHAPE)
_LINK = re.compile(rf"(?:^|/)annex/objects/(?:[^/]+/)*(?P<key>{_SHAPE})/(?P=key)$")
_POINTER = re.compile(rf"\A/annex/objects/(?P<key>{_SHAPE})\s*\Z")
_SIZE = re.compile(r"s([0-9]{1,18})")
_CHUNK_FIELD = re.compile(r"[SC][0-9]+")
_MIXED = "0123456789zqjxkmvwgpfZQJXKMVWGPF"
# How a key is written as the name of a file, in the order in which it is undone.
_ESCAPES = (("%", "/"), ("&c", ":"), ("&s", "%"), ("&a", "&"))
_HASHES: Mapping[str, Callable[[], Digest]] = {
    "MD5": hashlib.md5,
    "SHA1": hashlib.sha1,
    "SHA224": hashlib.sha224,
    "SHA256": hashlib.sha256,
    "SHA384": hashlib.sha384,
    "SHA512": hashlib.sha512,
    "SHA3_224": hashlib.sha3_224,
    "SHA3_256": hashlib.sha3_256,
    "SHA3_384": hashlib.sha3_384,
    "SHA3_512": hashlib.sha3_512,
    "BLAKE2B160": lambda: hashlib.blake2b(digest_size=20),
    "BLAKE2B224": lambda: hashlib.blake2b(digest_size=28),
    "BLAKE2B256": lambda: hashlib.blake2b(digest_size=32),
    "BLAKE2B384": lambda: hashlib.blake2b(digest_size=48),
    "BLAKE2B512": lambda: hashlib.blake2b(digest_size=64),
    "BLAKE2S160": lambda: hashlib.blake2s(digest_size=20),
    "BLAKE2S224": lambda: hashlib.blake2s(digest_size=28),
    "BLAKE2S256": lambda: hashlib.blake2s(digest_size=32),
}


def is_key(text: str) -> bool:
    """Whether this is a key as git-annex writes one in the name of a file: never a path, never empty, bounded."""
    return (
        not is_chunk(text)
        and len(text.encode("utf-8", "surrogatepass")) <= _LONGEST
        and _KEY.fullmatch(text) is not None
    )


def key_of_link(target: str) -> str | None:
    """The key of a locked file, from the text of its symbolic link; None when it is another link."""
    found = _LINK.search(target)
    return _checked(found.group("key")) if found else None


def key_of_pointer(content: bytes) -> str | None:
    """The key of an unlocked file whose content is not here, from the pointer in its place; None for other content."""
    if not content.startswith(b"/annex/objects/"):
        return None
    found = _POINTER.match(content.decode("utf-8", "surrogateescape"))
    return _checked(found.group("key")) if found else None


def _checked(key: str) -> str | None:
    return key if is_key(key) else None


def key_size_bytes(key: str) -> int | None:
    """Bytes of the content, or None when the key does not say.

    Only whole fields before the first ``--`` count: the name behind it is free text, ``-s5`` in it is no size. In a
    chunk's key the size is still the whole content's.
    """
    fields, dashes, _ = key.partition("--")
    if not dashes:
        return None
    sizes = [found for field in fields.split("-")[1:] if (found := _SIZE.fullmatch(field))]
    return int(sizes[0].group(1)) if len(sizes) == 1 else None


def content_digest(key: str) -> tuple[Digest, str] | None:
    """A digest to be fed with the content, and the hex that it must then show; None for a key without a hash.

    Backends ending in ``E`` keep the extension of the file behind the hash. The name of WORM, URL and the like is no hash.
    """
    backend = key.partition("-")[0]
    name = key.partition("--")[2]
    if backend not in _HASHES and backend.endswith("E"):
        backend, name = backend.removesuffix("E"), name.partition(".")[0]
    if backend not in _HASHES:
        return None
    return _HASHES[backend](), name.lower()


def is_content(key: str, path: Path) -> bool:
    """Whether the file is what the key says, by its hash, or by its size where the key has no hash. Reads all of it."""
    size = key_size_bytes(key)
    if size is not None and path.stat().st_size != size:
        return False
    expected = content_digest(key)
    if expected is None:
        return True
    digest, hexadecimal = expected
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest() == hexadecimal


def local_places(key: str) -> tuple[str, str]:
    """Where git-annex keeps the content below ``annex/objects``: as a checkout does, and as a bare repository does."""
    digest = hashlib.md5(_serialized(key).encode("utf-8")).digest()  # noqa: S324 - git-annex spreads its objects by MD5
    word = struct.unpack("<I", digest[:4])[0]
    letters = [_MIXED[word >> (6 * place) & 31] for place in range(4)]
    lower = digest.hex()
    return (
        f"{letters[1]}{letters[0]}/{letters[3]}{letters[2]}/{key}/{key}",
        f"{lower[:3]}/{lower[3:6]}/{key}/{key}",
    )


def remote_name(key: str) -> str | None:
    """The key as the name of an object; None when it is not safe to ask for.

    WORM and URL keys may hold slashes, and on the way to a service ``..`` between two of them would become another name.
    """
    name = _serialized(key)
    return None if {".", ".."} & set(name.split("/")) else name


def chunk_prefix(name: str) -> str:
    """What the names of all chunks of an object begin with; other objects of the same size may begin so too."""
    return f"{name.partition('--')[0]}-S"


def chunk_name(name: str, chunk_bytes: int, number: int) -> str:
    """The name of one chunk of an object, counted from 1."""
    fields, _, free = name.partition("--")
    return f"{fields}-S{chunk_bytes}-C{number}--{free}"


def chunk_size_bytes(name: str, chunk: str) -> int | None:
    """The chunk size that the name of a chunk of ``name`` tells; None when it is a chunk of something else, or none."""
    fields, _, free = name.partition("--")
    found = re.fullmatch(rf"{re.escape(fields)}-S([1-9][0-9]{{0,17}})-C[1-9][0-9]*--{re.escape(free)}", chunk)
    return int(found.group(1)) if found else None


def is_chunk(key: str) -> bool:
    """Whether the key is that of a part of some content; no file has such a key."""
    return any(_CHUNK_FIELD.fullmatch(field) for field in key.partition("--")[0].split("-")[1:])


def _serialized(key: str) -> str:
    for written, meant in _ESCAPES:
        key = key.replace(written, meant)
    return key
