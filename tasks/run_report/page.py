"""A run's story as one HTML file: no script, no address that is fetched, figures inside it, secrets and local paths left out."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from contract.redact import PATH, redact
from contract.times import utc_stamp
from infra.sizes import decimal_bytes
from infra.wording import duration
from tasks.plots.svg import scatter_svg, timeline_svg
from tasks.run_report import words
from tasks.run_report.story import MOST_DRAWN

if TYPE_CHECKING:
    from datetime import datetime

    from tasks.run_report.story import Story

__all__ = ["report_page"]

_FOLDER: Final = Path(__file__).parent
_NOT_KNOWN: Final = "not known"


def report_page(story: Story, *, made_at: datetime) -> bytes:
    """The report of a run. Its size is bounded, whatever the run held: examples are ten of each kind, points at most 3,000."""
    page = _environment().get_template("report.html")
    head = story.head
    said = page.render(
        story=story,
        head=head,
        made_at=utc_stamp(made_at),
        ended=words.how_it_ended(head),
        state=words.STATE_WORDS.get(head.state, head.state),
        options=words.asked_options(head),
        source=_source(head.source),
        asked_by=redact(head.asked_by) or _NOT_KNOWN,
        differences=_differences(story),
        endings=_endings(story),
        scatter=Markup(scatter_svg(story.attempts)),  # noqa: S704 - names in it are escaped where it is drawn
        timeline=Markup(timeline_svg(story.attempts)),  # noqa: S704 - likewise
        left_out=max(story.attempt_count - MOST_DRAWN, 0),
        cost=_cost(story),
    )
    return said.encode()


def _source(address: str) -> str:
    """Where the dataset comes from; of a folder no more than that it is one."""
    said = redact(address) or _NOT_KNOWN
    return "a folder" if said == PATH else said


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "size": lambda value: _NOT_KNOWN if value is None else decimal_bytes(value),
        "duration": duration,
        "stamp": lambda moment: _NOT_KNOWN if moment is None else utc_stamp(moment),
        "number": lambda value: f"{value:,}",
        "redacted": lambda text: redact(text) or "",
        "sentence": words.sentence_for,
        "why": words.why_sentence,
        "change": lambda kind: words.CHANGE_WORDS.get(kind, kind),
    }
    return made


def _differences(story: Story) -> list[tuple[str, str, str]]:
    """What is otherwise than at the run before: (what, then, now)."""
    before, head = story.before, story.head
    if before is None:
        return []
    found = []
    kept = {name: name for name in ("zarrmill", "biosigio", "engine", "options")} | {
        "source_commit": "state of the source"
    }
    for name, called in kept.items():
        then, now = getattr(before, name), getattr(head, name)
        if then != now:
            found.append((called, str(then or _NOT_KNOWN), str(now or _NOT_KNOWN)))
    for name in ("discovered", "stores", "failures", "pending"):
        then, now = before.counts.get(name), None if story.numbers is None else getattr(story.numbers, name)
        if then != now and now is not None:
            found.append((name, f"{then:,}" if isinstance(then, int) else _NOT_KNOWN, f"{now:,}"))
    return found


def _endings(story: Story) -> list[dict[str, Any]]:
    """How attempts ended, those that were tried again in the same run together with the last ones."""
    found: dict[str, dict[str, Any]] = {}
    for one in story.endings:
        row = found.setdefault(
            words.ending_word(one),
            {
                "attempts": 0,
                "recordings": 0,
                "counted": 0,
                "seconds": 0.0,
                "sentence": words.sentence_for(one.code or one.reason or ""),
                "examples": [],
            },
        )
        row["attempts"] += one.attempts
        row["recordings"] += one.attempts if one.last else 0
        row["counted"] += one.counted
        row["seconds"] += one.seconds
        row["examples"] = sorted({*row["examples"], *one.examples}, key=lambda example: example[0])[:10]
    return [{"word": word, **row} for word, row in found.items()]


def _cost(story: Story) -> list[tuple[str, str]]:
    by_name = {stage.name: stage for stage in story.stages}
    rows = [
        ("wall time of all attempts", duration(story.wall_s)),
        ("of it on attempts that made nothing", duration(story.lost_s)),
    ]
    if "child" in by_name:
        rows.append(("in conversions, each a process of its own", duration(by_name["child"].seconds)))
    for name, said in (("fetch", "fetched from the source"), ("upload", "put at the target")):
        stage = by_name.get(name)
        rows.append(
            (said, _NOT_KNOWN if stage is None or stage.size_bytes is None else decimal_bytes(stage.size_bytes))
        )
    return rows
