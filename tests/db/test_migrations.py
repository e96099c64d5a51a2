"""The migrations make exactly what the models say, on every version of Postgres that is tested, however many ask at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, NullPool, create_engine, text

import db.migrations
from contract.errors import Refused
from db import migrate
from db.models import Base

_CATALOGUE = """
    SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid) || ' ' || condeferred
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
    UNION ALL
    SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL
    SELECT 'column', table_name, column_name,
           concat_ws(' ', data_type, is_nullable, column_default, collation_name, identity_generation)
    FROM information_schema.columns WHERE table_schema = 'public'
"""


def _catalogue(c: Connection) -> set[tuple[str, ...]]:
    return {tuple(row) for row in c.execute(text(_CATALOGUE)) if row[1] != "alembic_version"}


@pytest.mark.postgres_versions
def test_migrations_make_what_the_models_say(engine: Engine, servers: Any, postgres_version: int) -> None:
    server = servers.get(postgres_version)
    name = f"from_models_{postgres_version}"
    server.create_database(name)
    modelled = create_engine(server.url(name), poolclass=NullPool)
    try:
        with modelled.begin() as c:
            c.execute(text("CREATE FUNCTION zarrmill_now() RETURNS timestamptz LANGUAGE sql AS 'SELECT now()'"))
            Base.metadata.create_all(c)
            expected = _catalogue(c)
    finally:
        server.drop_database(name)
    with engine.connect() as c:
        assert c.dialect.server_version_info is not None
        assert c.dialect.server_version_info[0] == postgres_version
        differences = compare_metadata(
            MigrationContext.configure(c, opts={"compare_server_default": True}), Base.metadata
        )
        assert differences == []
        assert _catalogue(c) == expected


def test_the_written_head_is_alembics_head() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(db.migrations.__file__).parent))
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_current_head() == migrate.HEAD


def test_commands_that_start_together_migrate_once(servers: Any) -> None:
    server = servers.get(18)
    server.create_database("together")
    url = server.url("together")
    try:
        assert migrate.current(url) is None
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(migrate.upgrade, [url] * 4))
        assert migrate.current(url) == migrate.HEAD
    finally:
        server.drop_database("together")


def test_a_database_of_a_newer_version_is_refused(engine: Engine, database_url: str) -> None:
    with engine.begin() as c:
        c.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(Refused, match="newer"):
        migrate.upgrade(database_url)
    assert migrate.current(database_url) == "9999"


def test_the_clock_can_be_stopped_and_otherwise_moves_within_a_transaction(engine: Engine) -> None:
    with engine.begin() as c:
        first, second = (c.scalar(text("SELECT zarrmill_now()")) for _ in range(2))
        assert first < second
        c.execute(text("SELECT set_config('zarrmill.clock', '2026-03-01T00:00:00Z', true)"))
        stopped = {c.scalar(text("SELECT zarrmill_now()")) for _ in range(2)}
        assert len(stopped) == 1
    with engine.begin() as c:
        assert c.scalar(text("SELECT zarrmill_now()")) > second
