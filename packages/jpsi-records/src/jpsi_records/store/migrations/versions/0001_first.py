"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_LIVE = "is_shared = 1 AND state IN ('queued', 'claimed', 'running')"
_OPEN = "ended_at IS NULL"
_MOMENT, _ID, _DIGEST = sa.String(32), sa.String(36), sa.String(71)


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "execution",
        sa.Column("id", _ID, nullable=False),
        sa.Column("fingerprint", _DIGEST, nullable=False),
        sa.Column("preimage", sa.Text, nullable=False),
        sa.Column("program", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("is_shared", sa.Integer, nullable=False),
        sa.Column("priority", sa.Float, nullable=False),
        sa.Column("exit_code", sa.Integer),
        sa.Column("reason", sa.Text),
        sa.Column("progress", sa.Float, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("recorded", sa.Text, nullable=False),
        sa.Column("placement", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("output", _DIGEST),
        sa.Column("log", _DIGEST),
        sa.Column("invalidated_by", sa.Text),
        sa.Column("holder", sa.Text),
        sa.Column("lease_until", _MOMENT),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("started_at", _MOMENT),
        sa.Column("finished_at", _MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_execution"),
    )
    op.create_index("ix_execution_fingerprint", "execution", ["fingerprint"])
    op.create_index("ix_execution_program", "execution", ["program", "created_at"])
    op.create_index("ix_execution_state", "execution", ["state", "priority"])
    op.create_index(
        "uq_execution_live",
        "execution",
        ["fingerprint"],
        unique=True,
        sqlite_where=sa.text(_LIVE),
        postgresql_where=sa.text(_LIVE),
    )
    op.create_table(
        "request",
        sa.Column("id", _ID, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("wish", sa.Text, nullable=False),
        sa.Column("priority", sa.Float),
        sa.Column("expires_at", _MOMENT),
        sa.Column("parent", _ID),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("labels", sa.Text, nullable=False),
        sa.Column("execution", _ID),
        sa.Column("outcome", sa.String(32)),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("modified_at", _MOMENT, nullable=False),
        sa.Column("modified_by", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_request"),
        sa.ForeignKeyConstraint(["parent"], ["execution.id"], name="fk_request_parent"),
        sa.ForeignKeyConstraint(["execution"], ["execution.id"], name="fk_request_execution"),
    )
    op.create_index("ix_request_execution", "request", ["execution"])
    op.create_index("ix_request_parent", "request", ["parent"])
    op.create_index("ix_request_owner", "request", ["owner", "created_at"])
    op.create_index("ix_request_expires_at", "request", ["state", "expires_at"])
    op.create_table(
        "attempt",
        sa.Column("id", _ID, nullable=False),
        sa.Column("execution", _ID, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("executor", sa.Text, nullable=False),
        sa.Column("job", _ID, nullable=False),
        sa.Column("native_id", sa.Text),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("exit_code", sa.Integer),
        sa.Column("reason", sa.Text),
        sa.Column("message", sa.Text),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("ended_at", _MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_attempt"),
        sa.ForeignKeyConstraint(["execution"], ["execution.id"], name="fk_attempt_execution"),
        sa.UniqueConstraint("execution", "number", name="uq_attempt_execution_number"),
    )
    op.create_index(
        "uq_attempt_open",
        "attempt",
        ["execution"],
        unique=True,
        sqlite_where=sa.text(_OPEN),
        postgresql_where=sa.text(_OPEN),
    )
    op.create_table(
        "event",
        sa.Column("seq", sa.Integer, autoincrement=True, nullable=False),
        sa.Column("time", _MOMENT, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("request", _ID),
        sa.Column("execution", _ID),
        sa.Column("owner", sa.Text),
        sa.Column("priority", sa.Float),
        sa.Column("state", sa.String(16)),
        sa.Column("data", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_event"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_event_request", "event", ["request"])
    op.create_index("ix_event_execution", "event", ["execution"])
    op.create_table(
        "collection",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("digest", _DIGEST, nullable=False),
        sa.Column("modified_at", _MOMENT, nullable=False),
        sa.Column("modified_by", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_collection"),
    )
    op.execute(
        """
        CREATE VIEW accounting AS
        SELECT execution, start_time, end_time, owner, request, priority, state
        FROM (
            SELECT execution, time AS start_time,
                   LEAD(time) OVER (PARTITION BY request ORDER BY seq) AS end_time,
                   owner, request, priority, state
            FROM event
            WHERE kind = 'accounting'
        ) AS intervals
        WHERE state IN ('queued', 'claimed', 'running')
        """
    )


def downgrade() -> None:
    """Remove them."""
    op.execute("DROP VIEW accounting")
    for name in ("collection", "event", "attempt", "request", "execution"):
        op.drop_table(name)
