"""Everything that is set from outside. No other module reads the environment."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import SettingsConfigDict

from contract.errors import Refused
from infra.database import normalise_url
from infra.endpoints import web_address
from infra.running_settings import RunningSettings
from infra.serving_settings import ServingSettings
from infra.sizes import parse_bytes

__all__ = ["Settings", "inherited_environment", "load_settings", "unknown_variables"]

_PREFIX = "ZARRMILL_"
_PUBLISHED_SECRET: Final = "zarrmill-development"  # noqa: S105 - it is no secret
"""What docker-compose.yml sets where nobody chose a secret; anybody can read it there."""


def _size(value: object) -> object:
    try:
        return parse_bytes(value) if isinstance(value, str) else value
    except Refused as refusal:
        raise ValueError(refusal.sentence) from None


def _folder(value: Path) -> Path:
    try:
        return value.expanduser().absolute()
    except RuntimeError:
        raise ValueError("it begins with ~ and no home folder is known for that user") from None


def _database(value: SecretStr) -> SecretStr:
    try:
        return SecretStr(normalise_url(value.get_secret_value()))
    except Refused as refusal:
        raise ValueError(refusal.sentence) from None


def _dask_address(value: str) -> str:
    if not re.fullmatch(r"(tcp|tls|ucx|ws|wss)://[^/\s@]+:\d{1,5}", value):
        raise ValueError("it must be the address of a Dask scheduler with its port")
    return value


def _finite(value: float) -> float:
    if not math.isfinite(value) or value <= 0:
        raise ValueError("it must be a number of seconds above zero")
    return value


Size = Annotated[int, BeforeValidator(_size), Field(gt=0)]
Folder = Annotated[Path, AfterValidator(_folder)]
Seconds = Annotated[float, AfterValidator(_finite)]
WebAddress = Annotated[str, AfterValidator(web_address)]


class Settings(RunningSettings, ServingSettings):
    """The settings of one command, checked and frozen. An empty variable counts as unset; secrets do not print."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX,
        env_ignore_empty=True,
        case_sensitive=False,
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        hide_input_in_errors=True,
        validate_default=True,
    )

    home: Folder = Field(
        default=Path("~/.zarrmill"),
        description="Where this machine's state, logs and locks are kept; made private (0700).",
        examples=["/var/lib/zarrmill"],
    )
    database_url: Annotated[SecretStr, AfterValidator(_database)] | None = Field(
        default=None,
        description="The Postgres (15 to 18) that holds the state. Unset: one of our own below the home, started on demand.",
        examples=["postgresql://zarrmill:secret@db.example.org:5432/zarrmill"],
    )
    dask_address: Annotated[str, AfterValidator(_dask_address)] | None = Field(
        default=None,
        description="The Dask scheduler whose workers convert. Unset: workers of our own for the length of a command.",
        examples=["tcp://10.0.0.5:8786"],
    )
    dask_tls_ca: Folder | None = Field(
        default=None,
        description="The certificates (PEM) that vouch for the others of a tls:// Dask cluster.",
        examples=["/etc/zarrmill/ca.pem"],
    )
    dask_tls_cert: Folder | None = Field(
        default=None,
        description="The certificate (PEM) that this machine shows to a tls:// Dask cluster.",
        examples=["/etc/zarrmill/cert.pem"],
    )
    dask_tls_key: Folder | None = Field(
        default=None, description="The key of that certificate (PEM).", examples=["/etc/zarrmill/key.pem"]
    )
    dask_trusted_network: bool = Field(
        default=False,
        description="Whether nobody else reaches the network between Dask's processes, so that tcp:// is taken beyond this machine.",
        examples=["true"],
    )
    prefect_api_url: WebAddress | None = Field(
        default=None,
        validation_alias="PREFECT_API_URL",
        description="The Prefect server that records runs. Unset: one of our own for the length of a command.",
        examples=["http://prefect.example.org:4200/api"],
    )
    port: int = Field(
        default=8321,
        ge=1,
        le=65535,
        description="The port at which `zarrmill serve` answers, and which documents of folder targets name.",
        examples=["8321"],
    )
    archive_name: Annotated[str, Field(min_length=1, max_length=100)] = Field(
        default="NEMAR", description="The archive that a dataset's citation names.", examples=["NEMAR"]
    )
    contract_host: WebAddress | None = Field(
        default=None,
        description="The stable public address below which datasets of an object store are found. Folder targets do not use it.",
        examples=["https://zarr.example.org"],
    )
    s3_endpoint: WebAddress | None = Field(
        default=None,
        validation_alias="AWS_ENDPOINT_URL",
        description="The S3 service that holds s3:// targets and sources. Unset: that of AWS.",
        examples=["https://s3.example.org"],
    )
    s3_region: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,63}$")] = Field(
        default="us-east-1",
        validation_alias="AWS_DEFAULT_REGION",
        description="The region of the buckets, which documents name.",
        examples=["us-east-2"],
    )
    s3_access_key_id: SecretStr | None = Field(
        default=None,
        validation_alias="AWS_ACCESS_KEY_ID",
        description="Who asks the S3 service. Unset: a profile or a role of the machine, as every AWS tool finds them.",
        examples=["an-access-key-id"],
    )
    s3_secret_access_key: SecretStr | None = Field(
        default=None,
        validation_alias="AWS_SECRET_ACCESS_KEY",
        description="The secret that goes with AWS_ACCESS_KEY_ID.",
        examples=["a-secret-access-key"],
    )
    s3_session_token: SecretStr | None = Field(
        default=None,
        validation_alias="AWS_SESSION_TOKEN",
        description="The token that temporary keys need beside them.",
        examples=["a-session-token"],
    )
    s3_concurrency: int = Field(
        default=16,
        ge=1,
        le=64,
        description="Requests to an S3 service that one process has under way at once, half of them with more than a mebibyte.",
        examples=["16"],
    )
    s3_tries: int = Field(
        default=8,
        ge=1,
        le=20,
        description="How often a request to an S3 service is sent before it is given up.",
        examples=["8"],
    )
    source_endpoint: WebAddress | None = Field(
        default=None,
        description="The S3 service that holds s3:// sources, when it is another than that of targets.",
        examples=["https://s3.example.org"],
    )
    source_region: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,63}$")] | None = Field(
        default=None,
        description="The region of the buckets of s3:// sources. Unset: that of AWS_DEFAULT_REGION.",
        examples=["us-east-1"],
    )
    source_anonymous: bool = Field(
        default=False,
        description="Whether s3:// sources are read without a signature, as anybody can read a public bucket.",
        examples=["true"],
    )
    largest_worker_bytes: Size | None = Field(
        default=None,
        validation_alias="ZARRMILL_LARGEST_WORKER",
        description="The memory of the largest machine that ever converts here. A recording whose least need exceeds it, and every worker seen, has failed instead of waiting.",
        examples=["64GiB"],
    )
    scratch: Folder = Field(
        default_factory=lambda validated: validated["home"] / "scratch",
        description="Where recordings are converted before they are published. Unset: `scratch` below the home.",
        examples=["/scratch/zarrmill"],
    )
    memory_headroom: float = Field(
        default=0.15,
        ge=0,
        le=0.9,
        description="The fraction of a machine's memory that conversions leave alone.",
        examples=["0.15"],
    )
    publish_every_s: Seconds = Field(
        default=900,
        description="Seconds between publications while a long run's stores change.",
        examples=["900"],
    )
    keep_history_days: Annotated[int, Field(ge=1, le=36500)] = Field(
        default=400,
        description="Days for which attempts, delivered callbacks and runs are kept, in our state and in our own Prefect.",
        examples=["400"],
    )
    recording_timeout_s: Seconds = Field(
        default=14400,
        description="Seconds of wall time that one recording's conversion may take.",
        examples=["14400"],
    )
    stop_grace_s: Seconds = Field(
        default=15,
        description="Seconds that running conversions have to finish when a command or a worker is stopped, or a worker is drained.",
        examples=["15"],
    )
    verify_workers: int = Field(
        default=2,
        ge=1,
        le=64,
        description="Stores that a verify sweep compares with their source side by side.",
        examples=["2"],
    )
    verify_again_days: Annotated[int, Field(ge=1, le=36500)] = Field(
        default=30,
        description="Days after which a store that has a verdict is compared whole again, a part of them in each sweep.",
        examples=["30"],
    )

    @model_validator(mode="after")
    def _together(self) -> Settings:
        if self.dask_address is not None and self.database_url is None:
            raise ValueError(
                "ZARRMILL_DASK_ADDRESS is set and ZARRMILL_DATABASE_URL is not, but workers on other machines cannot reach "
                "the Postgres that zarrmill runs by itself. Name a Postgres that they reach in ZARRMILL_DATABASE_URL, or unset ZARRMILL_DASK_ADDRESS"
            )
        self._check_dask_tls()
        if self.environment != "development" and any(_PUBLISHED_SECRET in secret for secret in self.secret_values()):
            raise ValueError(
                "a secret of this installation is the one that docker-compose.yml publishes, and ZARRMILL_ENVIRONMENT is not development. "
                "Choose secrets of your own (.env.example names them), or set ZARRMILL_ENVIRONMENT=development on a machine for trying things out"
            )
        if (self.s3_access_key_id is None) != (self.s3_secret_access_key is None):
            raise ValueError(
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY belong together and one is unset. Set both, or neither"
            )
        return self

    def _check_dask_tls(self) -> None:
        given = [self.dask_tls_ca, self.dask_tls_cert, self.dask_tls_key]
        if any(given) and not all(given):
            raise ValueError(
                "ZARRMILL_DASK_TLS_CA, ZARRMILL_DASK_TLS_CERT and ZARRMILL_DASK_TLS_KEY belong together and not all are set. Set all, or none"
            )
        if self.dask_address is not None and self.dask_address.startswith("tls://") and not all(given):
            raise ValueError(
                "ZARRMILL_DASK_ADDRESS begins with tls:// and nothing says which certificates to use. "
                "Set ZARRMILL_DASK_TLS_CA, ZARRMILL_DASK_TLS_CERT and ZARRMILL_DASK_TLS_KEY"
            )

    def secret_values(self) -> list[str]:
        """What must never be shown: for the log's filter, not for anything else."""
        keys = (self.s3_access_key_id, self.s3_secret_access_key, self.s3_session_token)
        given = [key.get_secret_value() for key in keys if key]
        if self.database_url:
            url = self.database_url.get_secret_value()
            password = urlsplit(url).password
            given += [url] + ([password, unquote(password)] if password else [])
        return given + self.serving_secrets() + self.running_secrets()

    @classmethod
    def variable(cls, field: str) -> str:
        """The environment variable that sets a field."""
        alias = cls.model_fields[field].validation_alias
        return alias if isinstance(alias, str) else f"{_PREFIX}{field}".upper()


def load_settings(**given: Any) -> Settings:
    """The settings of the environment, with ``given`` fields before them.

    Raises
    ------
    Refused
        A value is wrong. The sentence names each variable and a value that would do, never the value itself,
        which may be a secret.
    """
    try:
        return Settings(**given)
    except ValidationError as error:
        problems = error.errors(include_input=False, include_url=False)
        # a scratch folder that waits for a home in vain is no problem of its own
        sentences = [_sentence(problem) for problem in problems if problem["type"] != "default_factory_not_called"]
        raise Refused("; ".join(sentences)) from None


def _sentence(problem: Any) -> str:
    reason = str(problem["msg"]).removeprefix("Value error, ").removeprefix("Input should be ").rstrip(".")
    reason = reason.partition(", unable to parse")[0]
    where = [str(part) for part in problem["loc"]]
    if not where:
        return reason
    field = next((name for name in Settings.model_fields if where[0] in {name, Settings.variable(name)}), None)
    if field is None:
        return f"{where[0]} is not a setting"
    variable = Settings.variable(field)
    if not str(problem["msg"]).startswith("Value error"):
        reason = f"it must be {reason}"
    example = (Settings.model_fields[field].examples or [""])[0]
    return f"{variable} cannot be used: {reason}. Set it like {variable}={example}, or unset it"


def unknown_variables() -> list[str]:
    """The variables of the environment that look like settings of ours and are none: misspelt ones, mostly."""
    known = {Settings.variable(field) for field in Settings.model_fields}
    return sorted(name for name in os.environ if name.startswith(_PREFIX) and name not in known)


def inherited_environment(**changes: str | None) -> dict[str, str]:
    """The environment of this process for one it starts, with ``changes``; None leaves a variable out."""
    merged: dict[str, str | None] = {**os.environ, **changes}
    return {name: value for name, value in merged.items() if value is not None}
