"""The last change of an execution: its time and its role."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add both; of older executions the role is not known, and the time is that of the last known change."""
    op.add_column("execution", sa.Column("modified_at", sa.String(32), nullable=False, server_default=""))
    op.add_column("execution", sa.Column("modified_by", sa.Text, nullable=False, server_default=""))
    op.execute("UPDATE execution SET modified_at = COALESCE(finished_at, started_at, created_at)")
