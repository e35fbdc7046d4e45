"""The tables as this version of the package defines them; migrations/ holds the steps that led here."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    Column,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    column,
    table,
    text,
)

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}

#: The revision of the newest migration.
HEAD = "0004"

#: The condition on executions that equal requests may join: at most one for each fingerprint.
LIVE = "is_shared = 1 AND state IN ('queued', 'claimed', 'running')"
#: The condition on attempts whose job has not ended: at most one for each execution.
OPEN = "ended_at IS NULL"


class Moment(TypeDecorator[datetime]):
    """A time as text of fixed width, which sorts and compares the same in every database."""

    impl = String(32)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:  # noqa: ARG002  SQLAlchemy's
        """Convert a time to the text that is stored."""
        return None if value is None else value.astimezone(UTC).isoformat(timespec="microseconds")

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002  as above
        """Convert the stored text to a time."""
        return None if value is None else datetime.fromisoformat(value)


class Document(TypeDecorator[Any]):
    """A JSON value as text, the same in every database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:  # noqa: ANN401, ARG002  any JSON value
        """Convert a JSON value to the text that is stored."""
        return json.dumps(value, ensure_ascii=False, sort_keys=True)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ANN401, ARG002  as above
        """Convert the stored text to a JSON value."""
        return None if value is None else json.loads(value)


METADATA = MetaData(naming_convention=NAMING)

EXECUTION = Table(
    "execution",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("fingerprint", String(71), nullable=False),
    Column("preimage", Text, nullable=False),
    # The program, for finding near misses.
    Column("program", Text, nullable=False),
    Column("state", String(16), nullable=False),
    # 1 if equal requests may join the execution before its end.
    Column("is_shared", Integer, nullable=False),
    Column("priority", Float, nullable=False),
    Column("exit_code", Integer),
    Column("reason", Text),
    Column("progress", Float, nullable=False),
    Column("status", Document, nullable=False),
    Column("recorded", Document, nullable=False),
    Column("placement", Document, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("output", String(71)),
    Column("log", String(71)),
    Column("invalidated_by", Text),
    Column("holder", Text),
    Column("lease_until", Moment),
    Column("created_at", Moment, nullable=False),
    Column("started_at", Moment),
    Column("finished_at", Moment),
    # Columns added by migrations come last, in the order in which `same_computation` returns them.
    Column("modified_at", Moment, nullable=False),
    Column("modified_by", Text, nullable=False),
    Index("ix_execution_fingerprint", "fingerprint"),
    Index("ix_execution_program", "program", "created_at"),
    Index("ix_execution_state", "state", "priority"),
    Index(
        "uq_execution_live",
        "fingerprint",
        unique=True,
        sqlite_where=text(LIVE),
        postgresql_where=text(LIVE),
    ),
)

REQUEST = Table(
    "request",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("wish", Document, nullable=False),
    Column("priority", Float),
    Column("expires_at", Moment),
    Column("parent", String(36), ForeignKey("execution.id")),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("labels", Document, nullable=False),
    Column("execution", String(36), ForeignKey("execution.id")),
    Column("outcome", String(32)),
    Column("created_at", Moment, nullable=False),
    Column("modified_at", Moment, nullable=False),
    Column("modified_by", Text, nullable=False),
    Index("ix_request_execution", "execution"),
    Index("ix_request_parent", "parent"),
    Index("ix_request_owner", "owner", "created_at"),
    Index("ix_request_expires_at", "state", "expires_at"),
)

ATTEMPT = Table(
    "attempt",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("execution", String(36), ForeignKey("execution.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("executor", Text, nullable=False),
    Column("job", String(36), nullable=False),
    Column("native_id", Text),
    Column("state", String(16), nullable=False),
    Column("exit_code", Integer),
    Column("reason", Text),
    Column("message", Text),
    Column("created_at", Moment, nullable=False),
    Column("ended_at", Moment),
    UniqueConstraint("execution", "number"),
    Index("uq_attempt_open", "execution", unique=True, sqlite_where=text(OPEN), postgresql_where=text(OPEN)),
)

EVENT = Table(
    "event",
    METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("time", Moment, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("request", String(36)),
    Column("execution", String(36)),
    # For accounting events: the values from this time on.
    Column("owner", Text),
    Column("priority", Float),
    Column("state", String(16)),
    Column("data", Document, nullable=False),
    Index("ix_event_request", "request"),
    Index("ix_event_execution", "execution"),
    sqlite_autoincrement=True,
)

COLLECTION = Table(
    "collection",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("digest", String(71), nullable=False),
    Column("modified_at", Moment, nullable=False),
    Column("modified_by", Text, nullable=False),
)

#: A view of the accounting events as intervals without a change.
ACCOUNTING = table(
    "accounting",
    column("execution", String(36)),
    column("start_time", Moment),
    column("end_time", Moment),
    column("owner", Text),
    column("request", String(36)),
    column("priority", Float),
    column("state", String(16)),
)
