"""``zarrmill serve``: the addresses of a folder target, alive on this machine."""

from __future__ import annotations

from pathlib import Path

import typer

from cli.runtime import prepare, target_url
from contract.errors import Refused

__all__ = ["serve_target"]


def serve_target(to: str, *, port: int | None, verbose: bool) -> None:
    """Answer on 127.0.0.1 until interrupted.

    Raises
    ------
    Refused
        There is no such folder, or the port is taken.
    """
    settings = prepare(verbose=verbose, uses_home=False)
    root, at = Path(target_url(to, settings)), port or settings.port
    if not root.is_dir():
        raise Refused(f"{root} is no folder; convert something to it first, or name another one with --to")
    _free(at)
    import uvicorn

    from api.app import create_app

    typer.echo(f"serving {root} at http://127.0.0.1:{at}/catalog.json; Ctrl-C ends it")
    if at != settings.port:
        typer.echo(f"the documents name port {settings.port}, so their links will not lead here", err=True)
    level = "info" if verbose else "warning"
    uvicorn.run(create_app(root, settings), host="127.0.0.1", port=at, log_level=level, access_log=verbose)


def _free(port: int) -> None:
    """Refuse a port on which something answers: uvicorn would end with a bare line in the log."""
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise Refused(f"port {port} cannot be used: {error.strerror}; name another one with --port") from error
