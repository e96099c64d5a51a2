"""Recording formats: each one file behind ``RecordingFormat``, found through entry points."""

from __future__ import annotations

from tasks.formats.registry import load

__all__ = ["load"]
