"""An S3 endpoint over HTTP in a process of its own: moto's server, on a free port of 127.0.0.1, until stdin closes.

Prints its port. With ``--guarded`` it refuses what unsigned requests may not do (``s3_guard.py``). S3 decides a condition and writes in one step, moto in two; so writes come one after another here.
"""

from __future__ import annotations

import logging
import sys
import threading

from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
from s3_guard import Guard
from werkzeug.serving import make_server


class Served(MotoRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_request(self, *_args: object) -> None:
        pass


class OneWriteAtATime:
    def __init__(self, app: object) -> None:
        self._app = app
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, str], start_response: object) -> object:
        if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            return self._app(environ, start_response)
        with self._lock:
            return self._app(environ, start_response)


def main() -> None:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app = OneWriteAtATime(create_backend_app("s3"))
    if "--guarded" in sys.argv:
        app = Guard(app)
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Served)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
