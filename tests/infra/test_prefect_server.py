"""The Prefect server that a command brings with it; one for all tests here, because a start costs 8 s."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from contract.errors import Refused
from infra.home import Home
from infra.locks import is_held
from infra.prefect_server import PrefectServer, answers
from infra.processes import wait_gone
from infra.services import prefect_api
from infra.settings import load_settings

_FLOW = """
from prefect import flow, task
from prefect.runtime import flow_run

@task
def part(n):
    return n + 1

@flow
def whole():
    return part(1), str(flow_run.id)

print(*whole())
"""


class _WantsKey(BaseHTTPRequestHandler):
    status = 401

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


class _KnowsNothing(_WantsKey):
    status = 404


@contextmanager
def _web_server(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/api"
        finally:
            server.shutdown()
            thread.join()


def test_a_flow_is_recorded_in_our_own_server_which_goes_with_its_last_user(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    files, postgres = home.service("prefect"), home.service("postgres")
    with prefect_api(load_settings(home=home.path)) as url:
        server = json.loads(files.state.read_text())["pid"]
        assert url.startswith("http://127.0.0.1:")
        environment = {
            "PATH": os.defpath,
            "PREFECT_API_URL": url,
            "PREFECT_HOME": str(home.prefect),
            "PREFECT_LOGGING_LEVEL": "ERROR",
        }
        done = subprocess.run(
            [sys.executable, "-c", _FLOW], env=environment, capture_output=True, text=True, check=True
        )
        result, run = done.stdout.split()
        assert result == "2"
        with urllib.request.urlopen(f"{url}/flow_runs/{run}", timeout=60) as answer:
            recorded = json.load(answer)
        assert recorded["state"]["type"] == "COMPLETED"
        # the dashboard and the analytics are off
        with urllib.request.urlopen(f"{url}/admin/settings", timeout=60) as answer:
            settings = json.load(answer)
        assert settings["server"]["analytics_enabled"] is False
        assert settings["server"]["ui"]["enabled"] is False
        assert not (home.prefect / "prefect.db").exists(), "it keeps its state in Postgres"
    supervisors = [int(one.supervisor.read_text()) for one in (files, postgres)]
    for process in (server, *supervisors):
        assert wait_gone(process, 90)
    assert answers(url) is not None
    assert not is_held(postgres.supervisor)


def test_a_server_ends_with_its_supervisor_and_comes_back_on_its_port(tmp_path: Path) -> None:
    # killed before it has imported anything heavy: what ends it is set first of all
    program = f"""
import os, pathlib, signal, threading, time
from infra.prefect_server import PrefectServer
folder = pathlib.Path({str(tmp_path)!r})
server = PrefectServer(folder, folder, port_file=folder / "port", log_path=folder / "log")
def end():
    while server.pid is None:
        time.sleep(0.01)
    time.sleep(0.7)
    print(server.pid, server.url, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
threading.Thread(target=end).start()
server.start()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid, url = done.stdout.split()
    assert wait_gone(int(pid), 60)
    again = PrefectServer(tmp_path, tmp_path, port_file=tmp_path / "port", log_path=tmp_path / "log")
    assert again.url == url
    again.close()


def test_a_port_that_somebody_else_took_is_left_to_them(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        (tmp_path / "port").write_text(str(taken.getsockname()[1]))
        server = PrefectServer(tmp_path, tmp_path, port_file=tmp_path / "port", log_path=tmp_path / "log")
        assert server.url != f"http://127.0.0.1:{taken.getsockname()[1]}/api"
        server.close()


def test_a_named_server_that_does_not_answer_is_refused(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path, prefect_api_url="http://127.0.0.1:9/api")
    with pytest.raises(Refused, match=r"PREFECT_API_URL .* http://127.0.0.1:9/api"), prefect_api(settings):
        pytest.fail("it was taken")


def test_a_named_server_that_wants_a_key_is_taken(tmp_path: Path) -> None:
    with _web_server(_WantsKey) as address, prefect_api(load_settings(home=tmp_path, prefect_api_url=address)) as url:
        assert url == address


def test_a_named_server_that_is_something_else_is_refused(tmp_path: Path) -> None:
    with _web_server(_KnowsNothing) as address:
        settings = load_settings(home=tmp_path, prefect_api_url=address)
        with pytest.raises(Refused, match="404"), prefect_api(settings):
            pytest.fail("it was taken")
