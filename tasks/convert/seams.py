"""The places inside biosigIO through which a recording passes on its way into a store; every private name that is used.

biosigIO's importers read a file whole, and copy it up to five times; its writer knows whole rates only, forgets what it
rounded, and holds a group's codes and envelopes in memory. While they run they look a few names up, which are given ours
here. The release of biosigIO is pinned; ``GroupSeams.check`` and ``tests/tasks/convert/test_bytes.py`` find a release that
goes another way.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.convert.codes import Codes, quantise
from tasks.convert.edf_samples import EdfChannel
from tasks.convert.nodes import AnotherRelease, Zarr
from tasks.convert.resampling import resample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from fractions import Fraction

    from numpy.typing import NDArray

    from tasks.convert.documents import Documents
    from tasks.convert.loss import ChannelLoss

__all__ = [
    "EdfSeen",
    "GroupSeams",
    "eeglab_reading",
    "glimpsed_recording",
    "opened_by_mne",
    "passing_through",
    "without_samples",
]

_CHECKED_SAMPLES = 16


@dataclass
class GroupSeams:
    """One group on its way through biosigIO's writer: what its channels are resampled by, and what became of them."""

    ratio: Fraction
    codes: Codes
    losses: list[ChannelLoss] = field(default_factory=list)
    resampled: int = 0
    zarr: Zarr = field(default_factory=Zarr)

    def resample(self, samples: NDArray[Any], *_rates: float, discrete: bool) -> NDArray[np.float64]:
        """One channel at the served rate; biosigIO's own rates are whole numbers and are not used."""
        self.resampled += 1
        return resample(np.asarray(samples, dtype=np.float64), self.ratio, discrete=discrete)

    def quantise(self, row: NDArray[np.float64], theirs: Any) -> Any:
        """One channel in codes."""
        found, loss = quantise(row, theirs)
        self.losses.append(loss)
        self.codes.put(found[0])
        return found

    def documents(self, n_channels: int) -> Documents:
        """The documents of the store that was written, after every channel came through.

        Raises
        ------
        AnotherRelease
            This release of biosigIO goes another way.
        """
        if self.resampled != n_channels or len(self.losses) != n_channels or len(self.zarr.stores) != 1:
            raise AnotherRelease(
                f"biosigIO resampled {self.resampled} and quantised {len(self.losses)} of {n_channels} channels here, "
                f"and wrote {len(self.zarr.stores)} stores"
            )
        return self.zarr.stores[0].documents


@contextmanager
def passing_through(seams: GroupSeams) -> Iterator[None]:
    """While this lasts, biosigIO's writer in this process takes samples through ``seams``; one group at a time.

    Blosc must be told to use no threads: it does by itself in a main thread, and packs a chunk to other bytes then.
    """
    import numcodecs.blosc  # type: ignore[import-untyped]  # it has no annotations
    from biosigio.exporters import zarr

    theirs = zarr._quantize_int16_channel
    with _rebound(
        (zarr, "_resample_channel", seams.resample),
        (zarr, "_quantize_int16_channel", lambda row: seams.quantise(row, theirs)),
        (zarr, "_build_minmax_pyramid", seams.codes.pyramid),
        (zarr, "np", _Instead(np, empty=seams.codes.empty)),
        (zarr, "require_zarr", lambda: seams.zarr),
        (numcodecs.blosc, "use_threads", False),
    ):
        yield


@dataclass
class EdfSeen:
    """What biosigIO's importer was told of an EDF or BDF file by its library; no channel when it took the tolerant reader."""

    channels: list[EdfChannel] = field(default_factory=list)
    n_samples: int = 0


@contextmanager
def without_samples() -> Iterator[EdfSeen]:
    """While this lasts, biosigIO's EDF importer in this process finds one sample a channel; labels, checks and all else are its own."""
    import pyedflib
    from biosigio.importers import edf

    seen = EdfSeen()

    class Glimpse(pyedflib.EdfReader):
        """The library's reader, which gives a channel's description instead of its samples."""

        _headers: list[dict[str, Any]] | None = None

        def getSignalHeaders(self) -> list[dict[str, Any]]:  # noqa: N802 - the library's name
            # the importer asks once for each channel, and each time all are made anew
            self._headers = self._headers or super().getSignalHeaders()
            return self._headers

        def readSignal(self, chn: int, start: int = 0, n: int | None = None, digital: bool = False) -> Any:  # noqa: ARG002, N802 - the signature of the library
            header = self.getSignalHeaders()[chn]
            total = int(self.samples_in_file(chn))
            seen.n_samples = max(seen.n_samples, total)
            seen.channels.append(
                EdfChannel(
                    physical_min=float(header["physical_min"]),
                    physical_max=float(header["physical_max"]),
                    digital_min=int(header["digital_min"]),
                    digital_max=int(header["digital_max"]),
                    first=super().readSignal(chn, 0, min(total, _CHECKED_SAMPLES)),
                )
            )
            return np.zeros(1)

    with _rebound((edf, "pyedflib", _Instead(pyedflib, EdfReader=Glimpse))):
        yield seen


@contextmanager
def eeglab_reading(*, loaded: Callable[..., Any], samples: Callable[..., NDArray[Any]]) -> Iterator[None]:
    """While this lasts, biosigIO's EEGLAB importer in this process reads a .set by ``loaded`` instead of ``loadmat``, a .fdt by ``samples`` instead of ``fromfile``."""
    from biosigio.importers import eeglab

    with _rebound((eeglab, "loadmat", loaded), (eeglab, "np", _Instead(np, fromfile=samples))):
        yield


def opened_by_mne(path: str) -> Any:
    """A recording that MNE reads, opened without its data by biosigIO's choice of reader, its recoveries and its errors.

    ``_raw`` is MNE's, ``extra_metadata`` what was recovered; ``close`` releases what it needs.
    """
    from biosigio.exporters.zarr_stream import _open_stream_source
    from biosigio.importers.meg import _patch_ctf_coil_aliases

    # Only the in-memory importer teaches MNE the other spellings of CTF's head coils (one dataset has 380 such files).
    _patch_ctf_coil_aliases()
    return _open_stream_source(path, None)


def glimpsed_recording(raw: Any) -> Any:
    """A biosigIO recording of an MNE one, with one sample a channel; names, types and units are its own."""
    from biosigio.importers._mne_common import raw_to_recording

    return raw_to_recording(_Instead(raw, get_data=lambda: np.zeros((len(raw.ch_names), 1))))


class _Instead:
    """Another object, some of whose names are these."""

    def __init__(self, other: Any, **names: Any) -> None:
        self.__dict__.update(names, _other=other)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._other, name)


@contextmanager
def _rebound(*names: tuple[Any, str, Any]) -> Iterator[None]:
    theirs = [(module, name, getattr(module, name)) for module, name, _ in names]
    try:
        for module, name, ours in names:
            setattr(module, name, ours)
        yield
    finally:
        for module, name, own in theirs:
            setattr(module, name, own)
