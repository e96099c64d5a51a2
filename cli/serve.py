"""``zarrmill serve``: what a target serves, and the state beside it, over HTTP."""

from __future__ import annotations

import logging
import threading
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import typer
from sqlalchemy.exc import SQLAlchemyError

from cli.runtime import prepare, refuse_taken_port, state_beside
from contract.errors import Refused, ZarrmillError
from contract.layout import CATALOG_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from fastapi import FastAPI
    from sqlalchemy import Engine

    from api.service import Service
    from infra.settings import Settings

__all__ = ["serve_target"]

_CONNECTIONS: Final = 8
_STATEMENT_S: Final = 10.0
_LOOK_S: Final = 2.0
_LOG = logging.getLogger("zarrmill.serve")


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
    address = f"http://{_shown(settings.listen)}:{at}"
    with ExitStack() as held:
        opened = partial(state_beside, settings, connections=_CONNECTIONS, longest_statement_s=_STATEMENT_S)
        engine = held.enter_context(opened())
        typer.echo(f"serving {target.url} at {address}/catalog.json; Ctrl-C ends it")
        if is_folder and at != settings.port:
            typer.echo(f"the documents name port {settings.port}, so their links will not lead here", err=True)
        from api.app import create_app

        app = create_app(target, settings, engine)
        if engine is None:
            typer.echo("there is no state yet, so only objects and schemas are served until there is", err=True)
            held.enter_context(_taking_state(app.state.service, opened, address))
        else:
            typer.echo(f"pages for operators are at {address}/dashboard")
        _answer(app, settings, at, verbose=verbose)


@contextmanager
def _taking_state(
    service: Service, opened: Callable[[], AbstractContextManager[Engine | None]], address: str
) -> Iterator[None]:
    """While this lasts, the first command that begins a state gives it to ``service`` too."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_S):
            try:
                with opened() as engine:
                    if engine is None:
                        continue
                    service.engine = engine
                    typer.echo(f"pages for operators are at {address}/dashboard")
                    ended.wait()
            except (ZarrmillError, SQLAlchemyError) as trouble:  # it is being made, or gone again
                _LOG.warning("the state is there and cannot be used yet: %s", type(trouble).__name__)

    looking = threading.Thread(target=look, name="zarrmill-state")
    looking.start()
    try:
        yield
    finally:
        ended.set()
        looking.join()


def _answer(app: FastAPI, settings: Settings, port: int, *, verbose: bool) -> None:
    import uvicorn

    uvicorn.run(
        app,
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
