"""In PostgreSQL the numbers of events are given by the database alone.

A number that a user has chosen could be that which the dispatcher's next event gets.
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"

_GIVEN = "time, kind, request, execution, owner, priority, state, data"


def upgrade() -> None:
    """Let users write everything else of an event, as far as row security allows it."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("REVOKE INSERT ON event FROM PUBLIC")
        op.execute(f"GRANT INSERT ({_GIVEN}) ON event TO PUBLIC")
