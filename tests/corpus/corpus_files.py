"""Recordings that are cut, mislabelled, renamed or stranger than their format allows."""

from __future__ import annotations

from corpus_brainvision import BRAINVISION
from corpus_edf import EDF
from corpus_eeglab import EEGLAB
from corpus_elsewhere import GARBAGE, POINTERS
from corpus_meg import OTHERS

ROWS = [*EDF, *GARBAGE, *POINTERS, *BRAINVISION, *EEGLAB, *OTHERS]
