"""Gives requests that were cancelled a state of their own, `cancelled`, from which their users may return."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"

# Only `set_priority` adds such an event to a request. One that had priority zero from the start is held.
_CANCEL = """
    UPDATE request SET state = 'cancelled' WHERE state = 'committed' AND priority <= 0
    AND EXISTS (SELECT 1 FROM event WHERE event.request = request.id AND event.kind = 'priority')
"""
# The columns that no user may change once a request is committed.
_FIXED = ("request_spec", "expires_at", "name", "description", "labels")
_STATEMENTS = (
    "DROP POLICY change ON request",
    """
    CREATE POLICY change ON request FOR UPDATE
    USING (owner = current_user AND state <> 'final')
    WITH CHECK (
        owner = current_user AND modified_by = current_user AND state IN ('draft', 'committed', 'cancelled')
        AND (state <> 'cancelled' OR priority <= 0)
    )
    """,
    "DROP TRIGGER committed ON request",
    f"""
    CREATE TRIGGER committed BEFORE UPDATE ON request FOR EACH ROW
    WHEN (
        old.state IN ('committed', 'cancelled') AND (
            new.state NOT IN ('committed', 'cancelled')
            OR ({", ".join(f"old.{it}" for it in _FIXED)})
            IS DISTINCT FROM ({", ".join(f"new.{it}" for it in _FIXED)})
        )
    )
    EXECUTE FUNCTION only_the_priority_changes()
    """,
)


def upgrade() -> None:
    """Change the states of requests, and in PostgreSQL which states their users may set."""
    op.execute(_CANCEL)
    if op.get_bind().dialect.name == "postgresql":
        for statement in _STATEMENTS:
            op.execute(statement)
