"""Creates the first tables."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None

_LIVE = "is_shared = 1 AND state IN ('queued', 'claimed', 'running')"
_SEQUENCE = {
    "sqlite": "INTEGER NOT NULL CONSTRAINT pk_event PRIMARY KEY AUTOINCREMENT",
    "postgresql": "SERIAL NOT NULL CONSTRAINT pk_event PRIMARY KEY",
}
_STATEMENTS = (
    """
    CREATE TABLE execution (
        id VARCHAR(36) NOT NULL CONSTRAINT pk_execution PRIMARY KEY,
        fingerprint VARCHAR(71) NOT NULL, preimage TEXT NOT NULL, program TEXT NOT NULL,
        state VARCHAR(16) NOT NULL, is_shared INTEGER NOT NULL, priority FLOAT NOT NULL,
        exit_code INTEGER, reason TEXT, progress FLOAT NOT NULL, status TEXT NOT NULL,
        recorded TEXT NOT NULL, placement TEXT NOT NULL, attempts INTEGER NOT NULL,
        output VARCHAR(71), log VARCHAR(71), invalidated_by TEXT, holder TEXT, lease_until VARCHAR(32),
        created_at VARCHAR(32) NOT NULL, started_at VARCHAR(32), finished_at VARCHAR(32)
    )
    """,
    "CREATE INDEX ix_execution_fingerprint ON execution (fingerprint)",
    "CREATE INDEX ix_execution_program ON execution (program, created_at)",
    "CREATE INDEX ix_execution_state ON execution (state, priority)",
    f"CREATE UNIQUE INDEX uq_execution_live ON execution (fingerprint) WHERE {_LIVE}",
    """
    CREATE TABLE request (
        id VARCHAR(36) NOT NULL CONSTRAINT pk_request PRIMARY KEY,
        owner TEXT NOT NULL, state VARCHAR(16) NOT NULL, request_spec TEXT NOT NULL,
        priority FLOAT, expires_at VARCHAR(32),
        parent VARCHAR(36) CONSTRAINT fk_request_parent REFERENCES execution (id),
        name TEXT NOT NULL, description TEXT NOT NULL, labels TEXT NOT NULL,
        execution VARCHAR(36) CONSTRAINT fk_request_execution REFERENCES execution (id),
        outcome VARCHAR(32), created_at VARCHAR(32) NOT NULL, modified_at VARCHAR(32) NOT NULL,
        modified_by TEXT NOT NULL
    )
    """,
    "CREATE INDEX ix_request_execution ON request (execution)",
    "CREATE INDEX ix_request_parent ON request (parent)",
    "CREATE INDEX ix_request_owner ON request (owner, created_at)",
    "CREATE INDEX ix_request_expires_at ON request (state, expires_at)",
    """
    CREATE TABLE attempt (
        id VARCHAR(36) NOT NULL CONSTRAINT pk_attempt PRIMARY KEY,
        execution VARCHAR(36) NOT NULL CONSTRAINT fk_attempt_execution REFERENCES execution (id),
        number INTEGER NOT NULL, executor TEXT NOT NULL, job VARCHAR(36) NOT NULL, native_id TEXT,
        state VARCHAR(16) NOT NULL, exit_code INTEGER, reason TEXT, message TEXT,
        created_at VARCHAR(32) NOT NULL, ended_at VARCHAR(32),
        CONSTRAINT uq_attempt_execution_number UNIQUE (execution, number)
    )
    """,
    "CREATE UNIQUE INDEX uq_attempt_open ON attempt (execution) WHERE ended_at IS NULL",
    """
    CREATE TABLE event (
        seq {sequence},
        time VARCHAR(32) NOT NULL, kind VARCHAR(32) NOT NULL, request VARCHAR(36), execution VARCHAR(36),
        owner TEXT, priority FLOAT, state VARCHAR(16), data TEXT NOT NULL
    )
    """,
    "CREATE INDEX ix_event_request ON event (request)",
    "CREATE INDEX ix_event_execution ON event (execution)",
    """
    CREATE TABLE collection (
        name TEXT NOT NULL CONSTRAINT pk_collection PRIMARY KEY, digest VARCHAR(71) NOT NULL,
        modified_at VARCHAR(32) NOT NULL, modified_by TEXT NOT NULL
    )
    """,
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
    """,
)


def upgrade() -> None:
    """Create the tables."""
    sequence = _SEQUENCE[op.get_bind().dialect.name]
    for statement in _STATEMENTS:
        op.execute(statement.replace("{sequence}", sequence))
