"""``zarrmill mcp``: an archive for agents, over stdin and stdout or over HTTP on this machine."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import typer

from cli.runtime import prepare, refuse_taken_port, state_beside
from contract.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from api.broker.answers import Archive
    from infra.settings import Settings
    from infra.storage.http_archive import HttpArchive

__all__ = ["serve_mcp"]

_HOST = "127.0.0.1"
_CONNECTIONS = 4


def serve_mcp(to: str, *, url: str | None, over_http: bool, port: int, verbose: bool) -> None:
    """Answer until the client goes, or over HTTP until interrupted. With stdio nothing but the protocol is on stdout.

    Raises
    ------
    Refused
        There is no such target or archive, or the port is taken.
    """
    settings = prepare(verbose=verbose, uses_home=False)
    with ExitStack() as held:
        archive = _over_http(url, held) if url is not None else held.enter_context(_at_target(to, settings))
        from api.broker.server import create_server

        server = create_server(archive)
        if not over_http:
            server.run()
            return
        refuse_taken_port(_HOST, port)
        typer.echo(f"answering for {archive.place.url} at http://{_HOST}:{port}/mcp; Ctrl-C ends it", err=True)
        import uvicorn

        app = server.streamable_http_app(stateless_http=True, json_response=True, host=_HOST)
        uvicorn.run(app, host=_HOST, port=port, log_level="info" if verbose else "warning", access_log=verbose)


def _over_http(url: str, held: ExitStack) -> Archive:
    from api.broker.answers import Archive
    from infra.storage.http_archive import HttpArchive
    from tasks.read.facts import CatalogFacts
    from tasks.read.place import archive_place

    place = archive_place(url)
    asked = HttpArchive(url)
    held.callback(place.close)
    held.callback(asked.close)
    return Archive(place, CatalogFacts(place, _question(asked)))


def _question(archive: HttpArchive) -> Callable[[str], dict[str, Any] | None]:
    """Puts a question to the API of an archive; None where it has none, or does not know."""

    def ask(path: str) -> dict[str, Any] | None:
        from contract.errors import StorageError

        try:
            told = archive.get(path)
            value = json.loads(told) if told is not None else None
        except (StorageError, ValueError):  # a plain gateway has no API, and answers as it likes
            return None
        return value if isinstance(value, dict) else None

    return ask


@contextmanager
def _at_target(to: str, settings: Settings) -> Iterator[Archive]:
    from api.broker.answers import Archive
    from infra.storage import open_target
    from infra.storage.folder import FolderTarget
    from tasks.read.facts import CatalogFacts, StateFacts
    from tasks.read.place import target_place

    target = open_target(to, settings)
    if isinstance(target, FolderTarget) and not target.root.is_dir():
        raise Refused(f"{target.url} is no folder; convert something to it first, or name another one with --to")
    place = target_place(target)
    with state_beside(settings, connections=_CONNECTIONS) as engine:
        yield Archive(place, CatalogFacts(place) if engine is None else StateFacts(engine, target))
