"""The Dask scheduler of an installation, as a process of its own that many commands and workers share."""

from __future__ import annotations

import sys

from contract.errors import Refused
from infra.cluster import worker_environment
from infra.dask_security import check_reach, tls_environment
from infra.settings import Settings

__all__ = ["scheduler_command", "scheduler_environment"]


def scheduler_command(settings: Settings, *, host: str, port: int, dashboard_port: int) -> list[str]:
    """The arguments of a scheduler that listens on ``host``, with its dashboard on this machine alone.

    Raises
    ------
    Refused
        Others than this machine would reach it unencrypted; see ``check_reach``.
    """
    scheme = _scheme(settings)
    check_reach(settings, f"{scheme}://{host}:{port}")
    if dashboard_port == port:
        raise Refused(f"the scheduler and its dashboard cannot both have port {port}; name another --dashboard-port")
    return [
        *(sys.executable, "-P", "-m", "dask", "scheduler", "--host", f"{scheme}://{host}", "--port", str(port)),
        *("--dashboard-address", f"127.0.0.1:{dashboard_port}"),
    ]


def scheduler_environment(settings: Settings) -> dict[str, str]:
    """The environment of a scheduler: Dask's settings that conversions rest on, certificates, and none of our secrets."""
    kept = {**worker_environment(settings), **tls_environment(settings, f"{_scheme(settings)}://")}
    return {name: value for name, value in kept.items() if not name.startswith(("ZARRMILL_", "AWS_", "PREFECT_"))}


def _scheme(settings: Settings) -> str:
    return "tcp" if settings.dask_tls_ca is None else "tls"
