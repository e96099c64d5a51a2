"""Logs: lines for people or JSON lines for machines, on stderr, without secrets."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from json import dumps
from typing import TextIO

__all__ = ["HumanLines", "JsonLines", "set_up_logging"]

_QUIET = (
    "PIL",
    "aiobotocore",
    "alembic",
    "asyncio",
    "bokeh",
    "botocore",
    "dask",
    "distributed",
    "fsspec",
    "h5py",
    "httpcore",
    "httpx",
    "matplotlib",
    "mne",
    "numcodecs",
    "prefect",
    "psycopg",
    "s3fs",
    "sqlalchemy",
    "tornado",
    "urllib3",
    "uvicorn",
    "websockets",
    "zarr",
)
"""Loggers of libraries, whose steps are nobody's news; their warnings are."""

_MASK = "[redacted]"
_SECRETS = (
    (re.compile(r"(://)(?:[^\s/@:\"'<>]+:[^\s@\"'<>]+|[^\s/@\"'<>]+)(?=@)"), rf"\g<1>{_MASK}"),
    (re.compile(r"(?i)(\b(?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?)[^\r\n\"']+"), rf"\g<1>{_MASK}"),
    (re.compile(r"(?i)(\bbearer\s+)[^\s\"']+"), rf"\g<1>{_MASK}"),
    (
        re.compile(
            r"(?i)((?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key|private[_-]?key|signature|credential)"
            r"[\"']?\s*[:=]\s*[\"']?)[^\s\"'&,;<>]+"
        ),
        rf"\g<1>{_MASK}",
    ),
)


def _without_secrets(text: str, known: Iterable[str]) -> str:
    for secret in known:
        text = text.replace(secret, _MASK)
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


class HumanLines(logging.Formatter):
    """``12:00:03 warning db.leases: sentence``, then the traceback if there is one. ``secrets`` never appear."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """One record as text."""
        moment = datetime.fromtimestamp(record.created, tz=UTC).strftime("%H:%M:%S")
        name = record.name.removeprefix("zarrmill.")
        text = f"{moment} {record.levelname.lower()} {name}: {record.getMessage()}"
        if record.exc_info:
            text += f"\n{self.formatException(record.exc_info)}"
        return _without_secrets(text, self._secrets)


class JsonLines(logging.Formatter):
    """One JSON object a line: ``time`` (UTC), ``level``, ``logger``, ``process``, ``message``, ``traceback`` if any."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """One record as a JSON object."""
        entry = {
            "time": datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": _without_secrets(record.getMessage(), self._secrets),
        }
        if record.exc_info:
            entry["traceback"] = _without_secrets(self.formatException(record.exc_info), self._secrets)
        return dumps(entry)


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to whatever ``sys.stderr`` is at that moment: a progress display puts itself in its place."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def _is_news(record: logging.LogRecord) -> bool:
    # by record and not by logger, because Prefect and Dask set the levels of theirs again while they start
    return record.levelno >= logging.WARNING or record.name.partition(".")[0] not in _QUIET


def set_up_logging(
    verbose: bool = False, json: bool = False, *, secrets: Iterable[str] = (), alone: bool = False
) -> None:
    """Send every log of this process to stderr, once; a second call replaces the first.

    Parameters
    ----------
    verbose
        Show what happens (INFO, and DEBUG of our own) instead of only what needs attention.
    json
        JSON lines instead of lines for people.
    secrets
        Values that must never appear, beside everything that looks like one.
    alone
        Take away the handlers that libraries have put beside ours, which would say everything twice and hide nothing.
    """
    known = [secret for secret in secrets if secret]
    handler = _Stderr()
    handler.setFormatter(JsonLines(known) if json else HumanLines(known))
    handler.addFilter(_is_news)
    root = logging.getLogger()
    for old in [one for one in root.handlers if alone or isinstance(one, _Stderr)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.INFO if verbose else logging.WARNING)
    logging.getLogger("zarrmill").setLevel(logging.DEBUG if verbose else logging.WARNING)
    logging.captureWarnings(True)
    logging.getLogger("py.warnings").setLevel(logging.WARNING if verbose else logging.ERROR)
