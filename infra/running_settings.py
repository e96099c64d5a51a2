"""What is set from outside about the service that runs by itself; part of ``infra.settings.Settings``."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings

from infra.endpoints import Endpoint, endpoints_of, split_list, web_addresses

__all__ = ["RunningSettings"]

WebAddresses = Annotated[str, AfterValidator(web_addresses)]


def _mail_addresses(value: str) -> str:
    found = split_list(value)
    if not found or not all(re.fullmatch(r"[^@\s,]+@[^@\s,]+", one) for one in found):
        raise ValueError("it must be mail addresses, separated by commas")
    return ",".join(found)


class RunningSettings(BaseSettings):
    """The settings of ``zarrmill runner``, of callbacks, and of alarms."""

    datasets_at_a_time: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=2,
        description="Datasets that `zarrmill runner` converts at a time, each as a process of its own.",
        examples=["2"],
    )
    callback_url: WebAddresses | None = Field(
        default=None,
        description="Where each run reports that it converts and how it ended; several addresses by commas. Unset: nowhere.",
        examples=["https://api.example.org/webhooks/zarr-ready"],
    )
    callback_token: SecretStr | None = Field(
        default=None,
        description="The token sent with those reports, in the header X-Webhook-Token; one for all addresses, or one for each by commas.",
        examples=["a-long-random-token"],
    )
    alarm_url: WebAddresses | None = Field(
        default=None,
        description="Where alarms and the weekly report are posted as JSON; several addresses by commas. Unset: nowhere.",
        examples=["https://chat.example.org/hooks/archive"],
    )
    alarm_token: SecretStr | None = Field(
        default=None,
        description="The token sent with those, in the header X-Webhook-Token; one for all addresses, or one for each by commas.",
        examples=["a-long-random-token"],
    )
    alarm_stuck_h: Annotated[float, Field(gt=0, le=10_000)] = Field(
        default=12,
        description="Hours without any progress, while work is outstanding, after which there is an alarm.",
        examples=["12"],
    )
    alarm_callback_h: Annotated[float, Field(gt=0, le=10_000)] = Field(
        default=3,
        description="Hours that a callback may stay undelivered before there is an alarm.",
        examples=["3"],
    )
    mail_host: Annotated[str, Field(pattern=r"^[A-Za-z0-9.:-]{1,255}$")] | None = Field(
        default=None,
        description="The SMTP server that takes mail about alarms and the weekly report. Unset: no mail.",
        examples=["smtp.example.org"],
    )
    mail_port: Annotated[int, Field(ge=1, le=65535)] = Field(
        default=587, description="The port of that server.", examples=["587"]
    )
    mail_security: Literal["starttls", "tls", "none"] = Field(
        default="starttls",
        description="How the line to it is kept private. With none, no password is sent.",
        examples=["starttls"],
    )
    mail_user: str | None = Field(
        default=None, description="Who sends mail there. Unset: without a login.", examples=["zarrmill"]
    )
    mail_password: SecretStr | None = Field(
        default=None, description="The password of that user.", examples=["a-password"]
    )
    mail_from: Annotated[str, AfterValidator(_mail_addresses)] | None = Field(
        default=None, description="The sender of mail.", examples=["zarrmill@example.org"]
    )
    mail_to: Annotated[str, AfterValidator(_mail_addresses)] | None = Field(
        default=None,
        description="Who gets mail; several addresses by commas.",
        examples=["archive@example.org,night@example.org"],
    )

    @model_validator(mode="after")
    def _tokens_and_mail(self) -> RunningSettings:
        for name, url, token in (
            ("CALLBACK", self.callback_url, self.callback_token),
            ("ALARM", self.alarm_url, self.alarm_token),
        ):
            if token is not None and url is None:
                raise ValueError(f"ZARRMILL_{name}_TOKEN is set and ZARRMILL_{name}_URL is not. Set both, or neither")
            try:
                endpoints_of(url, token)
            except ValueError as error:
                raise ValueError(f"ZARRMILL_{name}_TOKEN cannot be used: {error}") from None
        if self.mail_host is not None and (self.mail_from is None or self.mail_to is None):
            raise ValueError(
                "ZARRMILL_MAIL_HOST is set, and ZARRMILL_MAIL_FROM or ZARRMILL_MAIL_TO is not. Set all three, or none"
            )
        if self.mail_password is not None and (self.mail_user is None or self.mail_security == "none"):
            raise ValueError(
                "ZARRMILL_MAIL_PASSWORD needs ZARRMILL_MAIL_USER, and a line that is private: ZARRMILL_MAIL_SECURITY=starttls or tls"
            )
        return self

    def callback_endpoints(self) -> tuple[Endpoint, ...]:
        """Who is told of runs."""
        return endpoints_of(self.callback_url, self.callback_token)

    def alarm_endpoints(self) -> tuple[Endpoint, ...]:
        """Who is told of alarms."""
        return endpoints_of(self.alarm_url, self.alarm_token)

    def running_secrets(self) -> list[str]:
        """What of these settings must never be shown."""
        given = [one.get_secret_value() for one in (self.callback_token, self.alarm_token, self.mail_password) if one]
        return given + [part for one in given for part in split_list(one)]
