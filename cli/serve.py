"""``zarrmill serve``: what a target serves, and the state beside it, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

from cli.runtime import prepare, refuse_taken_port, state_beside
from contract.errors import Refused
from contract.layout import CATALOG_KEY

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from infra.settings import Settings
    from infra.storage.protocol import Target

__all__ = ["serve_target"]

_CONNECTIONS: Final = 8
_STATEMENT_S: Final = 10.0


def serve_target(to: str, *, port: int | None, verbose: bool) -> None:
    """Answer until interrupted.

    Raises
    ------
    Refused
        There is no such folder or bucket, the port is taken, or the database cannot be used.
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
    refuse_taken_port(settings.listen, at)
    with state_beside(settings, connections=_CONNECTIONS, longest_statement_s=_STATEMENT_S) as engine:
        address = f"http://{_shown(settings.listen)}:{at}"
        typer.echo(f"serving {target.url} at {address}/catalog.json; Ctrl-C ends it")
        if is_folder and at != settings.port:
            typer.echo(f"the documents name port {settings.port}, so their links will not lead here", err=True)
        if engine is None:
            typer.echo("there is no state yet, so only objects and schemas are served", err=True)
        else:
            typer.echo(f"pages for operators are at {address}/dashboard")
        _answer(target, settings, engine, at, verbose=verbose)


def _answer(target: Target, settings: Settings, engine: Engine | None, port: int, *, verbose: bool) -> None:
    import uvicorn

    from api.app import create_app

    uvicorn.run(
        create_app(target, settings, engine),
        host=settings.listen,
        port=port,
        log_level="info" if verbose else "warning",
        access_log=verbose,
        proxy_headers=False,  # the application has its own, for the proxies that settings name
        # beyond the requests that are answered, so many connections may wait or be told to come again
        limit_concurrency=settings.requests_at_once * 4 + 64,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
        server_header=False,
    )


def _shown(listen: str) -> str:
    if listen in {"0.0.0.0", "::"}:  # noqa: S104 it is compared and not bound here
        return "127.0.0.1"
    return f"[{listen}]" if ":" in listen else listen
