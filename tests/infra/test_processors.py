"""How many processors a worker may keep busy, by the files that the kernel shows in a container."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from infra.host import HostFiles, processor_count

HERE = len(os.sched_getaffinity(0))


def files(tree: Path, membership: str, groups: dict[str, str]) -> HostFiles:
    """What /proc and /sys/fs/cgroup show: the line of /proc/self/cgroup, and files below the mount."""
    (tree / "proc/self").mkdir(parents=True)
    (tree / "proc/self/cgroup").write_text(membership + "\n")
    (tree / "cgroup").mkdir()
    for name, content in groups.items():
        file = tree / "cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content + "\n")
    return HostFiles(proc=tree / "proc", cgroup=tree / "cgroup")


@pytest.mark.parametrize(
    ("membership", "groups", "count"),
    [
        ("0::/", {"cgroup.controllers": "cpu memory", "cpu.max": "max 100000"}, HERE),
        ("0::/", {"cgroup.controllers": "cpu memory", "cpu.max": "50000 100000"}, 1),
        ("0::/a/b", {"cgroup.controllers": "cpu", "a/cpu.max": "100000 100000", "a/b/cpu.max": "max 100000"}, 1),
        ("0::/", {"cgroup.controllers": "cpu", "cpu.max": "6400000 100000"}, HERE),
        ("0::/", {"cgroup.controllers": "cpu", "cpu.max": "nonsense"}, HERE),
        ("4:cpu,cpuacct:/docker/x", {"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "100000"}, 1),
        ("4:cpu,cpuacct:/docker/x", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, HERE),
        ("5:memory:/docker/x", {"memory/memory.limit_in_bytes": "1"}, HERE),
    ],
)
def test_a_quota_of_the_cgroup_bounds_the_processors(
    tmp_path: Path, membership: str, groups: dict[str, str], count: int
) -> None:
    assert processor_count(files(tmp_path, membership, groups)) == min(count, HERE)


def test_a_quota_that_begins_a_processor_counts_it_whole(tmp_path: Path) -> None:
    made = files(tmp_path, "0::/", {"cgroup.controllers": "cpu", "cpu.max": "150000 100000"})
    assert processor_count(made) == min(2, HERE)
