"""All rows of the corpus."""

from __future__ import annotations

import corpus_files
import corpus_names
import corpus_privacy
import corpus_sidecars
from corpus_row import Row

ROWS: tuple[Row, ...] = (*corpus_files.ROWS, *corpus_sidecars.ROWS, *corpus_names.ROWS, *corpus_privacy.ROWS)
