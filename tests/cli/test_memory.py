"""What ``zarrmill memory`` says and draws."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine
from state_bench import Bench, path_of, planned, store_row
from typer.testing import CliRunner

from cli.main import app
from cli.memory import Look, look, memory_lines
from contract.errors import Refused
from db import recordings
from db.measurements import KindMeasured, MeasuredAttempt
from db.recordings import Measured
from tasks.plots.figures import scatter_figure, timeline_figure

MIB = 2**20
START = datetime(2026, 3, 1, tzinfo=UTC)
KIND = KindMeasured(
    format="edf", route="in_memory", attempts=1234, median_ratio=0.614, p99_ratio=0.955, worst_ratio=1.021,
    worst_path=path_of("07"), worst_projected_bytes=100 * MIB, worst_measured_bytes=102 * MIB, formula_median_ratio=0.5,
)  # fmt: skip
ATTEMPT = MeasuredAttempt(
    dataset_id="xx000001", path=path_of("07"), run_number=3, worker="host/1/2", format="edf", route="streamed",
    outcome="done", reason=None, projected_bytes=100 * MIB, permitted_bytes=120 * MIB, measured_bytes=60 * MIB,
    started_at=START, held_until=START + timedelta(seconds=10),
)  # fmt: skip


def test_the_table_has_a_line_for_each_kind_with_its_worst_recording() -> None:
    found = Look(
        target="/served", dataset_id="xx000001", run_number=3, kinds=(KIND, replace(KIND, format="brainvision"))
    )
    lines = list(memory_lines(found))
    assert (
        lines[0] == "Measured memory as a part of what was projected, 2,468 conversions of xx000001, run 3, at /served"
    )
    assert lines[2].split() == ["format", "route", "n", "median", "p99", "worst", "worst", "recording"]
    assert lines[3] == f"edf          in memory  1,234    0.61  0.95   1.02  {path_of('07')} (102MiB of 100MiB)"
    assert lines[4].startswith("brainvision  in memory")


def test_nothing_measured_is_said_so() -> None:
    said = list(memory_lines(Look(target="/served", dataset_id=None, run_number=None, kinds=())))
    assert said == ["No conversion at /served was measured yet."]


def test_state_is_asked_for_one_dataset_one_run_or_all(engine: Engine) -> None:
    bench = Bench(engine)
    run = bench.start()
    bench.apply(run, planned("01"))
    attempt = bench.claim(run, "01")
    with bench.begin() as c:
        report = Measured(measured_bytes=5)
        recordings.done(c, attempt_id=attempt, run_number=run.number, store=store_row("01"), report=report)
        dataset_id = bench.dataset.dataset_id
        everything = look(c, target="/served", dataset_id=None, run=None)
        assert (everything.kinds[0].attempts, everything.run_number, everything.attempts) == (1, None, ())
        last = look(c, target="/served", dataset_id=dataset_id, run=None, last_run=True, attempts=True)
        assert (last.run_number, len(last.attempts)) == (1, 1)
        with pytest.raises(Refused, match="has no run 9"):
            look(c, target="/served", dataset_id=dataset_id, run=9)
        with pytest.raises(Refused, match="is not known"):
            look(c, target="/served", dataset_id="xx999999", run=None)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--run", "3"], "name its id"),
        (["--timeline", "-o", "a.png"], "name its id"),
        (["xx000001", "--timeline"], "name its file with -o"),
        (["-o", "plot.pdf"], "ends in .svg or .png"),
        (["nonsense"], "is no dataset's id"),
        (["xx000001"], "is not known"),
        (["-o", "plot.png"], "nothing to plot"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_way_out(home: Path, given: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["memory", *given])
    assert result.exit_code == 2, result.output
    assert said in result.output
    assert not Path("plot.png").exists()


def test_the_scatter_draws_every_point_the_line_of_equality_and_units(tmp_path: Path) -> None:
    attempts = [
        *(replace(ATTEMPT, projected_bytes=size * MIB, measured_bytes=size * MIB // 2) for size in (50, 100, 3000)),
        replace(ATTEMPT, format="fif", route="in_memory", measured_bytes=90 * MIB),
        replace(ATTEMPT, format="fif", outcome="pending", reason="memory_budget", measured_bytes=130 * MIB),
    ]
    figure = scatter_figure([*attempts, replace(ATTEMPT, outcome="failed", measured_bytes=MIB)], "xx000001")
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    drawn = {(float(x), float(y)) for points in axes.collections for x, y in points.get_offsets().data}
    assert drawn == {(one.projected_bytes, one.measured_bytes) for one in attempts}
    equality = next(line for line in axes.lines if line.get_label() == "measured = projected")
    assert list(equality.get_xdata()) == list(equality.get_ydata())
    low, high = axes.get_xlim()
    assert low < 25 * MIB
    assert high > 3000 * MIB
    assert "bytes" in axes.get_xlabel()
    assert "bytes" in axes.get_ylabel()
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert {"edf, streamed (n = 3)", "fif, in memory (n = 1)", "ran out of memory (n = 1)"} <= set(texts)
    colours = {tuple(points.get_edgecolor()[0][:3]) for points in axes.collections}
    assert len(colours) == 3, "each format and what ran out have a colour of their own"
    figure.savefig(tmp_path / "plot.svg")
    assert ET.parse(tmp_path / "plot.svg").getroot().tag.endswith("svg")


def test_the_timeline_sums_what_each_worker_had_promised_at_every_moment() -> None:
    second = replace(ATTEMPT, started_at=START + timedelta(seconds=4), held_until=START + timedelta(seconds=20))
    other = replace(ATTEMPT, worker="host/9/9", measured_bytes=None)
    figure = timeline_figure([ATTEMPT, second, other], "xx000001, run 3")
    first, alone = figure.axes
    assert first.get_title(loc="left") == "host/1/2 (2 attempts)"
    steps = {line.get_label(): list(zip(line.get_xdata(), line.get_ydata(), strict=True)) for line in first.lines}
    assert steps["permitted"] == [(0, 0), (0, 120 * MIB), (4, 240 * MIB), (10, 120 * MIB), (20, 0)]
    assert steps["measured"] == [(0, 0), (0, 60 * MIB), (4, 120 * MIB), (10, 60 * MIB), (20, 0)]
    assert "(s)" in alone.get_xlabel()
