"""The S3 endpoint of the tests on the port of ``VGW_PORT``, for the key of ``ROOT_ACCESS_KEY`` and nobody else; keeps everything in memory."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import Any

from moto.moto_server.werkzeug_app import create_backend_app
from s3_guard import Guard, Start
from s3_process import OneWriteAtATime, Served
from werkzeug.serving import make_server


class Health:
    def __init__(self, app: Any, path: str) -> None:
        self._app = app
        self._path = path

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        if environ["PATH_INFO"] == self._path:
            start("200 OK", [("Content-Length", "2")])
            return [b"OK"]
        return self._app(environ, start)


logging.getLogger("werkzeug").setLevel(logging.ERROR)
guarded = Guard(OneWriteAtATime(create_backend_app("s3")), key_id=os.environ["ROOT_ACCESS_KEY"])
app = Health(guarded, os.environ["VGW_HEALTH"])
port = int(os.environ["VGW_PORT"].rpartition(":")[2])
make_server("0.0.0.0", port, app, threaded=True, request_handler=Served).serve_forever()
