"""Web addresses that are told of something, each with the token that it wants."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from urllib.parse import urlsplit

from pydantic import SecretStr

__all__ = ["Endpoint", "endpoints_of", "split_list", "web_address", "web_addresses"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address that is told, and its token. The path of an address may itself be a secret, so ``name`` leaves it out."""

    url: str
    token: SecretStr | None = None

    @property
    def name(self) -> str:
        """Host and port, with eight digits that tell addresses at one host apart."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}#{hashlib.sha256(self.url.encode()).hexdigest()[:8]}"


def split_list(text: str) -> list[str]:
    """The parts of a text that are separated by commas, without blanks around them."""
    return [part.strip() for part in text.split(",") if part.strip()]


def web_address(value: str) -> str:
    """An address that can be used as it is; ValueError says what is wrong with it, without repeating it."""
    try:
        parts = urlsplit(value)
        host, user = parts.hostname, parts.username
        _ = parts.port
    except ValueError:
        raise ValueError("it is not a web address") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise ValueError("it must begin with http:// or https:// and name a host")
    if user is not None:
        raise ValueError("it must not hold a user or password, because addresses are shown in logs")
    return value.rstrip("/")


def web_addresses(value: str) -> str:
    """One or several addresses separated by commas, each checked."""
    found = [web_address(one) for one in split_list(value)]
    if not found or len(set(found)) < len(found):
        raise ValueError("it must be web addresses, each once, separated by commas")
    return ",".join(found)


def endpoints_of(urls: str | None, token: SecretStr | None) -> tuple[Endpoint, ...]:
    """Each address with its token: one for all, or as many as there are addresses, in their order."""
    addresses = split_list(urls or "")
    if token is None or len(addresses) < 2:
        return tuple(Endpoint(url, token) for url in addresses)
    tokens = split_list(token.get_secret_value())
    if len(tokens) == 1:
        return tuple(Endpoint(url, token) for url in addresses)
    if len(tokens) != len(addresses):
        raise ValueError("there must be one token for all addresses, or one for each")
    return tuple(Endpoint(url, SecretStr(one)) for url, one in zip(addresses, tokens, strict=True))
