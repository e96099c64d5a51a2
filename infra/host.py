"""What this machine has and what a process of it uses: memory, scratch, a name for the host, the kernel's OOM kills."""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "HostFiles",
    "HostMemory",
    "ProcessMemory",
    "host_key",
    "host_memory",
    "is_memory_backed",
    "memory_budget_bytes",
    "oom_kill_count",
    "process_is_gone",
    "process_memory",
    "process_started",
    "processor_count",
    "scratch_budget_bytes",
    "thread_count",
]

_PROC = Path("/proc")
_UNLIMITED_BYTES = 1 << 60  # cgroup v1 writes PAGE_COUNTER_MAX for "no limit"
_TMPFS_TYPES = frozenset({"tmpfs", "ramfs"})


@dataclass(frozen=True, slots=True)
class HostFiles:
    """Where the kernel tells of memory and cgroups."""

    proc: Path = _PROC
    cgroup: Path = Path("/sys/fs/cgroup")


_HERE = HostFiles()


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Memory that the processes of this cgroup can have at all, and what is free of it now, in bytes."""

    limit_bytes: int
    available_bytes: int


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """Memory of one process in bytes, from ``/proc/<pid>/status``.

    ``real_bytes`` is RssAnon + RssShmem: what cannot be dropped. Mapped files are left out, because the kernel takes them
    back when it needs the room; a file mapped from a tmpfs is RssShmem and counts.
    """

    rss_bytes: int
    anon_bytes: int
    shmem_bytes: int
    peak_bytes: int
    data_bytes: int

    @property
    def real_bytes(self) -> int:
        """RssAnon + RssShmem."""
        return self.anon_bytes + self.shmem_bytes


def process_memory(pid: int | str = "self") -> ProcessMemory | None:
    """Read the memory of process ``pid`` now; None when it is gone or a zombie."""
    try:
        text = (_PROC / str(pid) / "status").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = _kilobyte_fields(text)
    if b"VmRSS" not in fields:
        return None
    return ProcessMemory(
        rss_bytes=fields[b"VmRSS"],
        anon_bytes=fields.get(b"RssAnon", fields[b"VmRSS"]),
        shmem_bytes=fields.get(b"RssShmem", 0),
        peak_bytes=fields.get(b"VmHWM", fields[b"VmRSS"]),
        data_bytes=fields.get(b"VmData", 0),
    )


def thread_count(pid: int | str = "self") -> int:
    """How many threads process ``pid`` has. Raises OSError when it is gone."""
    return sum(1 for _ in (_PROC / str(pid) / "task").iterdir())


def process_started(pid: int) -> int | None:
    """Start time of process ``pid`` in clock ticks since boot, which with the pid names it for good; None when gone."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    after_name = text.rpartition(")")[2].split()
    return None if after_name[0] in "ZX" else int(after_name[19])


def process_is_gone(pid: int, started: int | None) -> bool:
    """Whether the process that had ``pid`` and start time ``started`` no longer runs on this host."""
    return process_started(pid) != started or started is None


def host_memory(files: HostFiles = _HERE) -> HostMemory:
    """Limit and free memory: the least of the host's and of every cgroup above this process (v1 and v2).

    Page cache that the kernel would give back counts as free.
    """
    meminfo = _kilobyte_fields((files.proc / "meminfo").read_bytes())
    limit, available = meminfo[b"MemTotal"], meminfo.get(b"MemAvailable", meminfo[b"MemFree"])
    for group_limit, group_available in _cgroup_memory(files):
        limit, available = min(limit, group_limit), min(available, group_available)
    return HostMemory(limit, max(available, 0))


def memory_budget_bytes(headroom: float) -> int:
    """Return what conversions on this host may use together: free memory less ``headroom`` (a fraction of the limit)."""
    memory = host_memory()
    return max(memory.available_bytes - int(memory.limit_bytes * headroom), 0)


def scratch_budget_bytes(folder: Path, headroom: float = 0.05) -> int:
    """Free bytes of the file system that ``folder`` is on, or will be, less ``headroom`` of its size.

    A worker is asked before its first conversion, which makes the folder. Raises OSError when unreadable.
    """
    stat = os.statvfs(next(one for one in (folder, *folder.absolute().parents) if one.exists()))
    return max(stat.f_bavail * stat.f_frsize - int(stat.f_blocks * stat.f_frsize * headroom), 0)


def is_memory_backed(folder: Path) -> bool:
    """Whether files in ``folder`` live in memory (tmpfs), so that scratch there is charged as memory."""
    resolved = str(folder.resolve())
    best, kind = "", ""
    for line in (_PROC / "self/mounts").read_text().splitlines():
        _device, mount, file_system, *_rest = line.split(" ")
        at = mount.replace("\\040", " ")
        inside = resolved == at or resolved.startswith(at.rstrip("/") + "/")
        if inside and len(at) >= len(best):
            best, kind = at, file_system
    return kind in _TMPFS_TYPES


def host_key(files: HostFiles = _HERE) -> str:
    """Name the pool of memory that this process draws from: boot id and memory cgroup.

    Two commands on one laptop get the same; two containers with limits of their own, or one host after a restart, do not.
    """
    boot_id = (files.proc / "sys/kernel/random/boot_id").read_text().strip()
    group = next(_limited_cgroups(files), "host")
    own = files.proc / "self/ns/cgroup"
    namespace = own.stat().st_ino if own.exists() else 0
    digest = hashlib.sha256(f"{group}:{namespace}".encode()).hexdigest()[:12]
    return f"{boot_id}:{digest}"


def oom_kill_count() -> int:
    """OOM kills so far of this host and of this process's cgroups, added up: it rises when one happens near us."""
    total = _counter(_PROC / "vmstat", "oom_kill ")
    for version, folder in _cgroup_folders(_HERE):
        total += _counter(folder / ("memory.events" if version == 2 else "memory.oom_control"), "oom_kill ")
    return total


def _kilobyte_fields(text: bytes) -> dict[bytes, int]:
    fields = {}
    for line in text.splitlines():
        if line.endswith(b" kB"):
            name, _, value = line.partition(b":")
            fields[name] = int(value[:-3]) * 1024
    return fields


def _counter(path: Path, prefix: str) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line[len(prefix) :]) for line in lines if line.startswith(prefix)), 0)


def processor_count(files: HostFiles = _HERE) -> int:
    """How many processors this process keeps busy at most: those it may run on, or what its cgroups (v1 and v2) allot, begun ones whole."""
    count: float = len(os.sched_getaffinity(0))
    for version, folder, _name in _named_cgroups(files, "cpu"):
        if version == 2:
            quota, _, period = _line(folder / "cpu.max").partition(" ")
        else:
            quota, period = _line(folder / "cpu.cfs_quota_us"), _line(folder / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(period) > 0:
            count = min(count, int(quota) / int(period))
    return max(math.ceil(count), 1)


def _line(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _cgroup_folders(files: HostFiles) -> Iterator[tuple[int, Path]]:
    """(cgroup version, folder) of every memory cgroup from this process's own up to the root of the mount."""
    yield from ((version, folder) for version, folder, _name in _named_cgroups(files))


def _named_cgroups(files: HostFiles, controller: str = "memory") -> Iterator[tuple[int, Path, str]]:
    """The same, each with the name by which the kernel tells it from others, as far as it can be seen from here."""
    try:
        lines = (files.proc / "self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            version, root = 1, files.cgroup / controller
        elif number == "0":
            version, root = (
                2,
                files.cgroup if (files.cgroup / "cgroup.controllers").exists() else files.cgroup / "unified",
            )
        else:
            continue
        own = root / path.lstrip("/")
        # A container sees the host's path in /proc but its own group at the root of the mount.
        sees_own = own.is_dir()
        folder = own if sees_own else root
        while True:
            # That root looks alike in every container; with version 1 only the path in /proc tells them apart.
            yield version, folder, str(folder) if sees_own else path
            if folder == root or root not in folder.parents:
                break
            folder = folder.parent


def _limited_cgroups(files: HostFiles) -> Iterator[str]:
    for version, folder, name in _named_cgroups(files):
        limit = _number(folder / ("memory.max" if version == 2 else "memory.limit_in_bytes"))
        if limit is not None and limit < _UNLIMITED_BYTES:
            yield name


def _cgroup_memory(files: HostFiles) -> Iterator[tuple[int, int]]:
    for version, folder in _cgroup_folders(files):
        limit = _number(folder / ("memory.max" if version == 2 else "memory.limit_in_bytes"))
        if limit is None or limit >= _UNLIMITED_BYTES:
            continue
        used = _number(folder / ("memory.current" if version == 2 else "memory.usage_in_bytes")) or 0
        prefix = "inactive_file " if version == 2 else "total_inactive_file "
        yield limit, limit - used + _counter(folder / "memory.stat", prefix)


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
