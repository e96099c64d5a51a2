"""Imported once by the fork server, so that a child starts with every heavy library at hand.

Nothing here may start a thread: a fork of a threaded process can inherit a lock that nobody will ever release. pyarrow's
allocator starts one unless ``JE_ARROW_MALLOC_CONF=background_thread:false`` is set before the import, and BLAS starts one per
core unless told not to; ``infra.cluster.child_environment`` sets both.
"""

from __future__ import annotations

import biosigio
import mne
import numpy
import pandas
import pyarrow
import pyedflib
import scipy.signal
import zarr

import tasks.convert.recording

__all__ = ["PRELOADED"]

PRELOADED = (biosigio, mne, numpy, pandas, pyarrow, pyedflib, scipy.signal, zarr, tasks.convert.recording)
"""What is now in memory, once, shared by every child."""
