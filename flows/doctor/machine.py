"""The machine and what is installed on it: versions, limits, memory, free space."""

from __future__ import annotations

import resource
import shutil
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flows.doctor.findings import Finding, alarm, healthy, unknown
from infra.host import host_memory
from infra.sizes import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.settings import Settings

__all__ = ["LEAST_MEMORY_BYTES", "examine_machine", "space", "unmet_requirements"]

_SHOWN: Final = ("zarrmill", "biosigio", "zarr", "distributed", "prefect")
_OPEN_FILES: Final = 1024  # a store is written and sent side by side: hundreds of files and sockets at once
LEAST_MEMORY_BYTES: Final = 1 << 30  # under this no recording of any format was seen to be projected to fit
_LEAST_FREE_BYTES: Final = 2 << 30
_LEAST_FREE_SHARE: Final = 0.05


def examine_machine(settings: Settings) -> Iterator[Finding]:
    """Every line about this machine."""
    yield _versions()
    yield _open_files()
    yield _memory(settings)
    yield space("space of the home", settings.home)
    yield space("space of scratch", settings.scratch)


def unmet_requirements(distribution: str = "zarrmill") -> list[str]:
    """Requirements of an installed distribution, with the extras that it asks of others, that what is installed does not meet."""
    from packaging.requirements import Requirement

    wanted: list[tuple[str, str]] = [(distribution, "")]
    seen: set[tuple[str, str]] = set()
    unmet = []
    while wanted:
        name, extra = wanted.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for line in requires(name) or []:
            needed = Requirement(line)
            if needed.marker is not None and not needed.marker.evaluate({"extra": extra}):
                continue
            if extra and needed.marker is not None and needed.marker.evaluate({"extra": ""}):
                continue  # asked for without the extra too
            try:
                found = version(needed.name)
            except PackageNotFoundError:
                unmet.append(f"{needed.name} is not installed")
                continue
            if not needed.specifier.contains(found, prereleases=True):
                unmet.append(f"{needed.name} is {found} and must be {needed.specifier}")
            wanted += [(needed.name, one) for one in needed.extras]
    return sorted(set(unmet))


def _versions() -> Finding:
    shown = ", ".join(f"{name} {version(name)}" for name in _SHOWN)
    unmet = unmet_requirements()
    if unmet:
        return alarm("versions", f"{'; '.join(unmet)}; install zarrmill again from its lock ({shown})")
    return healthy("versions", shown)


def _open_files() -> Finding:
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _OPEN_FILES:
        return alarm("open files", f"a process may open {soft} files; allow {_OPEN_FILES} (ulimit -n {_OPEN_FILES})")
    return healthy("open files", "without limit" if soft == resource.RLIM_INFINITY else f"up to {soft} a process")


def _memory(settings: Settings) -> Finding:
    memory = host_memory()
    budget = int(memory.limit_bytes * (1 - settings.memory_headroom))
    told = (
        f"limit {format_bytes(memory.limit_bytes)} (machine or cgroup), {format_bytes(memory.available_bytes)} free, "
        f"{format_bytes(budget)} at most for conversions"
    )
    if budget < LEAST_MEMORY_BYTES:
        return alarm("memory", f"{told}; give it at least {format_bytes(LEAST_MEMORY_BYTES)} for conversions")
    return healthy("memory", told)


def space(name: str, folder: Path) -> Finding:
    """Free space of the file system that holds ``folder``, or will."""
    try:
        there = next(one for one in (folder, *folder.parents) if one.exists())
        usage = shutil.disk_usage(there)
    except OSError as error:
        return unknown(name, f"{folder} cannot be looked at: {error.strerror}")
    told = f"{format_bytes(usage.free)} of {format_bytes(usage.total)} free at {folder}"
    if usage.free < _LEAST_FREE_BYTES or usage.free < _LEAST_FREE_SHARE * usage.total:
        return alarm(name, f"{told}; make room, or name another folder")
    return healthy(name, told)
