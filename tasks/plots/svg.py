"""SVG inside a page: no font, script or address of its own; colours are the page's (classes ``c0`` to ``c8``, ``ink``, ``grid``)."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Final

from infra.sizes import decimal_bytes
from tasks.plots.memory import byte_ticks, lanes, plotted, ranks, time_unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from db.measurements import MeasuredAttempt

__all__ = ["scatter_svg", "timeline_svg"]

_SIDE: Final = 520.0
_LEFT, _BOTTOM, _TOP, _RIGHT = 78.0, 46.0, 12.0, 12.0
_MOST_POINTS: Final = 3000
_MOST_LANES: Final = 16
_COLUMNS: Final = 300
_LANE_HEIGHT, _LANES_WIDTH = 96.0, 860.0
_SHAPES: Final = (
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0Z",
    "M-3.6-3.6h7.2v7.2h-7.2Z",
    "M0-5L5,0L0,5L-5,0Z",
    "M0-4.8L4.6,3.8H-4.6Z",
    "M0,4.8L4.6-3.8H-4.6Z",
    "M-1.6-4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3Z",
    "M-3.4-4.6L0-1.2L3.4-4.6L4.6-3.4L1.2,0L4.6,3.4L3.4,4.6L0,1.2L-3.4,4.6L-4.6,3.4L-1.2,0L-4.6-3.4Z",
    "M0-5L1.5-1.6L5-1.5L2.2,0.8L3.2,4.4L0,2.3L-3.2,4.4L-2.2,0.8L-5-1.5L-1.5-1.6Z",
    "M-2.4-4.2h4.8L4.8,0L2.4,4.2h-4.8L-4.8,0Z",
)
"""A marker for each format, in the order of ``tasks.plots.memory.MARKERS``."""
_CROSS: Final = "M-5-5L5,5M-5,5L5-5"


def scatter_svg(attempts: Sequence[MeasuredAttempt]) -> str:
    """Measured over projected memory with the line y = x, as ``tasks.plots.figures.scatter_figure`` has it; empty with nothing to draw.

    Points that would cover each other are drawn once, and at most 3,000, those that needed more than projected first.
    """
    points = plotted(attempts)
    if not points:
        return ""
    sizes = [size for one in points for size in (one.projected_bytes, one.measured_bytes or 1)]
    low, high = math.log2(min(sizes)) - 0.5, math.log2(max(sizes)) + 0.5
    scale = _SIDE / (high - low)

    def place(size_bytes: float) -> float:
        return (math.log2(size_bytes) - low) * scale

    rank = ranks(one.format for one in points)
    width, height = _LEFT + _SIDE + _RIGHT, _TOP + _SIDE + _BOTTOM
    parts = [
        _opening(width, height, "Measured memory of each conversion over the projected memory, with the line y = x")
    ]
    parts.append("<defs>" + "".join(f'<path id="m{at}" d="{_SHAPES[at]}"/>' for at in sorted(set(rank.values()))))
    parts.append(f'<path id="mx" d="{_CROSS}"/></defs><g transform="translate({_LEFT:g} {_TOP:g})">')
    for tick in _log_ticks(low, high):
        at, said = place(tick), decimal_bytes(round(tick))
        parts.append(f'<path class="grid" d="M{at:.1f} 0V{_SIDE:g}M0 {_SIDE - at:.1f}H{_SIDE:g}"/>')
        parts.append(f'<text x="{at:.1f}" y="{_SIDE + 16:g}" text-anchor="middle">{said}</text>')
        parts.append(f'<text x="-6" y="{_SIDE - at + 4:.1f}" text-anchor="end">{said}</text>')
    parts.append(
        f'<path class="equal" d="M0 {_SIDE:g}L{_SIDE:g} 0"/><path class="half" d="M{scale:.1f} {_SIDE:g}L{_SIDE:g} {scale:.1f}"/>'
    )
    for one in _few(points, place):
        x, y = place(one.projected_bytes), _SIDE - place(one.measured_bytes or 1)
        short = one.reason == "memory_budget"
        kind = "x" if short else str(rank[one.format])
        style = "short" if short else f"c{rank[one.format]}{' full' if one.route == 'streamed' else ''}"
        said = f"{one.path}: {decimal_bytes(one.measured_bytes or 0)} of {decimal_bytes(one.projected_bytes)}"
        parts.append(
            f'<use href="#m{kind}" x="{x:.1f}" y="{y:.1f}" class="pt {style}"><title>{escape(said)}</title></use>'
        )
    parts.append(f'</g><text x="{_LEFT + _SIDE / 2:g}" y="{height - 6:g}" text-anchor="middle">projected memory</text>')
    parts.append(
        f'<text transform="translate(14 {_TOP + _SIDE / 2:g}) rotate(-90)" text-anchor="middle">measured peak</text></svg>'
    )
    return "".join(parts) + _legend(points, rank)


def _opening(width: float, height: float, title: str) -> str:
    square = " square" if width < 1.2 * height else ""
    return f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title, quote=True)}" class="plot{square}">'


def _log_ticks(low: float, high: float) -> Iterator[float]:
    """Round sizes between two powers of 2, some eight at most."""
    many = (1, 2, 5) if high - low < 9 else (1,)
    powers = range(math.floor(low * math.log10(2)), math.ceil(high * math.log10(2)) + 1)
    found = [each * 10.0**power for power in powers for each in many if low <= math.log2(each * 10.0**power) <= high]
    yield from found[:: max(1, math.ceil(len(found) / 9))]


def _few(points: Sequence[MeasuredAttempt], place: object) -> list[MeasuredAttempt]:
    """One point for each two pixels and kind, the worst of all first, no more than fit a page."""
    assert callable(place)
    seen: dict[tuple[int, int, str, str], MeasuredAttempt] = {}
    for one in sorted(points, key=lambda one: (one.measured_bytes or 0) / one.projected_bytes, reverse=True):
        cell = (int(place(one.projected_bytes) / 2), int(place(one.measured_bytes or 1) / 2), one.format, one.route)
        seen.setdefault(cell, one)
    kept = list(seen.values())
    if len(kept) <= _MOST_POINTS:
        return kept
    worst, rest = kept[: _MOST_POINTS // 3], kept[_MOST_POINTS // 3 :]
    return worst + rest[:: math.ceil(len(rest) / (_MOST_POINTS - len(worst)))]


def _legend(points: Sequence[MeasuredAttempt], rank: dict[str, int]) -> str:
    counts: dict[tuple[str, str], int] = {}
    for one in points:
        kind = ("", "") if one.reason == "memory_budget" else (one.format, one.route)
        counts[kind] = counts.get(kind, 0) + 1
    rows = []
    for (name, route), count in sorted(counts.items()):
        shape, style = (_CROSS, "short") if not name else (_SHAPES[rank[name]], f"c{rank[name]}")
        full = " full" if route == "streamed" else ""
        said = "ran out of memory" if not name else f"{name}, {route.replace('_', ' ')}"
        rows.append(
            f'<li><svg viewBox="-7 -7 14 14" class="key" aria-hidden="true"><path d="{shape}" class="pt {style}{full}"/></svg> '
            f"{escape(said)} ({count:,})</li>"
        )
    return f'<ul class="legend">{"".join(rows)}<li>line: measured = projected; dotted: half of it</li></ul>'


def timeline_svg(attempts: Sequence[MeasuredAttempt]) -> str:
    """For each of at most 16 workers what was permitted and measured over the run; empty with nothing to draw."""
    found, lasts, more = lanes(attempts, columns=_COLUMNS, limit=_MOST_LANES)
    if not found or lasts <= 0:
        return ""
    highest = 1.05 * max(lane.highest_bytes for lane in found)
    inner = _LANES_WIDTH - _LEFT - _RIGHT
    height = len(found) * (_LANE_HEIGHT + 26) + 40
    unit, unit_name = time_unit(lasts)
    parts = [_opening(_LANES_WIDTH, height, "Memory permitted and measured on each worker over the run")]
    for at, lane in enumerate(found):
        top = at * (_LANE_HEIGHT + 26) + 18
        parts.append(
            f'<g transform="translate({_LEFT:g} {top:g})"><text x="0" y="-5">{escape(lane.worker)} ({lane.attempts:,} attempts)</text>'
        )
        for tick in byte_ticks(highest, most=3):
            y = _LANE_HEIGHT * (1 - tick / highest)
            parts.append(
                f'<path class="grid" d="M0 {y:.1f}H{inner:g}"/><text x="-6" y="{y + 4:.1f}" text-anchor="end">{decimal_bytes(round(tick))}</text>'
            )
        for name, (moments, values) in (("permitted", lane.permitted), ("measured", lane.measured)):
            drawn = _area(moments, values, x=inner / lasts, y=_LANE_HEIGHT / highest)
            parts.append(f'<path class="{name}" d="{drawn}"/>')
        parts.append("</g>")
    for tick in _even_ticks(lasts / unit):
        x = _LEFT + tick * unit * inner / lasts
        parts.append(f'<text x="{x:.1f}" y="{height - 22:g}" text-anchor="middle">{tick:g}</text>')
    parts.append(
        f'<text x="{_LEFT + inner / 2:g}" y="{height - 5:g}" text-anchor="middle">time since the first recording started ({unit_name})</text></svg>'
    )
    legend = '<ul class="legend"><li><span class="swatch permitted"></span> permitted</li><li><span class="swatch measured"></span> measured, as if all had peaked at once</li>'
    return "".join(parts) + legend + (f"<li>{more:,} more workers are not drawn</li>" if more else "") + "</ul>"


def _area(moments: Iterable[float], values: Iterable[int], *, x: float, y: float) -> str:
    """A filled path of steps, each value from its moment on."""
    drawn, last = [f"M0 {_LANE_HEIGHT:g}"], 0.0
    for moment, value in zip(moments, values, strict=True):
        drawn.append(f"H{moment * x:.1f}V{_LANE_HEIGHT - value * y:.1f}")
        last = moment
    return "".join(drawn) + f"H{last * x:.1f}V{_LANE_HEIGHT:g}Z"


def _even_ticks(highest: float) -> list[float]:
    step = 10.0 ** math.floor(math.log10(max(highest, 1e-6)))
    step = next(step * many for many in (0.2, 0.5, 1, 2, 5) if highest / (step * many) <= 8)
    return [at * step for at in range(math.floor(highest / step) + 1)]
