"""Telling people: JSON to web addresses, and mail. What could not be told is said, never raised."""

from __future__ import annotations

import json
import logging
import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any, Final

from infra.endpoints import split_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.settings import Settings

__all__ = ["Told", "tell"]

log = logging.getLogger("zarrmill.infra.tell")

_TIMEOUT_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How many ways there are to tell somebody, and how many of them took it."""

    ways: int
    accepted: int

    @property
    def reached(self) -> bool:
        """Whether somebody was reached, or nobody wants to be."""
        return self.accepted > 0 or self.ways == 0


def tell(settings: Settings, *, subject: str, text: str, document: Mapping[str, Any]) -> Told:
    """Post the document to every address for alarms, and send the text as mail, as far as either is set."""
    accepted = ways = 0
    for endpoint in settings.alarm_endpoints():
        ways += 1
        token = None if endpoint.token is None else endpoint.token.get_secret_value()
        error = _post(endpoint.url, token, {**document, "text": f"{subject}\n{text}"})
        accepted += error is None
        if error is not None:
            log.warning("%s was not told: %s", endpoint.name, error)
    if settings.mail_host is not None:
        ways += 1
        error = _mail(settings, subject, text)
        accepted += error is None
        if error is not None:
            log.warning("no mail was sent: %s", error)
    return Told(ways=ways, accepted=accepted)


def _post(url: str, token: str | None, document: Mapping[str, Any]) -> str | None:
    import httpx

    headers = {"Content-Type": "application/json", "User-Agent": "zarrmill"}
    if token is not None:
        headers["X-Webhook-Token"] = token
    try:
        # neither redirects nor proxies of the environment: the token goes to the address that was set and nowhere else
        with httpx.Client(headers=headers, timeout=_TIMEOUT_S, follow_redirects=False, trust_env=False) as client:
            answer = client.post(url, content=json.dumps(document, default=str).encode())
    except (httpx.HTTPError, httpx.InvalidURL) as trouble:
        return type(trouble).__name__
    return None if answer.is_success else f"it answered {answer.status_code}"


def _mail(settings: Settings, subject: str, text: str) -> str | None:
    assert settings.mail_host is not None, "asked before"
    message = EmailMessage()
    message["Subject"] = subject.replace("\n", " ")[:200]
    message["From"], message["To"] = settings.mail_from or "", settings.mail_to or ""
    message.set_content(text)
    kind = smtplib.SMTP_SSL if settings.mail_security == "tls" else smtplib.SMTP
    try:
        with kind(settings.mail_host, settings.mail_port, timeout=_TIMEOUT_S) as server:
            if settings.mail_security == "starttls":
                server.starttls(context=ssl.create_default_context())
            if settings.mail_user is not None and settings.mail_password is not None:
                server.login(settings.mail_user, settings.mail_password.get_secret_value())
            server.send_message(message, settings.mail_from, split_list(settings.mail_to or ""))
    except (OSError, smtplib.SMTPException) as trouble:
        return type(trouble).__name__
    return None
