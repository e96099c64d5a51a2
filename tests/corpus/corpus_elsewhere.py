"""Files that are no recording of their kind, and those whose content is elsewhere."""

from __future__ import annotations

import numpy as np
from corpus_putting import KEY, putting, row
from corpus_row import Failed, Place, edf, plain

_RANDOM = np.random.default_rng(9).integers(0, 256, 4096, dtype=np.uint8).tobytes()
GARBAGE = [
    row("garbage", "garbageedf", "_eeg.edf", putting(_RANDOM), Failed(code="corrupt_or_truncated")),
    row("garbage", "garbageset", "_eeg.set", putting(_RANDOM, "_eeg.set"), Failed(code="corrupt_or_truncated")),
    row("garbage", "garbagefif", "_meg.fif", putting(_RANDOM, "_meg.fif"), Failed(code="corrupt_or_truncated")),
    row("garbage", "garbagevhdr", "_eeg.vhdr", putting(_RANDOM, "_eeg.vhdr"), Failed(code="corrupt_or_truncated")),
    row("garbage", "garbagecon", "_meg.con", putting(_RANDOM, "_meg.con"), Failed(code="corrupt_or_truncated")),
    row("garbage", "garbagebdf", "_eeg.bdf", putting(_RANDOM, "_eeg.bdf"), Failed(code="corrupt_or_truncated")),
    row("nothing", "zeroedf", "_eeg.edf", putting(b""), Failed(code="corrupt_or_truncated")),
    row("nothing", "zeroset", "_eeg.set", putting(b"", "_eeg.set"), Failed(code="corrupt_or_truncated")),
    row("nothing", "zerofif", "_meg.fif", putting(b"", "_meg.fif"), Failed(code="corrupt_or_truncated")),
    row("nothing", "zerovhdr", "_eeg.vhdr", putting(b"", "_eeg.vhdr"), Failed(code="corrupt_or_truncated")),
    row(
        "another format's name", "edfasbdf", "_eeg.bdf", putting(edf(), "_eeg.bdf"), Failed(code="corrupt_or_truncated")
    ),
    row(
        "another format's name", "edfasset", "_eeg.set", putting(edf(), "_eeg.set"), Failed(code="corrupt_or_truncated")
    ),
    row(
        "another format's name", "edfasfif", "_eeg.fif", putting(edf(), "_eeg.fif"), Failed(code="corrupt_or_truncated")
    ),
    row("endings in capitals", "capitals", "_eeg.EDF", putting(edf(), "_eeg.EDF"), plain()),
]


def _link(place: Place) -> None:
    place.at("_eeg.edf").symlink_to(f"../../.git/annex/objects/aa/bb/{KEY}/{KEY}")


def _plain_link(place: Place) -> None:
    place.put("kept.dat", edf())
    place.at("_eeg.edf").symlink_to("kept.dat")


def _outside(place: Place) -> None:
    outside = place.root.parent / "elsewhere.edf"
    outside.write_bytes(edf())
    place.at("_eeg.edf").symlink_to(outside)


POINTERS = [
    row(
        "pointers",
        "pointedf",
        "_eeg.edf",
        putting(f"/annex/objects/{KEY}\n".encode()),
        Failed(code="annex_object_missing"),
    ),
    row("pointers", "pointlink", "_eeg.edf", _link, Failed(code="annex_object_missing")),
    row(
        "pointers",
        "pointworm",
        "_eeg.edf",
        putting(b"/annex/objects/WORM-m1400000000--run-s5.edf\n"),
        Failed(code="annex_object_missing"),
    ),
    row(
        "pointers",
        "pointlfs",
        "_eeg.edf",
        putting(b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 100000\n"),
        Failed(code="annex_object_missing"),
    ),
    row("links", "linkinside", "_eeg.edf", _plain_link, plain()),
    row(
        "links", "linkoutside", "_eeg.edf", _outside, Failed(code="file_read_error", detail="leads out of the dataset")
    ),
]
