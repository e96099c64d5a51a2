"""What the kernel tells in a container, as files."""

from __future__ import annotations

from pathlib import Path

from infra.host import HostFiles


def container(tree: Path, *, limit: int, host: int) -> HostFiles:
    """A container of cgroup version 1 with a limit, on a machine with ``host`` bytes, nearly all of both free."""
    group = tree / "cgroup/memory"
    for folder in (tree / "proc/self", group, tree / "scratch"):
        folder.mkdir(parents=True)
    (tree / "proc/meminfo").write_text(f"MemTotal: {host >> 10} kB\nMemFree: 1 kB\nMemAvailable: {host >> 10} kB\n")
    (tree / "proc/self/cgroup").write_text("5:memory:/docker/one\n")
    (group / "memory.limit_in_bytes").write_text(f"{limit}\n")
    (group / "memory.usage_in_bytes").write_text("0\n")
    (group / "memory.stat").write_text("total_inactive_file 0\n")
    return HostFiles(proc=tree / "proc", cgroup=tree / "cgroup")
