"""Who may speak with Dask beyond loopback: certificates, a trusted network, or nobody; by the real commands over real sockets."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from distributed import Client

from contract.errors import Refused
from infra.cluster import cluster
from infra.dask_security import check_reach, client_security, is_loopback
from infra.scheduler import scheduler_command, scheduler_environment
from infra.settings import Settings, load_settings
from infra.worker_questions import identify

_CLI = str(Path(sys.executable).with_name("zarrmill"))
_DATABASE = "postgresql://u:hidden-word@127.0.0.1:1/d"


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two authorities, each with a certificate of its own: ``ours`` and ``theirs``."""
    folder = tmp_path_factory.mktemp("tls")
    for name in ("ours", "theirs"):
        there = folder / name
        there.mkdir()
        new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        openssl(there, "req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=ca")
        openssl(there, "req", *new, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=node")
        signing = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2")
        openssl(there, "x509", "-req", "-in", "request.pem", *signing, "-out", "cert.pem")
    return folder


def tls(folder: Path) -> dict[str, Path]:
    return {"dask_tls_ca": folder / "ca.pem", "dask_tls_cert": folder / "cert.pem", "dask_tls_key": folder / "key.pem"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(true: object, what: str) -> None:
    deadline = time.monotonic() + 60
    while not true():  # type: ignore[operator]  # a callable
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


@contextmanager
def running(command: list[str], environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def listening(pid: int) -> set[str]:
    """The addresses at which a process and its children take connections."""
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return {one.laddr.ip for each in processes for one in each.net_connections("tcp") if one.status == "LISTEN"}


def test_scheduler_worker_and_client_speak_by_certificates_of_one_authority_alone(
    certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZARRMILL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ZARRMILL_DATABASE_URL", _DATABASE)
    for name, path in tls(certificates / "ours").items():
        monkeypatch.setenv(f"ZARRMILL_{name}".upper(), str(path))
    port = free_port()
    address = f"tls://127.0.0.1:{port}"
    scheduler = [_CLI, "scheduler", "--port", str(port), "--dashboard-port", str(free_port())]
    worker = [_CLI, "worker", "--scheduler", address, "--slots", "1", "--name", "by-name"]
    settings = load_settings(dask_address=address)
    with (
        running(scheduler, dict(os.environ), tmp_path / "scheduler.log") as one,
        running(worker, dict(os.environ), tmp_path / "worker.log") as other,
    ):

        def is_there() -> bool:
            try:
                with cluster(settings) as client:
                    return bool(client.scheduler_info(n_workers=-1)["workers"])
            except Refused:
                return False

        wait_until(is_there, "no worker came")
        with cluster(settings) as client:
            ((found, told),) = client.scheduler_info(n_workers=-1)["workers"].items()
            assert found.startswith("tls://")
            assert told["id"] == "by-name"
            assert list(identify(client, [found])) == [found]
            kept = client.run_on_scheduler(lambda: dict(__import__("os").environ))
        assert "hidden-word" not in str(kept), "a scheduler needs no secret of ours"
        assert listening(one.pid) == listening(other.pid) == {"127.0.0.1"}
        strangers = load_settings(dask_address=address, **tls(certificates / "theirs"))
        with pytest.raises(OSError, match=r"Timed out|TLS|certificate"):
            Client(address, set_as_default=False, timeout=3, security=client_security(strangers, address))


@pytest.mark.parametrize(
    ("address", "trusted", "refused"),
    [
        ("tcp://127.0.0.1:8786", False, None),
        ("tcp://localhost:8786", False, None),
        ("tcp://[::1]:8786", False, None),
        ("tcp://10.0.0.5:8786", False, "ZARRMILL_DASK_TLS_CA"),
        ("ws://10.0.0.5:8786", False, "not encrypted"),
        ("tcp://scheduler:8786", False, "ZARRMILL_DASK_TRUSTED_NETWORK"),
        ("tcp://scheduler:8786", True, None),
        ("tls://127.0.0.1:8786", True, "ZARRMILL_DASK_TLS_CA"),
    ],
)
def test_an_unencrypted_address_beyond_this_machine_is_refused(
    address: str, trusted: bool, refused: str | None
) -> None:
    settings = Settings(dask_trusted_network=trusted)
    if refused is None:
        check_reach(settings, address)
        return
    with pytest.raises(Refused, match=refused):
        check_reach(settings, address)


def test_certificates_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"ca\.pem cannot be read"):
        check_reach(Settings(**tls(tmp_path)), "tls://10.0.0.5:8786")


def test_a_scheduler_for_others_is_encrypted_and_its_dashboard_is_not_for_them(certificates: Path) -> None:
    with pytest.raises(Refused, match="run code"):
        scheduler_command(Settings(), host="0.0.0.0", port=8786, dashboard_port=8787)
    encrypted = Settings(**tls(certificates / "ours"))
    command = scheduler_command(encrypted, host="0.0.0.0", port=8786, dashboard_port=8787)
    assert command[command.index("--host") + 1] == "tls://0.0.0.0"
    assert command[command.index("--dashboard-address") + 1] == "127.0.0.1:8787"
    assert scheduler_environment(encrypted)["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] == "True"
    with pytest.raises(Refused, match="--dashboard-port"):
        scheduler_command(Settings(), host="127.0.0.1", port=8786, dashboard_port=8786)


def test_loopback_is_told_from_names() -> None:
    assert [is_loopback(one) for one in ("127.0.0.1", "127.8.9.1", "::1", "localhost", "10.0.0.1", "nas", None)] == [
        *(True, True, True, True),
        *(False, False, False),
    ]
