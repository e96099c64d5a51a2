"""git-annex keys, and how a checkout names content that it may not hold."""

from __future__ import annotations

import re

__all__ = ["POINTER_LIMIT_BYTES", "key_of_link", "key_of_pointer", "key_size_bytes"]

POINTER_LIMIT_BYTES = 1024
"""Files from this size on are content; an unlocked pointer is one short line."""

# A key is BACKEND, fields and a name behind "--": without that a link could call any file content of an annex.
_LINK = re.compile(r"(?:^|/)annex/objects/(?:[^/]+/)*(?P<key>[A-Z0-9_]+(?:-[A-Za-z][^/-]*)*--[^/]+)/(?P=key)$")
_POINTER = re.compile(rb"\A/annex/objects/(?P<key>[^/\s\x00]+)\s*\Z")
_SIZE = re.compile(r"s([0-9]+)")


def key_of_link(target: str) -> str | None:
    """The key of a locked file, from the text of its symbolic link; None when it is another link."""
    found = _LINK.search(target)
    return found.group("key") if found else None


def key_of_pointer(content: bytes) -> str | None:
    """The key of an unlocked file whose content is not here, from the pointer in its place; None for other content."""
    found = _POINTER.match(content) if content.startswith(b"/annex/objects/") else None
    return found.group("key").decode("utf-8", "surrogateescape") if found else None


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
