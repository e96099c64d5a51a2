"""Head coils of CTF recordings under their other names."""

from __future__ import annotations

from pathlib import Path

from conversion import Bench, recording_at
from ctf_files import continuous_ctf


def test_a_ctf_recording_with_the_other_coil_names_is_served(recordings: Path, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    name = "sub-01_task-a_meg"
    (bench.source / "sub-01/meg").mkdir(parents=True)
    folder = continuous_ctf(recordings, bench.source / f"sub-01/meg/{name}.ds")
    coils = folder / f"{name}.hc"
    text = coils.read_text()
    for before, after in (("nasion", "Nasion"), ("left ear", "LPA"), ("right ear", "RPA")):
        assert before in text
        text = text.replace(before, after)
    coils.write_text(text)
    members = tuple(sorted(p.relative_to(bench.source).as_posix() for p in folder.rglob("*") if p.is_file()))
    done = bench.convert(recording_at(f"sub-01/meg/{name}.ds", "ctf", "meg", members=members))
    assert done.entry.groups is not None
    assert done.entry.groups[0].n_channels == 356
