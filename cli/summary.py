"""What a run says at the end: the coverage that must balance, what went wrong in the user's words, where to look."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, TypeVar

from cli.wording import jsonable
from contract.codes import FAILURE_SENTENCES, PENDING_SENTENCES, FailureCode, PendingReason
from infra.wording import bounded, duration, plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from flows.request import RunSummary

__all__ = ["DEFAULT_TARGET", "coverage_line", "summary_lines", "summary_object"]

DEFAULT_TARGET = "./served"
_PATHS_SHOWN = 10
_Code = TypeVar("_Code", FailureCode, PendingReason)


def coverage_line(discovered: int, stores: int, failures: int, pending: int) -> str:
    """``12 discovered = 8 stores + 3 failures + 1 pending``; shows an imbalance as what it is."""
    sign = "=" if discovered == stores + failures + pending else "≠"
    parts = (plural(stores, "store"), plural(failures, "failure"), f"{pending:,} pending")
    return f"{discovered:,} discovered {sign} {' + '.join(parts)}"


def summary_object(summary: RunSummary, code: int) -> dict[str, object]:
    """The summary as the last JSON line."""
    return {"event": "summary", **jsonable(summary), "exit_code": code}


def summary_lines(
    summary: RunSummary, *, target: str, program: str = "zarrmill", shown: Collection[str] = ()
) -> Iterator[str]:
    """The summary for people, without the notes that were ``shown`` while the run went on.

    ``target`` and ``program`` as they typed them, so that the commands below can be copied.
    """
    run = f", run {summary.run_number}" if summary.run_number is not None else ""
    yield f"{summary.dataset_id} at {summary.target}{run}, {duration(summary.seconds)}"
    yield coverage_line(summary.discovered, summary.stores, summary.failures, summary.pending)
    yield _what_happened(summary)
    yield from (note for note in summary.notes if note not in shown)
    yield from _grouped("failures", summary.failed_by_code, FAILURE_SENTENCES)
    yield from _grouped("pending", summary.pending_by_reason, PENDING_SENTENCES)
    yield ""
    yield from _where_to_look(summary, target, program)


def _what_happened(summary: RunSummary) -> str:
    if summary.stopped is not None:
        rest = "the rest waits for the next run" if summary.published else "nothing was published"
        return f"Stopped by {summary.stopped}: {summary.converted:,} converted, {rest}."
    if not summary.published:
        return "Nothing could be published."
    if summary.unserved is not None:
        return f"{summary.converted:,} converted: {summary.unserved}."
    if not summary.changed:
        return "Nothing has changed: nothing was converted and nothing was written."
    return f"{summary.converted:,} converted now, {summary.carried:,} carried forward."


def _grouped(title: str, groups: Mapping[_Code, Sequence[str]], sentences: Mapping[_Code, str]) -> Iterator[str]:
    if not any(groups.values()):
        return
    yield ""
    yield title
    for code, paths in sorted(groups.items()):
        yield f"  {code} ({len(paths):,}): {sentences[code]}"
        yield from (f"    {line}" for line in bounded(paths, _PATHS_SHOWN))


def _where_to_look(summary: RunSummary, target: str, program: str) -> Iterator[str]:
    there = "" if target == DEFAULT_TARGET else f" --to {shlex.quote(target)}"
    yield "look further"
    for name, address in summary.documents.items():
        yield f"  {name:<9} {address}"
    yield f"  {program} status {summary.dataset_id}{there}"
    groups = [*summary.failed_by_code.values(), *summary.pending_by_reason.values()]
    example = next((paths[0] for paths in groups if paths), None)
    if example is not None:
        yield f"  {program} why {summary.dataset_id} {shlex.quote(example)}{there}"
    yield f"  {program} serve{there}"
