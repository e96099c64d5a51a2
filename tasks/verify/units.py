"""Physical units as recordings and channels.tsv files spell them: a quantity and a power of ten."""

from __future__ import annotations

__all__ = ["factor_between", "quantity"]

_PREFIXES = {"f": -15, "p": -12, "n": -9, "u": -6, "m": -3, "c": -2, "d": -1, "": 0, "k": 3, "M": 6, "G": 9}
_QUANTITIES = {
    "V": ("V", 0),
    "T": ("T", 0),
    "T/m": ("T/m", 0),
    "T/cm": ("T/m", 2),
    "A": ("A", 0),
    "S": ("S", 0),
    "Ohm": ("Ohm", 0),
    "ohm": ("Ohm", 0),
    "N": ("N", 0),
    "g": ("g", 0),
    "m": ("m", 0),
    "s": ("s", 0),
    "Hz": ("Hz", 0),
    "deg/s": ("deg/s", 0),
    "rad/s": ("rad/s", 0),
}
_SPELLINGS = str.maketrans({"\u00b5": "u", "\u03bc": "u", "\u03a9": "Ohm", "\u2126": "Ohm"})
_LONGEST_FIRST = sorted(_QUANTITIES, key=len, reverse=True)


def quantity(unit: str | None) -> tuple[str, int] | None:
    """``("V", -6)`` for ``uV`` in any of its spellings; None for no unit, or one that is not known. Case matters."""
    text = (unit or "").translate(_SPELLINGS).strip()
    for symbol in _LONGEST_FIRST:
        prefix = text.removesuffix(symbol)
        if prefix != text and prefix in _PREFIXES:
            name, exponent = _QUANTITIES[symbol]
            return name, _PREFIXES[prefix] + exponent
    return None


def factor_between(own: str | None, wanted: str | None) -> float | None:
    """What a number of the one unit is multiplied with to be of the other; None where no conversion is known."""
    source, target = quantity(own), quantity(wanted)
    if source is None or target is None or source[0] != target[0]:
        return None
    return float(10.0 ** (source[1] - target[1]))
