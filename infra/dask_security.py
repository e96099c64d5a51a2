"""Who may speak with our Dask processes: loopback, a network that is trusted by name, or those who show a certificate.

Whoever reaches a Dask scheduler or worker can have it run any code. So an unencrypted address beyond this machine is refused unless
``ZARRMILL_DASK_TRUSTED_NETWORK`` says that nobody else is on that network, as inside docker-compose.yml.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from contract.errors import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from infra.settings import Settings

__all__ = ["check_reach", "client_security", "is_loopback", "tls_environment"]


def is_loopback(host: str | None) -> bool:
    """Whether only this machine reaches ``host``."""
    if host is None:
        return False
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_reach(settings: Settings, address: str) -> None:
    """Refuse a Dask address that others could reach unencrypted, or certificates that are not there.

    Raises
    ------
    Refused
        The sentence names the settings.
    """
    for path in _files(settings).values():
        _check_readable(path)
    where = urlsplit(address)
    if where.scheme == "tls":
        if not _files(settings):
            raise Refused(
                f"{address} is encrypted: set ZARRMILL_DASK_TLS_CA, ZARRMILL_DASK_TLS_CERT and ZARRMILL_DASK_TLS_KEY"
            )
        return
    if not is_loopback(where.hostname) and not settings.dask_trusted_network:
        raise Refused(
            f"{address} is not encrypted and lies beyond this machine, where whoever reaches it can run code: use a tls:// address with "
            "ZARRMILL_DASK_TLS_CA, ZARRMILL_DASK_TLS_CERT and ZARRMILL_DASK_TLS_KEY, or set ZARRMILL_DASK_TRUSTED_NETWORK=true "
            "on a network that nobody else reaches"
        )


def client_security(settings: Settings, address: str) -> Any | None:
    """Dask's ``Security`` of a client of ``address``; None where that is not encrypted."""
    files = _files(settings)
    if not files or not address.startswith("tls://"):
        return None
    from distributed import Security

    return Security(  # type: ignore[no-untyped-call]  # distributed has no types
        tls_ca_file=str(files["ca"]),
        tls_client_cert=str(files["cert"]),
        tls_client_key=str(files["key"]),
        require_encryption=True,
    )


def tls_environment(settings: Settings, address: str) -> dict[str, str]:
    """What the dask command reads its certificates from; empty where ``address`` is not encrypted."""
    files = _files(settings)
    if not files or not address.startswith("tls://"):
        return {}
    prefix = "DASK_DISTRIBUTED__COMM__"
    named = {f"{prefix}REQUIRE_ENCRYPTION": "True", f"{prefix}TLS__CA_FILE": str(files["ca"])}
    for role in ("CLIENT", "WORKER", "SCHEDULER"):
        named[f"{prefix}TLS__{role}__CERT"] = str(files["cert"])
        named[f"{prefix}TLS__{role}__KEY"] = str(files["key"])
    return named


def _files(settings: Settings) -> dict[str, Path]:
    """The three files; none of them unless all are named."""
    if settings.dask_tls_ca is None or settings.dask_tls_cert is None or settings.dask_tls_key is None:
        return {}
    return {"ca": settings.dask_tls_ca, "cert": settings.dask_tls_cert, "key": settings.dask_tls_key}


def _check_readable(path: Path) -> None:
    try:
        path.open("rb").close()
    except OSError as error:
        raise Refused(
            f"the certificate file {path} cannot be read: {error.strerror}; ZARRMILL_DASK_TLS_* names it"
        ) from error
