"""What a run was asked, why each attempt was made, and the report that a run left."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # psycopg runs many statements at once only without parameters, which SQLAlchemy always passes
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))
