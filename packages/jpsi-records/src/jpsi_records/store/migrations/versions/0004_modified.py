"""Adds the time of an execution's last change, and the role that made it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add both columns. Older executions get the time of their last known change, and no role."""
    op.add_column("execution", sa.Column("modified_at", sa.String(32), nullable=False, server_default=""))
    op.add_column("execution", sa.Column("modified_by", sa.Text, nullable=False, server_default=""))
    op.execute("UPDATE execution SET modified_at = COALESCE(finished_at, started_at, created_at)")
