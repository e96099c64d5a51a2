"""Where this machine's zarrmill keeps its own things: every path below ``ZARRMILL_HOME``."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from contract.errors import Refused

__all__ = ["Home", "ServiceFiles", "private_folder"]


def private_folder(folder: Path) -> Path:
    """The folder, made if needed, readable by its owner alone.

    Raises
    ------
    Refused
        It cannot be made, is no folder, or belongs to somebody else.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        if found.st_uid != os.geteuid():
            raise Refused(f"the folder {folder} belongs to user {found.st_uid}; name one of your own")
        if stat.S_IMODE(found.st_mode) != 0o700:
            folder.chmod(0o700)
    except OSError as error:
        raise Refused(
            f"the folder {folder} cannot be used: {error.strerror}; name another one, or make it writable",
            detail=str(error),
        ) from error
    return folder


@dataclass(frozen=True, slots=True)
class ServiceFiles:
    """The files by which commands and the supervisor of one service find each other.

    ``users`` is held shared (flock) by everybody who needs the service, ``supervisor`` exclusively by its one
    supervisor, ``starting`` by whoever is starting one. ``state`` exists while the service answers, ``error`` after a
    supervisor gave up.
    """

    users: Path
    supervisor: Path
    starting: Path
    state: Path
    error: Path
    log: Path
    server_log: Path


@dataclass(frozen=True, slots=True)
class Home:
    """The folder of ``ZARRMILL_HOME`` and everything in it. Folders are made, 0700, when they are asked for."""

    path: Path

    @property
    def postgres(self) -> Path:
        """The folder of the embedded Postgres."""
        return self._folder("postgres")

    @property
    def prefect(self) -> Path:
        """``PREFECT_HOME`` of our own Prefect server."""
        return self._folder("prefect")

    @property
    def run(self) -> Path:
        """Locks, state files and, where its path is short enough, the socket."""
        return self._folder("run")

    @property
    def logs(self) -> Path:
        """Logs of supervisors and servers."""
        return self._folder("logs")

    @property
    def scratch(self) -> Path:
        """Where recordings are converted when ``ZARRMILL_SCRATCH`` names no other place."""
        return self._folder("scratch")

    @property
    def leases(self) -> Path:
        """Lock files that show that the owner of a dataset lease lives."""
        return self._folder("leases")

    @property
    def short_name(self) -> str:
        """Twelve hex digits that tell this home from others."""
        return hashlib.sha256(os.fsencode(self.path)).hexdigest()[:12]

    def service(self, name: str) -> ServiceFiles:
        """The files of the service ``postgres`` or ``prefect``."""
        run, logs = self.run, self.logs
        return ServiceFiles(
            users=run / f"{name}.users",
            supervisor=run / f"{name}.supervisor",
            starting=run / f"{name}.starting",
            state=run / f"{name}.json",
            error=run / f"{name}.error",
            log=logs / f"{name}-supervisor.log",
            server_log=logs / f"{name}.log",
        )

    def _folder(self, name: str) -> Path:
        private_folder(self.path)
        return private_folder(self.path / name)
