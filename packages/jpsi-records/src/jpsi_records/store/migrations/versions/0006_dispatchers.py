"""Adds a table of the dispatchers that run, which users may read."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "dispatcher",
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("lease_until", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("holder", name="pk_dispatcher"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("GRANT SELECT ON dispatcher TO PUBLIC")
