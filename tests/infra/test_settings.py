from __future__ import annotations

import pickle
import re
import traceback
from pathlib import Path

import pytest
from pydantic import ValidationError

from contract.errors import Refused
from infra.settings import Settings, load_settings, unknown_variables

_SECRET = "hunter2-Gr8secret"


def test_without_any_variable_everything_has_its_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = load_settings()
    assert settings.home == tmp_path / ".zarrmill"
    assert settings.scratch == tmp_path / ".zarrmill" / "scratch"
    assert settings.database_url is None
    assert settings.prefect_api_url is None
    assert settings.dask_address is None
    assert (settings.port, settings.archive_name, settings.publish_every_s) == (8321, "NEMAR", 900.0)
    assert settings.port == 8321


def test_every_variable_arrives_in_its_field(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = {
        "ZARRMILL_HOME": str(tmp_path / "h"),
        "ZARRMILL_DATABASE_URL": "postgresql://u:p@db.example.org/z",
        "ZARRMILL_DASK_ADDRESS": "tcp://10.0.0.5:8786",
        "ZARRMILL_DASK_TLS_CA": "/tls/ca.pem",
        "ZARRMILL_DASK_TLS_CERT": "/tls/cert.pem",
        "ZARRMILL_DASK_TLS_KEY": "/tls/key.pem",
        "ZARRMILL_DASK_TRUSTED_NETWORK": "true",
        "PREFECT_API_URL": "http://prefect.example.org:4200/api/",
        "ZARRMILL_PORT": "9000",
        "ZARRMILL_ARCHIVE_NAME": "Our archive",
        "ZARRMILL_CONTRACT_HOST": "https://zarr.example.org",
        "ZARRMILL_LARGEST_WORKER": "64GiB",
        "ZARRMILL_SCRATCH": str(tmp_path / "s"),
        "ZARRMILL_MEMORY_HEADROOM": "0.25",
        "ZARRMILL_SOURCE_ENDPOINT": "https://source.example.org",
        "ZARRMILL_SOURCE_REGION": "eu-west-1",
        "ZARRMILL_SOURCE_ANONYMOUS": "true",
        "ZARRMILL_KEEP_HISTORY_DAYS": "30",
        "ZARRMILL_PUBLISH_EVERY_S": "60",
        "ZARRMILL_RECORDING_TIMEOUT_S": "1800.5",
        "ZARRMILL_STOP_GRACE_S": "25",
        "ZARRMILL_VERIFY_WORKERS": "3",
        "ZARRMILL_VERIFY_AGAIN_DAYS": "7",
        "ZARRMILL_CALLBACK_URL": "https://api.example.org/ready",
        "ZARRMILL_CALLBACK_TOKEN": _SECRET,
        "ZARRMILL_DATASETS_AT_A_TIME": "5",
        "ZARRMILL_ALARM_URL": "https://chat.example.org/hook",
        "ZARRMILL_ALARM_TOKEN": f"{_SECRET}-of-alarms",
        "ZARRMILL_ALARM_STUCK_H": "6",
        "ZARRMILL_ALARM_CALLBACK_H": "1.5",
        "ZARRMILL_MAIL_HOST": "smtp.example.org",
        "ZARRMILL_MAIL_PORT": "465",
        "ZARRMILL_MAIL_SECURITY": "tls",
        "ZARRMILL_MAIL_USER": "zarrmill",
        "ZARRMILL_MAIL_PASSWORD": f"{_SECRET}-of-mail",
        "ZARRMILL_MAIL_FROM": "zarrmill@example.org",
        "ZARRMILL_MAIL_TO": "a@example.org, b@example.org",
        "AWS_ENDPOINT_URL": "https://s3.example.org",
        "AWS_DEFAULT_REGION": "us-east-2",
        "AWS_ACCESS_KEY_ID": "key-id",
        "AWS_SECRET_ACCESS_KEY": f"{_SECRET}-of-s3",
        "AWS_SESSION_TOKEN": f"{_SECRET}-of-session",
        "ZARRMILL_S3_CONCURRENCY": "4",
        "ZARRMILL_S3_TRIES": "3",
        "ZARRMILL_ENVIRONMENT": "development",
        "ZARRMILL_LISTEN": "10.0.0.5",
        "ZARRMILL_CORS_ORIGINS": "https://example.org, https://*.example.org",
        "ZARRMILL_TRUSTED_PROXIES": "10.0.0.0/8",
        "ZARRMILL_REDIRECT": "signed",
        "ZARRMILL_REQUESTS_PER_MINUTE": "60",
        "ZARRMILL_OBJECT_REQUESTS_PER_MINUTE": "600",
        "ZARRMILL_REQUESTS_AT_ONCE": "16",
        "ZARRMILL_WEBHOOK_TOKEN": f"{_SECRET}-of-webhook",
        "ZARRMILL_WEBHOOK_UNKNOWN": "refuse",
        "ZARRMILL_DASHBOARD_READS": "token",
        "ZARRMILL_ADMIN_TOKENS": f"ada:operate:{_SECRET}-of-ada, grafana:read:{_SECRET}-of-grafana",
    }
    assert set(given) == {Settings.variable(field) for field in Settings.model_fields}, "a setting is missing here"
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    assert settings.home == tmp_path / "h"
    assert settings.database_url is not None
    assert settings.database_url.get_secret_value() == "postgresql+psycopg://u:p@db.example.org/z"
    assert settings.dask_address == "tcp://10.0.0.5:8786"
    tls = (settings.dask_tls_ca, settings.dask_tls_cert, settings.dask_tls_key)
    assert tls == (Path("/tls/ca.pem"), Path("/tls/cert.pem"), Path("/tls/key.pem"))
    assert settings.dask_trusted_network
    assert settings.prefect_api_url == "http://prefect.example.org:4200/api"
    assert (settings.port, settings.archive_name, settings.contract_host) == (
        9000,
        "Our archive",
        "https://zarr.example.org",
    )
    assert settings.largest_worker_bytes == 64 * 2**30
    assert settings.scratch == tmp_path / "s"
    assert (settings.memory_headroom, settings.publish_every_s, settings.recording_timeout_s) == (0.25, 60.0, 1800.5)
    assert settings.callback_url == "https://api.example.org/ready"
    assert settings.callback_token is not None
    assert settings.callback_token.get_secret_value() == _SECRET
    assert (settings.s3_endpoint, settings.s3_region) == ("https://s3.example.org", "us-east-2")
    assert (settings.s3_concurrency, settings.s3_tries) == (4, 3)
    source = (settings.source_endpoint, settings.source_region, settings.source_anonymous)
    assert source == ("https://source.example.org", "eu-west-1", True)
    assert (settings.keep_history_days, settings.verify_workers, settings.verify_again_days) == (30, 3, 7)
    assert (settings.listen, settings.redirect, settings.webhook_unknown) == ("10.0.0.5", "signed", "refuse")
    assert settings.dashboard_reads == "token"
    assert settings.cors_origins == "https://example.org,https://*.example.org"
    assert [(one.who, one.scope) for one in settings.operators()] == [("ada", "operate"), ("grafana", "read")]
    secrets = {f"{_SECRET}-of-{what}" for what in ("s3", "session", "webhook", "ada", "grafana")}
    assert {"key-id", *secrets} <= set(settings.secret_values())
    assert (settings.datasets_at_a_time, settings.alarm_stuck_h, settings.alarm_callback_h) == (5, 6, 1.5)
    assert (settings.mail_host, settings.mail_port, settings.mail_security) == ("smtp.example.org", 465, "tls")
    assert (settings.mail_from, settings.mail_to) == ("zarrmill@example.org", "a@example.org,b@example.org")
    assert {f"{_SECRET}-of-alarms", f"{_SECRET}-of-mail"} <= set(settings.secret_values())
    assert _SECRET not in repr(settings) + repr(settings.operators())


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_any_usual_spelling_of_a_postgres_address_becomes_psycopg(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setenv("ZARRMILL_DATABASE_URL", f"{scheme}://u:p%40ss@h:5433/z?sslmode=require")
    url = load_settings().database_url
    assert url is not None
    assert url.get_secret_value() == "postgresql+psycopg://u:p%40ss@h:5433/z?sslmode=require"


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("ZARRMILL_HOME", "~no-such-user-here/x", "ZARRMILL_HOME"),
        ("ZARRMILL_DATABASE_URL", f"mysql://u:{_SECRET}@h/z", "not Postgres"),
        ("ZARRMILL_DATABASE_URL", f"postgresql+asyncpg://u:{_SECRET}@h/z", "not Postgres by psycopg"),
        ("ZARRMILL_DATABASE_URL", f"postgresql://u:{_SECRET}@h:port/z", "ZARRMILL_DATABASE_URL"),
        ("ZARRMILL_DATABASE_URL", f"postgresql://u:{_SECRET}@h", "names no database"),
        ("ZARRMILL_DATABASE_URL", _SECRET, "not the address"),
        ("ZARRMILL_DASK_ADDRESS", "tcp://10.0.0.5:8786", "ZARRMILL_DATABASE_URL"),
        ("ZARRMILL_DASK_ADDRESS", "10.0.0.5:8786", "tcp://"),
        ("ZARRMILL_DASK_TLS_CERT", "/tls/cert.pem", "belong together"),
        ("ZARRMILL_DASK_TRUSTED_NETWORK", "perhaps", "boolean"),
        ("PREFECT_API_URL", "localhost:4200/api", "PREFECT_API_URL"),
        ("PREFECT_API_URL", f"http://u:{_SECRET}@h/api", "must not hold"),
        ("PREFECT_API_URL", "http://h:99999/api", "not a web address"),
        ("ZARRMILL_PORT", "0", "ZARRMILL_PORT=8321"),
        ("ZARRMILL_PORT", "65536", "ZARRMILL_PORT"),
        ("ZARRMILL_PORT", "eighty", "integer"),
        ("ZARRMILL_LARGEST_WORKER", "64G", "64GiB or 64GB"),
        ("ZARRMILL_LARGEST_WORKER", "0", "ZARRMILL_LARGEST_WORKER"),
        ("ZARRMILL_MEMORY_HEADROOM", "1", "ZARRMILL_MEMORY_HEADROOM"),
        ("ZARRMILL_MEMORY_HEADROOM", "nan", "ZARRMILL_MEMORY_HEADROOM"),
        ("ZARRMILL_MEMORY_HEADROOM", "-0.1", "ZARRMILL_MEMORY_HEADROOM"),
        ("ZARRMILL_PUBLISH_EVERY_S", "0", "seconds above zero"),
        ("ZARRMILL_PUBLISH_EVERY_S", "inf", "seconds above zero"),
        ("ZARRMILL_RECORDING_TIMEOUT_S", "4h", "ZARRMILL_RECORDING_TIMEOUT_S"),
        ("ZARRMILL_CALLBACK_URL", "ftp://x", "http"),
        ("ZARRMILL_CALLBACK_TOKEN", _SECRET, "ZARRMILL_CALLBACK_URL"),
        ("ZARRMILL_CONTRACT_HOST", "zarr.example.org", "https://"),
        ("ZARRMILL_ARCHIVE_NAME", "x" * 101, "ZARRMILL_ARCHIVE_NAME"),
        ("ZARRMILL_ENVIRONMENT", "test", "production"),
        ("ZARRMILL_LISTEN", "a b", "ZARRMILL_LISTEN"),
        ("ZARRMILL_CORS_ORIGINS", "example.org", "https://*.example.org"),
        ("ZARRMILL_CORS_ORIGINS", "*,https://example.org", "origins"),
        ("ZARRMILL_TRUSTED_PROXIES", "proxy.example.org", "10.0.0.0/8"),
        ("ZARRMILL_REDIRECT", "always", "signed"),
        ("ZARRMILL_REQUESTS_PER_MINUTE", "0", "ZARRMILL_REQUESTS_PER_MINUTE"),
        ("ZARRMILL_WEBHOOK_TOKEN", "changeme", "openssl"),
        ("ZARRMILL_WEBHOOK_TOKEN", "a-long-random-token", "stands in examples"),
        ("ZARRMILL_ADMIN_TOKENS", _SECRET, "name:read:token"),
        ("ZARRMILL_ADMIN_TOKENS", f"ada:rule:{_SECRET}", "name:operate:token"),
        ("ZARRMILL_ADMIN_TOKENS", "ada:operate:short", "16 characters"),
        ("ZARRMILL_ADMIN_TOKENS", f"ada:operate:{_SECRET},bob:read:{_SECRET}", "two names"),
    ],
)
def test_a_wrong_value_is_refused_with_its_variable_and_never_shown_if_secret(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(Refused) as caught:
        load_settings()
    assert variable in caught.value.sentence
    assert re.search(re.escape(said), caught.value.sentence)
    assert re.search("unset|Set both|Set all", caught.value.sentence)
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + str(caught.value.detail)
    assert _SECRET not in told


def test_an_encrypted_address_without_certificates_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZARRMILL_DATABASE_URL", "postgresql://u@h/z")
    monkeypatch.setenv("ZARRMILL_DASK_ADDRESS", "tls://10.0.0.5:8786")
    with pytest.raises(Refused, match="ZARRMILL_DASK_TLS_CA"):
        load_settings()


@pytest.mark.parametrize(
    "given",
    [
        {"ZARRMILL_DATABASE_URL": "postgresql://zarrmill:zarrmill-development@h/z"},
        {"AWS_ACCESS_KEY_ID": "zarrmill", "AWS_SECRET_ACCESS_KEY": "zarrmill-development"},
        {"ZARRMILL_CALLBACK_URL": "https://a.example.org", "ZARRMILL_CALLBACK_TOKEN": "zarrmill-development"},
    ],
)
def test_a_published_secret_is_taken_in_development_alone(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Refused, match="ZARRMILL_ENVIRONMENT") as caught:
        load_settings()
    assert "zarrmill-development" not in caught.value.sentence
    monkeypatch.setenv("ZARRMILL_ENVIRONMENT", "development")
    load_settings()


def test_every_wrong_variable_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZARRMILL_PORT", "x")
    monkeypatch.setenv("ZARRMILL_LARGEST_WORKER", "much")
    with pytest.raises(Refused) as caught:
        load_settings()
    assert caught.value.sentence.count("cannot be used") == 2


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in Settings.model_fields:
        monkeypatch.setenv(Settings.variable(field), "")
    assert load_settings() == Settings()


def test_secrets_do_not_print(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZARRMILL_DATABASE_URL", f"postgresql://u:{_SECRET}@h/z")
    monkeypatch.setenv("ZARRMILL_CALLBACK_URL", "https://api.example.org/ready")
    monkeypatch.setenv("ZARRMILL_CALLBACK_TOKEN", _SECRET)
    settings = load_settings()
    for shown in (repr(settings), str(settings), str(settings.model_dump()), settings.model_dump_json()):
        assert _SECRET not in shown
    assert _SECRET in settings.secret_values()


def test_a_token_of_the_examples_is_taken_in_development_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZARRMILL_ADMIN_TOKENS", "ada:operate:secret")
    with pytest.raises(Refused, match="ZARRMILL_ENVIRONMENT=development"):
        load_settings()
    monkeypatch.setenv("ZARRMILL_ENVIRONMENT", "development")
    assert [one.token for one in load_settings().operators()] == ["secret"]


def test_settings_are_frozen_and_survive_a_process_border() -> None:
    settings = load_settings(port=9001)
    with pytest.raises(ValidationError):
        settings.port = 1  # type: ignore[misc]  # what is tried here must fail
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_a_given_field_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZARRMILL_PORT", "9000")
    assert load_settings(port=9001).port == 9001
    with pytest.raises(Refused, match="colour is not a setting"):
        load_settings(colour="red")


def test_a_misspelt_variable_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZARRMILL_DATABSE_URL", "postgresql://h/z")
    assert unknown_variables() == ["ZARRMILL_DATABSE_URL"]


def test_a_relative_folder_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZARRMILL_HOME", "state")
    assert load_settings().home == tmp_path / "state"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"CALLBACK_URL": "https://a.example.org,ftp://b"}, "CALLBACK_URL"),
        ({"CALLBACK_URL": "https://a.example.org,https://a.example.org"}, "each once"),
        ({"CALLBACK_URL": "https://a.example.org,https://b.example.org", "CALLBACK_TOKEN": "x,y,z"}, "one for each"),
        ({"ALARM_TOKEN": "x"}, "ZARRMILL_ALARM_URL is not"),
        ({"MAIL_HOST": "smtp.example.org"}, "Set all three"),
        ({"MAIL_PASSWORD": "secret"}, "needs ZARRMILL_MAIL_USER"),
        (
            {"MAIL_PASSWORD": "secret", "MAIL_USER": "u", "MAIL_SECURITY": "none"},
            "a line that is private",
        ),
        ({"MAIL_TO": "nobody"}, "mail addresses"),
    ],
)
def test_who_is_told_must_be_reachable_as_it_is_set(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], told: str
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(f"ZARRMILL_{name}", value)
    with pytest.raises(Refused, match=told):
        load_settings()


def test_each_address_has_its_token_or_all_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZARRMILL_CALLBACK_URL", "https://a.example.org/x, https://b.example.org/y")
    monkeypatch.setenv("ZARRMILL_CALLBACK_TOKEN", "one")
    tokens = [one.token.get_secret_value() for one in load_settings().callback_endpoints() if one.token]
    assert tokens == ["one", "one"]
    monkeypatch.setenv("ZARRMILL_CALLBACK_TOKEN", "one,two")
    settings = load_settings()
    assert [one.token.get_secret_value() for one in settings.callback_endpoints() if one.token] == ["one", "two"]
    assert {"one", "two", "one,two"} <= set(settings.secret_values())
    assert [one.name.partition("#")[0] for one in settings.callback_endpoints()] == [
        "https://a.example.org",
        "https://b.example.org",
    ]
