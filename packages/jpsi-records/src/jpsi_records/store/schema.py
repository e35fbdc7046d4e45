"""Defines the tables as this version of the package uses them; `migrations` holds the steps from old ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}

#: The revision of the newest migration.
HEAD = "0006"

#: The condition on executions that equal requests may join: at most one for each fingerprint.
LIVE = "is_shared = 1 AND state IN ('queued', 'claimed', 'running')"
#: The condition on attempts whose job has not ended: at most one for each execution.
OPEN = "ended_at IS NULL"


class Moment(sa.TypeDecorator[datetime]):
    """A time as text of fixed width, which sorts and compares the same in every database."""

    impl = sa.String(32)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> str | None:  # noqa: ARG002  SQLAlchemy's
        """Convert a time to the text that is stored."""
        return None if value is None else value.astimezone(UTC).isoformat(timespec="microseconds")

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> datetime | None:  # noqa: ARG002  as above
        """Convert the stored text to a time."""
        return None if value is None else datetime.fromisoformat(value)


class Document(sa.TypeDecorator[Any]):
    """A JSON value as text, the same in every database."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> str:  # noqa: ANN401, ARG002  any JSON value
        """Convert a JSON value to the text that is stored."""
        return json.dumps(value, ensure_ascii=False, sort_keys=True)

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> Any:  # noqa: ANN401, ARG002  as above
        """Convert the stored text to a JSON value."""
        return None if value is None else json.loads(value)


METADATA = sa.MetaData(naming_convention=NAMING)

EXECUTION = sa.Table(
    "execution",
    METADATA,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("fingerprint", sa.String(71), nullable=False),
    sa.Column("preimage", sa.Text, nullable=False),
    # The program, for finding near misses.
    sa.Column("program", sa.Text, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    # 1 if equal requests may join the execution before its end.
    sa.Column("is_shared", sa.Integer, nullable=False),
    sa.Column("priority", sa.Float, nullable=False),
    sa.Column("exit_code", sa.Integer),
    sa.Column("reason", sa.Text),
    sa.Column("progress", sa.Float, nullable=False),
    sa.Column("status", Document, nullable=False),
    sa.Column("recorded", Document, nullable=False),
    sa.Column("placement", Document, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("output", sa.String(71)),
    sa.Column("log", sa.String(71)),
    sa.Column("invalidated_by", sa.Text),
    sa.Column("holder", sa.Text),
    sa.Column("lease_until", Moment),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("started_at", Moment),
    sa.Column("finished_at", Moment),
    # Columns added by migrations come last, in the order in which `same_computation` returns them.
    sa.Column("modified_at", Moment, nullable=False),
    sa.Column("modified_by", sa.Text, nullable=False),
    sa.Index("ix_execution_fingerprint", "fingerprint"),
    sa.Index("ix_execution_program", "program", "created_at"),
    sa.Index("ix_execution_state", "state", "priority"),
    sa.Index(
        "uq_execution_live",
        "fingerprint",
        unique=True,
        sqlite_where=sa.text(LIVE),
        postgresql_where=sa.text(LIVE),
    ),
)

REQUEST = sa.Table(
    "request",
    METADATA,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("request_spec", Document, nullable=False),
    sa.Column("priority", sa.Float),
    sa.Column("expires_at", Moment),
    sa.Column("parent", sa.String(36), sa.ForeignKey("execution.id")),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("labels", Document, nullable=False),
    sa.Column("execution", sa.String(36), sa.ForeignKey("execution.id")),
    sa.Column("outcome", sa.String(32)),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("modified_at", Moment, nullable=False),
    sa.Column("modified_by", sa.Text, nullable=False),
    sa.Index("ix_request_execution", "execution"),
    sa.Index("ix_request_parent", "parent"),
    sa.Index("ix_request_owner", "owner", "created_at"),
    sa.Index("ix_request_expires_at", "state", "expires_at"),
)

#: The condition on requests that were committed and are not final.
UNFINISHED = REQUEST.c.state.in_(["committed", "cancelled"])

ATTEMPT = sa.Table(
    "attempt",
    METADATA,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("execution", sa.String(36), sa.ForeignKey("execution.id"), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("executor", sa.Text, nullable=False),
    sa.Column("job", sa.String(36), nullable=False),
    sa.Column("native_id", sa.Text),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("exit_code", sa.Integer),
    sa.Column("reason", sa.Text),
    sa.Column("message", sa.Text),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("ended_at", Moment),
    sa.UniqueConstraint("execution", "number"),
    sa.Index(
        "uq_attempt_open",
        "execution",
        unique=True,
        sqlite_where=sa.text(OPEN),
        postgresql_where=sa.text(OPEN),
    ),
)

EVENT = sa.Table(
    "event",
    METADATA,
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("time", Moment, nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("request", sa.String(36)),
    sa.Column("execution", sa.String(36)),
    # For accounting events: the values from this time on.
    sa.Column("owner", sa.Text),
    sa.Column("priority", sa.Float),
    sa.Column("state", sa.String(16)),
    sa.Column("data", Document, nullable=False),
    sa.Index("ix_event_request", "request"),
    sa.Index("ix_event_execution", "execution"),
    sqlite_autoincrement=True,
)

COLLECTION = sa.Table(
    "collection",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("digest", sa.String(71), nullable=False),
    sa.Column("modified_at", Moment, nullable=False),
    sa.Column("modified_by", sa.Text, nullable=False),
)

#: The dispatchers that run, by the names of their processes.
DISPATCHER = sa.Table(
    "dispatcher",
    METADATA,
    sa.Column("holder", sa.Text, primary_key=True),
    sa.Column("lease_until", Moment, nullable=False),
)

#: A view of the accounting events as intervals without a change.
ACCOUNTING = sa.table(
    "accounting",
    sa.column("execution", sa.String(36)),
    sa.column("start_time", Moment),
    sa.column("end_time", Moment),
    sa.column("owner", sa.Text),
    sa.column("request", sa.String(36)),
    sa.column("priority", sa.Float),
    sa.column("state", sa.String(16)),
)
