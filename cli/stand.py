"""``zarrmill up``, ``down`` and ``logs``: the whole service on one machine, without Docker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import typer

from cli.called import program
from cli.runtime import prepare, target_url
from cli.wording import json_line, jsonable
from contract.errors import Refused
from infra.children import PUBLISHES_S, Children
from infra.home import Home
from infra.locks import is_held
from infra.processes import ServerFailed, command_line, wait_gone
from infra.sizes import format_bytes, parse_bytes
from infra.standing import StandingPlan, WorkerSize, is_up, port_is_free, read_standing, standing_files
from infra.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from infra.settings import Settings
    from infra.standing import Standing
    from infra.standing_health import PartHealth

__all__ = ["Wanted", "bring_up", "differing", "look_at_parts", "parts_lines", "read_workers", "show_log", "take_down"]

_UP_WITHIN_S: Final = 300.0
_DOWN_BEYOND_GRACE_S: Final = 180.0
_KILLED_WITHIN_S: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The options of ``up`` as they were typed."""

    to: str
    workers: str | None
    slots: int | None
    datasets: int | None
    port: int | None
    prefect_port: int | None
    dask_port: int | None


def read_workers(text: str) -> tuple[WorkerSize, ...]:
    """Workers as they are typed: ``2``, ``2x4GiB``, ``2x4GiB,1x16GiB``; ``0`` for none.

    Raises
    ------
    Refused
        The text is none of these.
    """
    if text.strip() == "0":
        return ()
    sizes = []
    for one in text.split(","):
        count, _, size = one.strip().partition("x")
        if not count.isdecimal() or int(count) < 1 or (one.strip().endswith("x")):
            raise Refused(f"--workers {text!r} cannot be used; write COUNT or COUNTxSIZE, such as 2 or 2x4GiB,1x16GiB")
        sizes.append(WorkerSize(count=int(count), memory_bytes=parse_bytes(size) if size else None))
    return tuple(sizes)


def bring_up(wanted: Wanted, *, foreground: bool, as_json: bool, verbose: bool) -> int:
    """Start the keeper and wait until every part answers; print the addresses.

    Raises
    ------
    Refused
        An option cannot be used, or a port is taken.
    ServerFailed
        A part did not come up in time; the line names its log.
    """
    settings = prepare(verbose=verbose, as_json=as_json)
    home, files = Home(settings.home), standing_files(Home(settings.home))
    sizes = read_workers(wanted.workers or "1")
    if not is_up(home):
        from infra.storage import open_target

        target = open_target(wanted.to, settings)
        target.prepare()
        plan = StandingPlan(
            target=target.url,
            api_port=wanted.port or settings.port,
            workers=sizes,
            slots=wanted.slots,
            datasets=wanted.datasets,
            prefect_port=wanted.prefect_port,
            dask_port=wanted.dask_port,
        )
        _check_port(plan.api_port)
        files.plan.write_text(plan.to_json())
        if foreground:
            os.execv(sys.executable, _keeper(home))  # noqa: S606 - an argument list of our own, no shell
        _launch(home, files.log)
    elif target_url(wanted.to, settings) != (told := _standing(home)).target:
        raise Refused(f"it is up for {told.target} already; {program()} down ends that")
    elif unlike := differing(wanted, StandingPlan.from_json(files.plan.read_text()), told.addresses):
        raise Refused(
            f"it is up already, and otherwise than asked: {'; '.join(unlike)}. {program()} down first, then up with these"
        )
    parts = _until_well(home, settings)
    _print(home, parts, as_json=as_json)
    return 0


def differing(wanted: Wanted, plan: StandingPlan, addresses: Mapping[str, str]) -> list[str]:
    """Options that were typed and are not those of what stands, each with what stands."""
    stands: dict[str, tuple[object, object]] = {
        "--slots": (wanted.slots, plan.slots),
        "--datasets": (wanted.datasets, plan.datasets),
        "--port": (wanted.port, plan.api_port),
        "--prefect-port": (wanted.prefect_port, urlsplit(addresses.get("prefect", "")).port),
        "--dask-port": (wanted.dask_port, urlsplit(addresses.get("dask", "")).port),
    }
    unlike = []
    if wanted.workers is not None and read_workers(wanted.workers) != plan.workers:
        unlike.append(f"--workers {wanted.workers} ({_sizes(plan)} now)")
    for option, (asked, now) in stands.items():
        if asked is not None and asked != now:
            unlike.append(f"{option} {asked} ({'the default' if now is None else now} now)")
    return unlike


def _sizes(plan: StandingPlan) -> str:
    told = [
        f"{one.count}" + ("" if one.memory_bytes is None else f"x{format_bytes(one.memory_bytes)}")
        for one in plan.workers
    ]
    return ",".join(told) or "0"


def _standing(home: Home) -> Standing:
    deadline = time.monotonic() + _UP_WITHIN_S
    while (standing := read_standing(home)) is None:
        if time.monotonic() > deadline or not is_up(home):
            raise ServerFailed("the keeper does not say what stands", detail=f"its log is {standing_files(home).log}")
        time.sleep(0.1)
    return standing


def _check_port(port: int) -> None:
    if not port_is_free(port):
        raise Refused(f"port {port} of 127.0.0.1 is taken; name another one with --port")


def _keeper(home: Home) -> list[str]:
    # -P: the folder we were called in must not shadow our modules
    return [sys.executable, "-P", "-m", "infra.keeper", "--home", str(home.path)]


def _launch(home: Home, log: Path) -> None:
    standing_files(home).error.unlink(missing_ok=True)
    with log.open("ab") as output:
        keeper = subprocess.Popen(
            _keeper(home), stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", start_new_session=True
        )
    deadline = time.monotonic() + _UP_WITHIN_S
    while read_standing(home) is None:
        _raise_error_of(home)
        if keeper.poll() is not None or time.monotonic() > deadline:
            _raise_error_of(home)
            raise ServerFailed("the keeper did not begin", detail=f"its log is {log}")
        time.sleep(0.1)


def _raise_error_of(home: Home) -> None:
    try:
        told = json.loads(standing_files(home).error.read_text())
    except (FileNotFoundError, ValueError):
        return
    kind = Refused if told["code"] == Refused.code else ServerFailed
    raise kind(told["sentence"], detail=told["detail"] or f"the log is {standing_files(home).log}")


def _until_well(home: Home, settings: Settings) -> list[PartHealth]:
    from infra.standing_health import is_well

    deadline = time.monotonic() + _UP_WITHIN_S
    while True:
        parts = look_at_parts(home, settings)
        if is_well(parts):
            return parts
        _raise_error_of(home)
        if time.monotonic() > deadline:
            ill = [f"{one.name}: {one.told}" for one in parts if one.health != "healthy"]
            raise ServerFailed("not everything came up: " + "; ".join(ill or ["the keeper has ended"]))
        time.sleep(0.3)


def look_at_parts(home: Home, settings: Settings) -> list[PartHealth]:
    """Every part of what stands here with its health; nothing when nothing stands."""
    from infra.standing_health import health_of

    standing = read_standing(home)
    return [] if standing is None else health_of(home, settings, standing)


def parts_lines(parts: list[PartHealth]) -> list[str]:
    """The parts for people."""
    return [
        f"{one.health:<8}  {one.name:<15} {'pid ' + str(one.pid) if one.pid else '':<12} {one.address or '':<28} "
        f"{one.told}" + (f"; started again {plural(one.restarts, 'time')}" if one.restarts else "")
        for one in parts
    ]


def _print(home: Home, parts: list[PartHealth], *, as_json: bool) -> None:
    standing = read_standing(home)
    addresses = {} if standing is None else standing.addresses
    if as_json:
        typer.echo(json_line({"addresses": addresses, "parts": [jsonable(one) for one in parts]}))
        return
    for line in parts_lines(parts):
        typer.echo(line.rstrip())
    if "prefect" in addresses:
        typer.echo(f"Prefect's pages: {addresses['prefect'].removesuffix('/api')}")
    typer.echo(f"{program()} trigger DATASET asks for a conversion; {program()} down ends everything")


def take_down(*, now: bool, as_json: bool, verbose: bool) -> int:
    """End the keeper and with it everything it started; the exit code.

    Raises
    ------
    ServerFailed
        It did not end in time.
    """
    settings = prepare(verbose=verbose, as_json=as_json)
    home = Home(settings.home)
    pid = _keeper_pid(home)
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        if now:
            time.sleep(1.0)  # two signals that arrive as one would count as one
            _signal_again(pid)
        if not wait_gone(pid, settings.stop_grace_s + _DOWN_BEYOND_GRACE_S):
            raise ServerFailed(f"process {pid} still ends what it keeps; {program()} down --now does not wait")
    left = _end_left(home, patience_s=0.0 if now else settings.stop_grace_s + PUBLISHES_S)
    ended = pid is not None or bool(left)
    if as_json:
        typer.echo(json_line({"ended": ended, "left_behind": sorted(left)}))
    else:
        for name in sorted(left):
            typer.echo(f"{name} was left at work and has ended")
        typer.echo("everything has ended" if ended else "nothing is up here")
    return 0


def _end_left(home: Home, *, patience_s: float) -> set[str]:
    """End what a service that was killed left at work; names of what that was.

    Raises
    ------
    ServerFailed
        Something lives on.
    """
    children = Children(home)
    ended = children.end(patience_s, orphans=True)
    if not children.gone(_KILLED_WITHIN_S):
        still = ", ".join(f"{name} (pid {children.pid(name)})" for name in sorted(children.orphans()))
        raise ServerFailed(f"not everything has ended: {still}; end it by its number")
    return set(ended)


def _signal_again(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return


def _keeper_pid(home: Home) -> int | None:
    lock = standing_files(home).lock
    if not lock.exists() or not is_held(lock):
        return None
    try:
        pid = int(lock.read_text())
    except ValueError:
        return None
    # one that has only just begun has not written its number yet, and the old number may be a stranger's by now
    return pid if "infra.keeper" in command_line(pid) else None


def show_log(name: str | None, *, lines: int, follow: bool, verbose: bool) -> None:
    """Print the end of a part's log, or the names of all.

    Raises
    ------
    Refused
        There is no such log.
    """
    settings = prepare(verbose=verbose)
    folder = settings.home / "logs"
    there = sorted(path.stem for path in folder.glob("*.log"))
    if name is None:
        for each in there or [
            f"there is no log here yet; {program()} up or {program()} convert SOURCE makes the first"
        ]:
            typer.echo(each)
        return
    name = {"prefect": "prefect-standing"}.get(name, name)
    if name not in there:
        raise Refused(f"there is no log {name!r} here; there are: {', '.join(there) or 'none'}")
    path = folder / f"{name}.log"
    with path.open("r", errors="replace") as log:
        for line in log.readlines()[-lines:]:
            typer.echo(line.rstrip("\n"))
        while follow:
            more = log.read()
            if more:
                typer.echo(more, nl=False)
            elif path.stat().st_size < log.tell():
                log.seek(0)  # it was put aside
            else:
                time.sleep(0.3)
