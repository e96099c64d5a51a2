"""A picture of a recording, drawn from its view levels."""

from __future__ import annotations

import dataclasses
import io
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from contract.errors import Refused
from contract.layout import VIEW_DOWNSAMPLE
from contract.recipe_making import group_of
from tasks.read.window import read_window

if TYPE_CHECKING:
    from contract.reading import ReadEntry, ReadGroup
    from contract.window import WindowAsked
    from tasks.read.place import Place
    from tasks.read.window import Window

__all__ = ["MOST_CHANNELS", "MOST_WIDTH", "Overview", "level_for", "render_overview"]

MOST_WIDTH = 4000
MOST_CHANNELS = 64
_MOST_SAMPLES = 20_000
_DPI = 100
_ROW_PX, _FRAME_PX = 24, 70
_one_at_a_time = Lock()  # fonts and caches of matplotlib are shared by all threads


@dataclasses.dataclass(frozen=True, slots=True)
class Overview:
    """A picture and what is on it."""

    png: bytes
    level: int
    labels: tuple[str, ...]
    start_s: float
    stop_s: float
    n_channels: int


def level_for(group: ReadGroup, *, seconds: float, width: int) -> int:
    """The coarsest level that still has a column for each pixel of ``width``; the signal where even that has fewer.

    Raises
    ------
    Refused
        The index does not name the geometry of the group.
    """
    if group.rate is None or group.n_view_levels is None:
        raise Refused(f"group: the index names no view levels of {group.name}; read its signal.")
    wanted = [
        level for level in range(1, group.n_view_levels + 1) if seconds * group.rate / VIEW_DOWNSAMPLE**level >= width
    ]
    return max(wanted, default=0)


def render_overview(place: Place, dataset_id: str, entry: ReadEntry, asked: WindowAsked, *, width: int) -> Overview:
    """A PNG of ``width`` pixels, a row for each channel, at most 64 of them: the first, unless others are named.

    Raises
    ------
    Refused
        The window does not lie in the recording, or ``width`` is none.
    """
    if not 100 <= width <= MOST_WIDTH:
        raise Refused(f"width: it must be 100 to {MOST_WIDTH} pixels.")
    group = group_of(entry, asked.group)
    whole_s = (group.n_samples or 0) / (group.rate or 1.0)
    stop_s = whole_s if asked.stop_s is None else min(asked.stop_s, whole_s)
    level = level_for(group, seconds=stop_s - asked.start_s, width=width)
    if level == 0 and (stop_s - asked.start_s) * (group.rate or 0) > _MOST_SAMPLES:
        raise Refused(
            f"stop: the recording has no view levels for so long a window; ask for {_MOST_SAMPLES} samples at most."
        )
    n_channels = group.n_channels or 0
    if not asked.channels and n_channels > MOST_CHANNELS:
        asked = dataclasses.replace(asked, channels=(f"0:{MOST_CHANNELS}",))
    if len(asked.channels) > MOST_CHANNELS:
        raise Refused(f"channels: at most {MOST_CHANNELS} fit on a picture.")
    window = read_window(place, dataset_id, entry, dataclasses.replace(asked, group=group.name, level=level))
    if len(window.selection.chosen) > MOST_CHANNELS:
        raise Refused(f"channels: at most {MOST_CHANNELS} fit on a picture.")
    start, stop = window.selection.seconds
    labels = tuple(channel.label for channel in window.selection.chosen)
    with _one_at_a_time:
        png = _draw(window, entry.path, width)
    return Overview(png, level, labels, start, stop, n_channels)


def _draw(window: Window, title: str, width: int) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    least, greatest = window.values if window.selection.level else (window.values, window.values)
    chosen = window.selection.chosen
    start_s, stop_s = window.selection.seconds
    times = np.linspace(start_s, stop_s, least.shape[-1], endpoint=False)
    # no global figure: pictures are drawn on several threads
    figure = Figure(figsize=(width / _DPI, (_FRAME_PX + _ROW_PX * len(chosen)) / _DPI), dpi=_DPI, layout="tight")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for row, (low, high) in enumerate(zip(least, greatest, strict=True)):
        middle = (float(np.median(low)) + float(np.median(high))) / 2
        spread = float(np.quantile(high, 0.98) - np.quantile(low, 0.02)) or 1.0
        bottom, top = (np.clip((part - middle) / spread, -0.6, 0.6) - row for part in (low, high))
        if window.selection.level:
            axes.fill_between(times, bottom, top, linewidth=0.3, color=f"C{row % 10}", edgecolor=f"C{row % 10}")
        else:
            axes.plot(times, bottom, linewidth=0.6, color=f"C{row % 10}")
    axes.set_yticks(
        [-row for row in range(len(chosen))], [_plain(f"{one.label} ({one.unit})") for one in chosen], fontsize=7
    )
    axes.set_ylim(-len(chosen) + 0.3, 0.7)
    axes.set_xlim(start_s, stop_s)
    axes.set_xlabel("seconds", fontsize=8)
    axes.set_title(_plain(title), fontsize=8, parse_math=False)
    axes.tick_params(axis="x", labelsize=7)
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()


def _plain(text: str) -> str:
    """Text of a dataset without what cannot be shown, cut where a label ends to be one."""
    return "".join(one if one.isprintable() else "?" for one in text[:80])
