"""Sizes in bytes as people write them."""

from __future__ import annotations

import re
from decimal import Decimal

from contract.errors import Refused

__all__ = ["decimal_bytes", "format_bytes", "parse_bytes"]

_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "pb": 10**15,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
    "pib": 2**50,
}
_SIZE = re.compile(r"(\d{1,20}(?:\.\d{1,12})?)\s*([a-z]{0,3})", re.ASCII)
_LARGEST_BYTES = 2**63 - 1
"""What a bigint column and a Dask resource can hold."""


def parse_bytes(text: str) -> int:
    """Bytes of a size such as ``8GiB``, ``1.5 TiB``, ``500MB`` or ``1048576``.

    ``KiB`` and its larger kin are powers of 1024, ``kB`` and its kin powers of 1000. A bare ``8G`` is refused, because
    half of the world's tools read it as one and half as the other. Parts of a byte are dropped.

    Raises
    ------
    Refused
        The text is no such size, or larger than 2**63 - 1 bytes.
    """
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None:
        raise Refused(f"{text[:40]!r} is not a size; write it like 8GiB, 1.5TiB, 500MB or a number of bytes")
    number, unit = found.groups()
    if unit not in _UNITS:
        way_out = (
            f"write {number}{unit[0].upper()}iB or {number}{unit[0].upper()}B"
            if unit in "kmgtp"
            else "write it like 8GiB or 500MB"
        )
        raise Refused(f"{text[:40]!r} has no unit of size that is understood; {way_out}")
    size_bytes = int(Decimal(number) * _UNITS[unit])
    if size_bytes > _LARGEST_BYTES:
        raise Refused(f"{text[:40]!r} is larger than any memory or disk")
    return size_bytes


def format_bytes(size_bytes: int) -> str:
    """A size for people: ``0B``, ``1023B``, ``1.5GiB``; one decimal, and none when it would be zero.

    ``parse_bytes`` reads it back to within 5 % (exactly, for whole multiples of a unit).
    """
    if size_bytes < 0:
        return f"-{format_bytes(-size_bytes)}"
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
    step = 0
    # 1023.95 would be shown as 1024.0 of the smaller unit, so the larger one begins there
    while step < len(units) - 1 and size_bytes / 1024**step >= (1024 if step == 0 else 1023.95):
        step += 1
    shown = f"{size_bytes / 1024**step:.1f}" if step else str(size_bytes)
    return f"{shown.removesuffix('.0')}{units[step]}"


def decimal_bytes(size_bytes: float) -> str:
    """A size as pages and reports show it: ``1.23 GB``, three digits, in powers of 1,000 as disks and clouds count."""
    units = ("B", "kB", "MB", "GB", "TB", "PB")
    size, step = float(size_bytes), 0
    while abs(size) >= 999.5 and step < len(units) - 1:
        size, step = size / 1000, step + 1
    return f"{size:,.0f} {units[step]}" if step == 0 or abs(size) >= 99.95 else f"{size:.3g} {units[step]}"
