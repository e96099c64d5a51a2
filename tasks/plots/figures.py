"""Plots of memory as files: measured against projected, and what each worker promised and used over a run."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MultipleLocator, NullLocator

from infra.sizes import format_bytes
from tasks.plots.memory import COLOURS, MARKERS, ranks, steps, time_unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes

    from db.measurements import MeasuredAttempt

__all__ = ["scatter_figure", "timeline_figure"]

_GREY = "#666666"
_MAX_WORKERS = 16


def _style(formats: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of each format, in the order of their names."""
    return {name: (COLOURS[at], MARKERS[at]) for name, at in ranks(formats).items()}


def _bytes_axis(axis: Axes, which: str) -> None:
    """Ticks at powers of two, said in MiB and GiB."""
    ticks = axis.xaxis if which == "x" else axis.yaxis
    ticks.set_major_locator(LogLocator(base=2, numticks=12))
    ticks.set_minor_locator(NullLocator())
    ticks.set_major_formatter(FuncFormatter(lambda value, _at: format_bytes(round(value))))


def scatter_figure(attempts: Sequence[MeasuredAttempt], title: str) -> Figure:
    """Measured over projected memory, a point for each conversion: filled when it was streamed, open when held in memory.

    Points above the line needed more than was projected; a cross is an attempt that ran out of memory. Other attempts were not measured to
    their end: they are left out, as they are of the table.
    """
    attempts = [one for one in attempts if one.outcome == "done" or one.reason == "memory_budget"]
    figure = Figure(figsize=(7.4, 7.4), layout="constrained", dpi=120)
    axes = figure.add_subplot()
    style = _style(one.format for one in attempts)
    kinds: dict[tuple[str, str], list[MeasuredAttempt]] = defaultdict(list)
    for one in attempts:
        if one.outcome == "done":
            kinds[one.format, one.route].append(one)
    for (name, route), of_kind in sorted(kinds.items()):
        colour, marker = style[name]
        axes.scatter(
            [one.projected_bytes for one in of_kind],
            [one.measured_bytes or 0 for one in of_kind],
            s=34,
            marker=marker,
            facecolors=colour if route == "streamed" else "none",
            edgecolors=colour,
            linewidths=1.2,
            alpha=0.75,
            label=f"{name}, {route.replace('_', ' ')} (n = {len(of_kind):,})",
        )
    short = [one for one in attempts if one.reason == "memory_budget"]
    if short:
        axes.scatter(
            [one.projected_bytes for one in short],
            [one.measured_bytes or 0 for one in short],
            s=110,
            marker="x",
            color="#B00020",
            label=f"ran out of memory (n = {len(short):,})",
        )
    _square_log_axes(axes, attempts)
    axes.set_xlabel("projected memory (bytes)")
    axes.set_ylabel("measured peak above the child's birth (bytes)")
    axes.set_title(f"Memory of conversions: {title}")
    axes.grid(visible=True, color="#E0E0E0", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(loc="upper left", fontsize="small", framealpha=0.9)
    return figure


def _square_log_axes(axes: Axes, attempts: Sequence[MeasuredAttempt]) -> None:
    """Make both axes one logarithmic range that holds every point, and draw what was measured = projected."""
    every = [value for one in attempts for value in (one.projected_bytes, one.measured_bytes or one.projected_bytes)]
    low, high = min(every) / 1.6, max(every) * 1.6
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_aspect("equal")
    axes.plot([low, high], [low, high], color=_GREY, linewidth=1.2, label="measured = projected")
    axes.plot([low, high], [low / 2, high / 2], color=_GREY, linewidth=0.8, linestyle=":", label="half of it")
    for which in "xy":
        _bytes_axis(axes, which)


def timeline_figure(attempts: Sequence[MeasuredAttempt], title: str) -> Figure:
    """For each worker of a run, the memory permitted to what it converted and the sum of the peaks measured, over time.

    The measured line is the sum of the peaks of what was converting, as if all had peaked together: it is never
    below what was really in use.
    """
    by_worker: dict[str, list[MeasuredAttempt]] = defaultdict(list)
    for one in attempts:
        by_worker[one.worker].append(one)
    began = min(one.started_at for one in attempts)
    workers = sorted(by_worker)[:_MAX_WORKERS]
    scale, unit = time_unit((max(one.held_until for one in attempts) - began).total_seconds())
    figure = Figure(figsize=(9, 1.4 + 2.4 * len(workers)), layout="constrained", dpi=120)
    all_axes = figure.subplots(len(workers), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, worker in zip(all_axes, workers, strict=True):
        own = by_worker[worker]
        for what, colour, label in (
            ("permitted_bytes", "#56B4E9", "permitted"),
            ("measured_bytes", "#D55E00", "measured"),
        ):
            moments, values = steps(own, what, began)
            axes.fill_between(
                [moment / scale for moment in moments], values, step="post", color=colour, alpha=0.35, linewidth=0
            )
            axes.step(
                [moment / scale for moment in moments], values, where="post", color=colour, linewidth=1.2, label=label
            )
        axes.set_title(f"{worker} ({len(own):,} attempts)", fontsize="small", loc="left")
        axes.grid(visible=True, color="#E0E0E0", linewidth=0.6)
        axes.set_axisbelow(True)
    _linear_bytes_axis(all_axes[0])
    all_axes[0].set_xlim(left=0)
    all_axes[0].legend(loc="upper right", fontsize="small", framealpha=0.9)
    all_axes[-1].set_xlabel(f"time since the first recording started ({unit})")
    figure.supylabel("memory (bytes)", fontsize="medium")
    more = len(by_worker) - len(workers)
    figure.suptitle(f"Memory of workers: {title}" + (f" ({more} more workers not shown)" if more else ""))
    return figure


def _linear_bytes_axis(axes: Axes) -> None:
    """Start at nothing, end above the largest value, with some five ticks at round binary sizes."""
    highest = max(axes.dataLim.y1, *(shared.dataLim.y1 for shared in axes.get_shared_y_axes().get_siblings(axes)), 1.0)
    axes.set_ylim(0, 1.05 * highest)
    axes.yaxis.set_major_locator(MultipleLocator(2.0 ** math.ceil(math.log2(highest / 6))))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _at: format_bytes(round(value))))
