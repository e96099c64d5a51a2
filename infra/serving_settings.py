"""What is set from outside about ``zarrmill serve``; part of ``infra.settings.Settings``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings

__all__ = ["AdminToken", "ServingSettings"]

_SHORTEST_SECRET = 16
_SCOPES = ("read", "operate")
_KNOWN_TO_EVERYBODY = frozenset(
    {
        "a-long-random-token",
        "changeme",
        "change-me",
        "change-me-change-me",
        "default",
        "dev-token",
        "development",
        "password",
        "secret",
        "token",
        "webhook-token",
        "zarrmill",
    }
)
_ORIGIN = re.compile(r"https?://(?:\*\.)?[A-Za-z0-9.-]+(?::(?:\d{1,5}|\*))?")


@dataclass(frozen=True, slots=True)
class AdminToken:
    """Who may operate: ``who`` is written beside what they did. The token does not print."""

    who: str
    scope: Literal["read", "operate"]
    token: str = field(repr=False)

    @classmethod
    def parse_all(cls, text: str) -> tuple[AdminToken, ...]:
        """The tokens of ``name:scope:token`` parts separated by commas; ValueError without the text, which is secret."""
        found = []
        for part in filter(None, (one.strip() for one in text.split(","))):
            who, scope, token = (*part.split(":", 2), "", "")[:3]
            if not re.fullmatch(r"[\w.@-]{1,100}", who) or scope not in _SCOPES or not token:
                raise ValueError("it must be name:read:token or name:operate:token, several separated by commas")
            found.append(cls(who, "operate" if scope == "operate" else "read", token))
        if len({one.token for one in found}) < len(found):
            raise ValueError("one token is given to two names, so it would not say who acted")
        return tuple(found)


def _admin_tokens(value: SecretStr) -> SecretStr:
    AdminToken.parse_all(value.get_secret_value())
    return value


def _origins(value: str) -> str:
    parts = [one.strip() for one in value.split(",") if one.strip()]
    if parts != ["*"] and not all(_ORIGIN.fullmatch(one) for one in parts):
        raise ValueError("it must be *, or origins such as https://example.org and https://*.example.org, by commas")
    return ",".join(parts)


def _proxies(value: str) -> str:
    parts = [one.strip() for one in value.split(",") if one.strip()]
    for one in parts:
        try:
            ip_network(one)
        except ValueError:
            raise ValueError("it must be addresses or networks such as 10.0.0.0/8, separated by commas") from None
    return ",".join(parts)


class ServingSettings(BaseSettings):
    """The settings of ``zarrmill serve``."""

    environment: Literal["production", "development"] = Field(
        default="production",
        description="In development, tokens that are short and secrets that are published are taken.",
        examples=["production"],
    )
    listen: Annotated[str, Field(pattern=r"^[A-Za-z0-9.:-]{1,255}$")] = Field(
        default="127.0.0.1",
        description="The address at which `zarrmill serve` listens; 0.0.0.0 is every one of the machine.",
        examples=["10.0.0.5"],
    )
    cors_origins: Annotated[str, AfterValidator(_origins)] = Field(
        default="*",
        description="The web pages that may read over HTTP, by origin.",
        examples=["https://example.org,https://*.example.org"],
    )
    trusted_proxies: Annotated[str, AfterValidator(_proxies)] = Field(
        default="127.0.0.1",
        description="The web servers in front whose X-Forwarded-For is believed.",
        examples=["10.0.0.0/8"],
    )
    redirect: Literal["never", "public", "signed"] = Field(
        default="never",
        description="Whether readers that are no web page are sent on to the bucket, by its public or by signed addresses.",
        examples=["public"],
    )
    requests_per_minute: Annotated[int, Field(ge=1, le=10_000_000)] = Field(
        default=10_000,
        description="Requests that one address may send in a minute, objects of datasets not counted.",
        examples=["10000"],
    )
    object_requests_per_minute: Annotated[int, Field(ge=1, le=100_000_000)] = Field(
        default=100_000,
        description="Requests for objects of datasets that one address may send in a minute.",
        examples=["100000"],
    )
    requests_at_once: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=256,
        description="Requests that are answered at once; one more is told to come again.",
        examples=["256"],
    )
    webhook_token: SecretStr | None = Field(
        default=None,
        description="The token with which another converter reports to `POST /webhooks/zarr-ready`. Unset: nobody may.",
        examples=["a-long-random-token"],
    )
    webhook_unknown: Literal["register", "refuse"] = Field(
        default="register",
        description="What becomes of a report on a dataset that nobody has heard of.",
        examples=["refuse"],
    )
    admin_tokens: Annotated[SecretStr, AfterValidator(_admin_tokens)] | None = Field(
        default=None,
        description="Who may use /admin, as name:scope:token with the scope read or operate. Unset: nobody.",
        examples=["ada:operate:a-long-random-token"],
    )
    dashboard_reads: Literal["open", "token"] = Field(
        default="open",
        description="Who may read the dashboard: everybody (open), or whoever signs in with a token of ZARRMILL_ADMIN_TOKENS.",
        examples=["token"],
    )

    @model_validator(mode="after")
    def _no_default_secrets(self) -> ServingSettings:
        if self.environment == "development":
            return self
        for variable, tokens in (
            ("ZARRMILL_WEBHOOK_TOKEN", [self.webhook_token.get_secret_value()] if self.webhook_token else []),
            ("ZARRMILL_ADMIN_TOKENS", [one.token for one in self.operators()]),
        ):
            if any(one.lower() in _KNOWN_TO_EVERYBODY or len(one) < _SHORTEST_SECRET for one in tokens):
                raise ValueError(
                    f"{variable} holds a token that is shorter than {_SHORTEST_SECRET} characters or stands in examples. Make one "
                    "with `openssl rand -hex 32`, or unset it; a machine that nobody else reaches may set "
                    "ZARRMILL_ENVIRONMENT=development and keep it"
                )
        return self

    def operators(self) -> tuple[AdminToken, ...]:
        """Who may use /admin."""
        return () if self.admin_tokens is None else AdminToken.parse_all(self.admin_tokens.get_secret_value())

    def serving_secrets(self) -> list[str]:
        """What of these settings must never be shown."""
        webhook = [self.webhook_token.get_secret_value()] if self.webhook_token else []
        return webhook + [one.token for one in self.operators()]
