"""Lets only the database number events, in PostgreSQL.

A user could otherwise choose the number that the next event of the dispatcher gets, which then could not be
added.
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"

_WRITABLE_COLUMNS = "time, kind, request, execution, owner, priority, state, data"


def upgrade() -> None:
    """Let users write all other columns of an event, as far as row security allows it."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("REVOKE INSERT ON event FROM PUBLIC")
        op.execute(f"GRANT INSERT ({_WRITABLE_COLUMNS}) ON event TO PUBLIC")
