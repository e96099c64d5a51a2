"""How rows put their files, and spoil them."""

from __future__ import annotations

from collections.abc import Callable

from corpus_row import Expected, Place, Row, signal

KEY = f"SHA256E-s99000--{'cd' * 32}"


def row(kind: str, name: str, ending: str, write: Callable[[Place], object], expect: Expected) -> Row:
    return Row(kind=kind, name=name, ending=ending, write=write, expect=expect)


def putting(content: bytes, ending: str = "_eeg.edf", **beside: str) -> Callable[[Place], object]:
    def write(place: Place) -> None:
        place.put(ending, content)
        for kind, text in beside.items():
            place.put(f"_{kind}.tsv", text)

    return write


# -- BrainVision --------------------------------------------------------------------------------------------------------

TWO_SIGNALS = signal(("E1", "E2"))


def renaming(old: str, new: str) -> Callable[[Place], object]:
    return lambda place: place.at(old).rename(place.at(new))


def without(name: str) -> Callable[[Place], object]:
    return lambda place: place.at(name).unlink()


def shortening(name: str, by: int) -> Callable[[Place], object]:
    def cut(place: Place) -> None:
        path = place.at(name)
        path.write_bytes(path.read_bytes()[:-by])

    return cut
