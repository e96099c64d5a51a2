"""Keeps the processes of one machine standing: Postgres, Prefect, the Dask scheduler, workers, the runner and the API.

``python -m infra.keeper --home FOLDER`` is started by ``zarrmill up`` and is the only one of its home by an exclusive lock. What ends is
started again; SIGTERM ends what it started, in the opposite order, and nothing else. A second SIGTERM ends it without patience.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from contract.errors import ZarrmillError
from infra.children import PUBLISHES_S, Children
from infra.home import Home
from infra.kept_parts import Kept, KeptPrefect, parts_of
from infra.locks import try_take
from infra.postgres_place import socket_folder
from infra.prefect_server import PrefectServer
from infra.processes import ServerFailed
from infra.services import database, in_use
from infra.settings import inherited_environment, load_settings
from infra.standing import Standing, StandingPlan, kept_port, standing_files

if TYPE_CHECKING:
    from infra.settings import Settings

__all__ = ["ALREADY_KEPT", "main"]

log = logging.getLogger("zarrmill.infra.keeper")

ALREADY_KEPT: Final = 3
"""Exit code of a keeper that found another one at work."""
_LOOK_EVERY_S: Final = 0.2
_TRIM_EVERY_S: Final = 60.0


class _Keeper:
    """Starts, watches and ends the parts."""

    def __init__(
        self, home: Home, plan: StandingPlan, addresses: dict[str, str], kept: list[Kept], *, patience_s: float
    ) -> None:
        self._files = standing_files(home)
        self._children = Children(home)
        self._patience_s = patience_s
        self._plan = plan
        self._addresses = addresses
        self._kept = kept
        self._asked = 0

    def end(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the shape of a signal handler
        """Leave soon; the second time, at once."""
        self._asked += 1
        if self._asked > 1:
            for one in self._kept:
                if one.running and one.part.pid is not None:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(one.part.pid, signal.SIGKILL)

    def run(self) -> None:
        """Keep the parts until asked to end; they are stopped when this returns or raises."""
        trimmed = time.monotonic()
        try:
            self._tell()
            while not self._asked:
                if any([one.look() for one in self._kept]):  # noqa: C419 - each must be looked at
                    self._tell()
                if time.monotonic() - trimmed > _TRIM_EVERY_S:
                    trimmed = time.monotonic()
                    for one in self._kept:
                        one.trim_log()
                time.sleep(_LOOK_EVERY_S)
        finally:
            for one in reversed(self._kept):
                if one.running:
                    log.info("ending %s", one.name)
                    one.part.stop(one.patience_s)
                    one.running = False
                    self._tell()
                if one.name == "runner":
                    self._end_children()
            self._files.state.unlink(missing_ok=True)

    def _end_children(self) -> None:
        """End what a runner that was killed left at work, while its database and its workers are still there."""
        patience_s = 0.0 if self._asked > 1 else self._patience_s
        ended = self._children.end(patience_s, orphans=True, hurried=lambda: self._asked > 1)
        for name, killed in ended.items():
            log.info("%s %s", name, "was killed; it is tried again later" if killed else "has ended")

    def _tell(self) -> None:
        parts = tuple(one.state() for one in self._kept)
        for one in self._kept:
            if not one.running and one.last_exit:
                log.info("%s ended: %s", one.name, one.last_exit)
        Standing(keeper_pid=os.getpid(), target=self._plan.target, addresses=self._addresses, parts=parts).write(
            self._files.state
        )


@contextmanager
def _opened(home: Home, plan: StandingPlan, settings: Settings) -> Iterator[_Keeper]:
    """A keeper whose database answers and whose ports are chosen."""
    with ExitStack() as stack:
        url = stack.enter_context(database(settings))
        addresses = {"api": f"http://127.0.0.1:{plan.api_port}"}
        kept: list[Kept] = []
        taken = [plan.api_port]
        if settings.prefect_api_url is None:
            stack.enter_context(in_use(home, "postgres"))
            prefect = _prefect(home, plan)
            stack.callback(prefect.close)
            kept.append(
                Kept(name="prefect", part=KeptPrefect(prefect), log=home.logs / "prefect-standing.log", patience_s=3.0)
            )
            addresses["prefect"] = prefect.url
            taken.append(prefect.port)
        else:
            addresses["prefect"] = settings.prefect_api_url
        dask_port = None
        if settings.dask_address is None:
            dask_port = kept_port(home.run / "dask-standing.port", plan.dask_port, avoid=taken)
            addresses["dask"] = f"tcp://127.0.0.1:{dask_port}"
        else:
            addresses["dask"] = settings.dask_address
        environment = inherited_environment(
            ZARRMILL_HOME=str(home.path),
            ZARRMILL_DATABASE_URL=url,
            ZARRMILL_DASK_ADDRESS=addresses["dask"],
            PREFECT_API_URL=addresses["prefect"],
            ZARRMILL_PORT=str(plan.api_port),  # documents of a folder target name it
        )
        kept += parts_of(home, plan, settings, environment, dask_port)
        yield _Keeper(home, plan, addresses, kept, patience_s=settings.stop_grace_s + PUBLISHES_S)


def _prefect(home: Home, plan: StandingPlan) -> PrefectServer:
    port_file = home.run / "prefect-standing.port"
    return PrefectServer(
        home.prefect,
        socket_folder(home),
        port_file=port_file,
        log_path=home.logs / "prefect-standing.log",
        standing=True,
        port=kept_port(port_file, plan.prefect_port, avoid=[plan.api_port]),
    )


def main(arguments: list[str] | None = None) -> int:
    """Take the lock, keep what the plan names. Returns when asked to end."""
    parser = argparse.ArgumentParser(prog="python -m infra.keeper")
    parser.add_argument("--home", type=Path, required=True)
    home = Home(parser.parse_args(arguments).home)
    os.umask(0o077)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(name)s %(levelname)s %(message)s")
    files = standing_files(home)
    # somebody who only asks whether the lock is held has it for a moment
    if (lock := try_take(files.lock, patience_s=2.0)) is None:
        return ALREADY_KEPT
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    for stale in (files.error, files.state, files.runner_beat):
        stale.unlink(missing_ok=True)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        plan = StandingPlan.from_json(files.plan.read_text())
        with _opened(home, plan, load_settings(home=home.path)) as keeper:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, keeper.end)
            keeper.run()
    except ZarrmillError as error:
        log.error("giving up: %s %s", error.sentence, error.detail)  # noqa: TRY400 - the sentence and detail say it all
        files.error.write_text(json.dumps({"code": error.code, "sentence": error.sentence, "detail": error.detail}))
        return 1
    except Exception as error:  # the boundary of this process: whoever waits for it is told why
        log.exception("giving up")
        told = {"code": ServerFailed.code, "sentence": "the keeper could not go on", "detail": repr(error)[:2000]}
        with contextlib.suppress(OSError):
            files.error.write_text(json.dumps(told))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
