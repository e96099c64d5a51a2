"""``zarrmill serve``: what a target serves, alive on this machine."""

from __future__ import annotations

import typer

from cli.runtime import prepare
from contract.errors import Refused
from contract.layout import CATALOG_KEY

__all__ = ["serve_target"]


def serve_target(to: str, *, port: int | None, verbose: bool) -> None:
    """Answer on 127.0.0.1 until interrupted.

    Raises
    ------
    Refused
        There is no such folder or bucket, or the port is taken.
    """
    settings = prepare(verbose=verbose, uses_home=False)
    from infra.storage import open_target
    from infra.storage.folder import FolderTarget

    target, at = open_target(to, settings), port or settings.port
    is_folder = isinstance(target, FolderTarget)
    if isinstance(target, FolderTarget) and not target.root.is_dir():
        raise Refused(f"{target.url} is no folder; convert something to it first, or name another one with --to")
    if not is_folder:
        target.etag(CATALOG_KEY)  # so that a wrong bucket or key is told now, and not by every request
    _free(at)
    import uvicorn

    from api.app import create_app

    typer.echo(f"serving {target.url} at http://127.0.0.1:{at}/catalog.json; Ctrl-C ends it")
    if is_folder and at != settings.port:
        typer.echo(f"the documents name port {settings.port}, so their links will not lead here", err=True)
    level = "info" if verbose else "warning"
    uvicorn.run(create_app(target, settings), host="127.0.0.1", port=at, log_level=level, access_log=verbose)


def _free(port: int) -> None:
    """Refuse a port on which something answers: uvicorn would end with a bare line in the log."""
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise Refused(f"port {port} cannot be used: {error.strerror}; name another one with --port") from error
