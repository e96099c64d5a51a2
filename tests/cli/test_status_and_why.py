"""What status and why tell, from a real Postgres in which a small dataset has lived for a while."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine, text
from state_bench import VERSIONS, Bench, path_of, planned

from cli.status import look, status_lines, status_object
from cli.why import history_lines
from cli.why import look as look_why
from cli.wording import json_line
from contract.codes import FailureCode, PendingReason, WhyDue
from contract.errors import Refused
from db import leases, recordings, runs
from db.leases import Owner
from db.received import Report, note_report, reported_alone
from db.recordings import Measured, PlannedAction
from tasks.convert.loss import ChannelLoss, GroupLoss, pack_losses
from tasks.telling import disclosures

ENTRY = json.dumps(
    {
        "path": path_of("01"),
        "units_report": {
            "converted": 2, "relabelled": 1, "kept_importer_unit": 0, "units_column_present": True,
            "sidecar": "sub-01/eeg/sub-01_task-rest_channels.tsv", "sidecar_supplied": False,
        },
        "split_members": ["a_split-01_meg.fif", "a_split-02_meg.fif"],
    }
).encode()  # fmt: skip


LOSSES = pack_losses(
    [
        GroupLoss(
            group="eeg_250hz",
            labels=("Fp1", "Cz", "ACC"),
            types=("EEG", "EEG", "ACC"),
            units=("uV", "uV", "g"),
            channels=(
                ChannelLoss(0.1, 0.05, 0.03, 2.0, 0.0),
                ChannelLoss(0.2, 0.1, 0.06, 2.0, 0.0),
                ChannelLoss(0.002, 0.001, 0.0006, 0.1, 0.0),
            ),
        )
    ]
)


@pytest.fixture
def bench(engine: Engine) -> Bench:
    """One served, one failed, one that met a full machine, one not reached, and one served that is due again."""
    bench = Bench(engine)
    run = bench.start(pid=11)
    collision = {"code": FailureCode.STORE_PATH_COLLISION, "detail": "sub-02.edf is served"}
    bench.apply(
        run,
        *(planned(name) for name in ("01", "03", "04", "05", "06")),
        planned("02", PlannedAction.FAIL, zarr="other.zarr", **collision),
    )
    bench.convert(run, "01", entry=ENTRY)
    bench.convert(run, "05", notes=("sub-05_events.tsv: 2 rows have an onset that is no number",), quantisation=LOSSES)
    attempt = bench.claim(run, "06")
    with bench.begin() as c:
        report = Measured(measured_bytes=15, stage_seconds={"fetch": 0.5}, traceback="Traceback\n  line 1")
        recordings.fail(
            c,
            attempt_id=attempt,
            run_number=run.number,
            code=FailureCode.NOT_CONTINUOUS,
            detail="20 trials",
            report=report,
        )
    attempt = bench.claim(run, "03", worker="tcp://10.0.0.5:1")
    bench.wait(seconds=20)
    with bench.begin() as c:
        report = Measured(
            measured_bytes=19 * 2**20, stage_seconds={"fetch": 0.5, "convert": 19.25}, stage_bytes={"fetch": 1000}
        )
        recordings.postpone(
            c,
            attempt_id=attempt,
            run_number=run.number,
            reason=PendingReason.MEMORY_BUDGET,
            error="MemoryError: no room",
            counted=True,
            report=report,
        )
        runs.finish(c, run=run, state="completed")
    bench.end(run)
    run = bench.start(pid=12)
    bench.apply(
        run,
        planned("01", PlannedAction.CARRY),
        planned("02", PlannedAction.FAIL, zarr="other.zarr", **collision),
        planned("03", PlannedAction.WAIT),
        planned("04"),
        planned("05", why=WhyDue.ENGINE),
        planned("06", PlannedAction.KEEP_FAILED),
    )
    return bench


@pytest.mark.parametrize(
    ("assigned", "told"),
    [
        ("active = false", "inactive"),
        ("visibility = 'private'", "private"),
        ("active = false, withdrawn_at = zarrmill_now()", "withdrawn on"),
    ],
)
def test_status_says_what_takes_no_part_or_is_hidden(bench: Bench, assigned: str, told: str) -> None:
    with bench.begin() as c:
        c.execute(text(f"UPDATE datasets SET {assigned}"))
        (status,) = look(c, target="/served")
    assert told in next(status_lines(status, whole=False))


def test_what_only_another_converter_reported_is_found_until_it_is_ours(bench: Bench) -> None:
    with bench.begin() as c:
        for dataset_id in ("on000007", bench.dataset.dataset_id):
            report = Report(dataset_id=dataset_id, status="ready", store_count=1)
            note_report(c, target="/served", report=report, register=True)
        assert reported_alone(c, target="/served") == [("on000007", "ready")]
        assert reported_alone(c, target="/elsewhere") == []


def test_status_accounts_for_every_recording(bench: Bench) -> None:
    with bench.begin() as c:
        (status,) = look(c, target="/served")
    lines = list(status_lines(status, whole=True))
    text = "\n".join(lines)
    assert lines[1] == "  6 discovered = 2 stores + 2 failures + 2 pending"
    assert "failed: not_continuous (1): This file holds epochs" in text
    assert "failed: store_path_collision (1)" in text
    assert f"    {path_of('03')}, not before 2026-03-01T01:00:20Z" in lines
    assert "served and due again: engine (1)" in text
    assert lines[-2].startswith("  served with notes (1): ")
    assert lines[-2].endswith("zarrmill why xx000001 PATH shows them")
    assert lines[-1] == f"    {path_of('05')}"
    assert "run 1 (auto) completed, began 2026-03-01T00:00:00Z, took 20 s" in text
    assert "run 2 (auto) running" in text
    assert "process 12 on here" in text


def test_status_as_json_lists_each_recording_that_is_not_served(bench: Bench) -> None:
    with bench.begin() as c:
        (status,) = look(c, target="/served", dataset_id="xx000001")
        assert look(c, target="/elsewhere") == []
        assert look(c, target="/served", dataset_id="xx000002") == []
    value = json.loads(json_line(status_object(status)))
    assert value["coverage"] == {"discovered": 6, "stores": 2, "failures": 2, "pending": 2}
    assert value["failures"] == {"not_continuous": [path_of("06")], "store_path_collision": [path_of("02")]}
    assert value["pending"] == {"memory_budget": [path_of("03")], "not_attempted": [path_of("04")]}
    assert value["rebuilding"] == {"engine": [path_of("05")]}
    assert value["noted"] == [path_of("05")]
    assert [run["state"] for run in value["runs"]] == ["running", "completed"]


OWNER = """
import sys, time
from pathlib import Path
from flows.ownership import owning
from infra.home import Home
with owning(Home(Path(sys.argv[1]))) as ownership:
    print(ownership.owner.host, ownership.owner.pid, ownership.owner.lock_path, sep="\\n", flush=True)
    time.sleep(600)
"""


def test_a_run_whose_command_was_killed_is_told_as_interrupted(bench: Bench, home: Path) -> None:
    with bench.begin() as c:
        bench_run = runs.last_runs(c, dataset=bench.dataset, limit=1)[0].run
    bench.end(bench_run)
    with bench.begin() as c:
        assert leases.holder(c, dataset=bench.dataset) is None
    with subprocess.Popen([sys.executable, "-c", OWNER, str(home)], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        host, pid, lock_path = (command.stdout.readline().strip() for _ in range(3))
        owner = Owner(host=host, pid=int(pid), lock_path=lock_path)
        with bench.begin() as c:
            leases.acquire(
                c, dataset=bench.dataset, owner=owner, mode="auto", versions=VERSIONS, owner_is_gone=lambda _: False
            )
            assert leases.holder(c, dataset=bench.dataset) == owner
            (alive,) = look(c, target="/served")
        command.kill()
    with bench.begin() as c:
        (killed,) = look(c, target="/served")
    assert (alive.interrupted, killed.interrupted) == (False, True)
    assert status_object(killed)["interrupted"] is True
    text = "\n".join(status_lines(killed, whole=True))
    assert "its run was interrupted; the next convert goes on" in text.splitlines()[0]
    assert "converting now" not in text
    assert f"run 3 (auto) interrupted, began 2026-03-01T00:00:20Z, starting, process {pid} on {host} is gone" in text
    assert "run 3 (auto) running" in "\n".join(status_lines(alive, whole=True))


def lines_of(bench: Bench, name: str, *, tracebacks: bool = False) -> list[str]:
    with bench.begin() as c:
        history, entry = look_why(c, target="/served", dataset_id="xx000001", path=f"./{path_of(name)}")
    return list(history_lines(history, entry, tracebacks=tracebacks))


def test_why_a_recording_waits(bench: Bench) -> None:
    lines = lines_of(bench, "03")
    text = "\n".join(lines)
    assert lines[:2] == [path_of("03"), "  pending: memory_budget"]
    assert "reason     There was not enough memory for this recording at the time" in text
    assert "due        " in text
    assert "attempts   1 counted of 5" in text
    assert "next       not before 2026-03-01T01:00:20Z" in text
    assert "last error MemoryError: no room" in text
    assert "attempt 1  run 1, 2026-03-01T00:00:00Z, pending: memory_budget, counted" in lines
    assert "  memory     10B projected, 20B permitted, 19MiB measured" in lines
    assert "  seconds    fetch 0.5 s, convert 19 s" in lines
    assert "  versions   zarrmill 0.1.0, engine 3, biosigIO 1.2.13" in lines
    assert any(line.startswith("  worker     tcp://10.0.0.5:1") for line in lines)


def test_why_a_recording_failed(bench: Bench) -> None:
    lines = lines_of(bench, "06")
    text = "\n".join(lines)
    assert lines[1] == "  failed: not_continuous"
    assert "detail     20 trials" in text
    assert "found by   engine 3, biosigIO 1.2.13" in text
    assert "attempt 1  run 1, 2026-03-01T00:00:00Z, failed: not_continuous" in lines
    assert "Traceback" not in text
    assert "    Traceback" in lines_of(bench, "06", tracebacks=True)
    assert "  no attempt was made yet" in lines_of(bench, "02")


def test_why_a_recording_is_served_says_what_its_store_discloses(bench: Bench) -> None:
    text = "\n".join(lines_of(bench, "01"))
    assert "\n  served\n" in text
    assert "disclosed  units by sub-01/eeg/sub-01_task-rest_channels.tsv: 2 channels converted, 1 relabelled" in text
    assert "disclosed  joined from 2 files" in text
    assert "attempt 1  run 1, 2026-03-01T00:00:00Z, done" in text
    assert "note" not in text
    again = "\n".join(lines_of(bench, "05"))
    assert "\n  note       sub-05_events.tsv: 2 rows have an onset that is no number\n" in again
    assert "\n  int16      eeg_250hz: 2 channels off by at most 0.1 uV (Cz), 0.06 uV rms\n" in again
    assert "\n  int16      eeg_250hz: 1 channel off by at most 0.001 g (ACC), 0.0006 g rms\n" in again
    assert "\n  served\n" in again
    assert "due        engine: The converter's engine version changed." in again


def test_why_can_be_asked_with_the_path_of_the_store(bench: Bench) -> None:
    with bench.begin() as c:
        history, _ = look_why(c, target="/served", dataset_id="xx000001", path=bench.state("01").zarr)
    assert history.state.path == path_of("01")


def test_why_takes_any_path_that_leads_to_the_file(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    place = source.joinpath(path_of("01")).parent
    place.mkdir(parents=True)
    (place / Path(path_of("01")).name).symlink_to(tmp_path / "objects" / "a1b2")  # as git-annex has it
    (tmp_path / "link").symlink_to(source)
    with bench.begin() as c:
        c.execute(text("UPDATE datasets SET source = :source"), {"source": str(source)})
    monkeypatch.chdir(tmp_path)
    for path in (
        path_of("01"),
        f"./{path_of('01')}",
        str(source / path_of("01")),
        f"source/{path_of('01')}",
        f"{tmp_path}/link/{path_of('01')}",
    ):
        with bench.begin() as c:
            history, _ = look_why(c, target="/served", dataset_id="xx000001", path=path)
        assert history.state.path == path_of("01"), path


def test_an_unknown_path_names_the_nearest_known_ones(bench: Bench) -> None:
    with bench.begin() as c, pytest.raises(Refused) as caught:
        look_why(c, target="/served", dataset_id="xx000001", path="sub-01/eeg/sub-01_task-rest_eeg.fif")
    near = caught.value.sentence.partition("the nearest are ")[2].partition(", from")[0].split(", ")
    assert near[0] == path_of("01")
    assert len(near) == 3


def test_what_is_not_known_is_refused_with_a_way_out(bench: Bench) -> None:
    with bench.begin() as c, pytest.raises(Refused, match="zarrmill status lists"):
        look_why(c, target="/served", dataset_id="xx000009", path="a")
    with bench.begin() as c, pytest.raises(Refused, match=r"no recording 'a\.edf'; paths are as in its index\.json"):
        look_why(c, target="/served", dataset_id="xx000001", path="a.edf")


def test_disclosures_name_every_departure() -> None:
    lines = list(
        disclosures(
            {
                "channels_tsv_read_error": True,
                "sss": {
                    "method": "maxwell_filter",
                    "calibration": "c.dat",
                    "cross_talk": "x.fif",
                    "mne_version": "1.13",
                },
            }
        )
    )
    assert len(lines) == 2
    assert lines[1] == "not the raw signal: corrected by maxwell_filter with c.dat and x.fif"
    assert list(disclosures({"path": "a.edf"})) == []


def test_of_a_store_that_was_made_again_it_is_said_when_in_which_run_and_why(bench: Bench) -> None:
    def told(name: str) -> list[str]:
        with bench.begin() as c:
            history, entry = look_why(c, target="/served", dataset_id=bench.dataset.dataset_id, path=path_of(name))
        return [line.strip() for line in history_lines(history, entry) if line.strip().startswith("remade")]

    assert told("05") == [], "it is due again, and its first store is served"
    with bench.begin() as c:
        (run,) = (one.run for one in runs.last_runs(c, dataset=bench.dataset, limit=1))
    bench.convert(run, "05")
    (said,) = told("05")
    stamp = bench.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert said.split(maxsplit=1)[1] == (
        f"in run 2 on {stamp}: The converter's engine version changed. It replaced the store of run 1."
    )
    assert told("01") == [], "made once"
