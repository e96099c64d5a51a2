"""Imported once by the fork server, so that a child starts with every heavy library at hand.

The readers are named one by one because their packages import them only when they are used: 77 modules, 0.1 s and 1 MB in every child.

Nothing here may start a thread: a fork of a threaded process can inherit a lock that nobody will ever release. pyarrow's
allocator starts one unless ``JE_ARROW_MALLOC_CONF=background_thread:false`` is set before the import, and BLAS starts one per
core unless told not to; ``infra.cluster.child_environment`` sets both.
"""

from __future__ import annotations

import biosigio
import biosigio.exporters.zarr_stream
import biosigio.importers.brainvision
import biosigio.importers.edf
import biosigio.importers.eeglab
import biosigio.importers.meg
import mne
import mne.io.brainvision
import mne.io.ctf
import mne.io.fiff
import numpy
import pandas
import pyarrow
import pyedflib
import scipy.signal
import zarr

import tasks.convert.recording
from tasks.convert.nodes import known_kinds

__all__ = ["PRELOADED"]

PRELOADED = (biosigio, mne, numpy, pandas, pyarrow, pyedflib, scipy.signal, zarr, tasks.convert.recording)
"""What is now in memory, once, shared by every child."""

known_kinds()
