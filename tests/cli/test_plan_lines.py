"""How a plan is shown."""

from __future__ import annotations

import json

from cli.plan import preview_lines, preview_object
from cli.wording import json_line
from flows.request import Preview, PreviewRow

MIB = 2**20


def preview(*rows: PreviewRow, **more: object) -> Preview:
    values: dict[str, object] = {
        "dataset_id": "xx000001",
        "is_new": False,
        "source": "/data/ds",
        "target": "/served",
        "source_commit": "a" * 40,
        "rows": rows,
    }
    return Preview(**(values | more))  # type: ignore[arg-type]  # fields by name


ROWS = (
    PreviewRow(
        path="a.edf",
        action="convert",
        why="new",
        size_bytes=10 * MIB,
        projected_bytes=300 * MIB,
        scratch_bytes=40 * MIB,
        floor_bytes=240 * MIB,
        kind="edf, streamed",
        basis="learnt",
        learnt_factor=1.25,
        learnt_attempts=57,
    ),
    PreviewRow(
        path="b.edf",
        action="convert",
        why="source",
        changed=("b_channels.tsv changed",),
        size_bytes=30 * MIB,
        projected_bytes=500 * MIB,
        scratch_bytes=90 * MIB,
        kind="edf, in_memory",
        basis="size",
    ),
    PreviewRow(path="c.edf", action="carry"),
    PreviewRow(path="d.set", action="keep_failed", why="not_continuous"),
    PreviewRow(path="e.set", action="fail", why="store_path_collision"),
    PreviewRow(path="f.fif", action="wait", why="memory_budget"),
)


def test_a_plan_says_what_and_why_with_bytes_and_memory_each_and_in_total() -> None:
    lines = list(preview_lines(preview(*ROWS, dropped=("old.edf",), notes=("A note.",))))
    assert lines[0] == f"xx000001: /data/ds at {'a' * 40} → /served"
    assert lines[1] == "6 recordings discovered: 2 to convert, 1 carried forward, 1 waiting, 2 failed; 1 dropped"
    assert "A note." in lines
    assert "  a.edf  10MiB, projected 300MiB of memory  (new)" in lines
    assert "  b.edf  30MiB, projected 500MiB of memory  (source: b_channels.tsv changed)" in lines
    assert (
        "  e.set: Another file of this dataset claims the same copy, and only one of them can have it: the other one."
        in lines
    )
    assert any(line.startswith("  f.fif: There was not enough memory") for line in lines)
    assert "  old.edf" in lines
    assert lines[-3:-1] == [
        "Memory of 1 recording (edf, in_memory) rests on a guess from the size of the files, whose header could not be read.",
        "Memory of 1 recording (edf, streamed) rests on 1.25 times the formula, learnt from 57 attempts.",
    ]
    assert lines[-1] == (
        "In total 40MiB to read; memory 500MiB for the largest, 800MiB if all ran at once; scratch 90MiB for the largest."
    )


def test_a_plan_with_nothing_to_do_says_whether_documents_change() -> None:
    assert (
        list(preview_lines(preview(ROWS[2], documents_current=True)))[-1]
        == "Nothing to convert, and the documents are current."
    )
    assert list(preview_lines(preview(ROWS[2])))[-1] == "Nothing to convert, but the documents will be written."


def test_many_changed_files_and_many_recordings_are_bounded() -> None:
    changed = tuple(f"{i}.tsv changed" for i in range(9))
    many = [PreviewRow(path=f"{i:05}.edf", action="convert", why="source", changed=changed) for i in range(25_000)]
    lines = list(preview_lines(preview(*many)))
    assert len(lines) < 220
    assert "  00000.edf  0B  (source: 0.tsv changed, 1.tsv changed, 2.tsv changed and 6 more)" in lines


def test_a_plan_as_json_has_every_row_and_totals() -> None:
    value = json.loads(json_line(preview_object(preview(*ROWS))))
    assert [row["path"] for row in value["rows"]] == [row.path for row in ROWS]
    assert value["totals"] == {
        "actions": {"carry": 1, "convert": 2, "fail": 1, "keep_failed": 1, "wait": 1},
        "convert_bytes": 40 * MIB,
        "projected_bytes": 800 * MIB,
        "largest_projected_bytes": 500 * MIB,
        "scratch_bytes": 130 * MIB,
    }
