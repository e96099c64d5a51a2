"""How Alembic reaches the database: by the connection that ``db.migrate`` hands over, inside its transaction."""

from __future__ import annotations

from alembic import context

from db.models import Base

context.configure(
    connection=context.config.attributes["connection"], target_metadata=Base.metadata, compare_server_default=True
)
with context.begin_transaction():
    context.run_migrations()
