"""Row security in PostgreSQL: a role that does not own the tables reads and writes its own rows only.

The owner of the tables, and every member of that role, is the dispatcher: row security does not hold for it.
Every other role that can connect may make requests; the dispatcher writes their executions.
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"

_HAS_REQUEST = "EXISTS (SELECT FROM request AS mine WHERE mine.id = event.request)"
_HAS_EXECUTION = "EXISTS (SELECT FROM execution AS mine WHERE mine.id = event.execution)"
# The columns that only the dispatcher changes once a request is committed. The owner may change them in a
# draft.
_FIXED = "state, request_spec, expires_at, name, description, labels"
_TABLES = ("request", "execution", "attempt", "event", "collection")

_STATEMENTS = (
    *(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY" for table in _TABLES),
    *(f"GRANT SELECT ON {table} TO PUBLIC" for table in (*_TABLES, "alembic_version")),
    "GRANT INSERT ON request, event, collection TO PUBLIC",
    "GRANT USAGE ON SEQUENCE event_seq_seq TO PUBLIC",
    f"GRANT UPDATE ({_FIXED}, priority, modified_at, modified_by) ON request TO PUBLIC",
    "GRANT UPDATE ON collection TO PUBLIC",
    "CREATE POLICY own ON request FOR SELECT USING (owner = current_user)",
    """
    CREATE POLICY new ON request FOR INSERT WITH CHECK (
        owner = current_user AND modified_by = current_user AND state = 'draft'
        AND priority IS NULL AND execution IS NULL AND outcome IS NULL
        AND (parent IS NULL OR EXISTS (SELECT FROM execution WHERE execution.id = request.parent))
    )
    """,
    """
    CREATE POLICY change ON request FOR UPDATE
    USING (owner = current_user AND state <> 'final')
    WITH CHECK (owner = current_user AND modified_by = current_user AND state IN ('draft', 'committed'))
    """,
    """
    CREATE FUNCTION only_the_priority_changes() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF row_security_active('request') THEN
            RAISE EXCEPTION 'of a committed request only the priority changes';
        END IF;
        RETURN NEW;
    END $$
    """,
    f"""
    CREATE TRIGGER committed BEFORE UPDATE ON request FOR EACH ROW
    WHEN (
        old.state = 'committed' AND ({", ".join(f"old.{it}" for it in _FIXED.split(", "))})
        IS DISTINCT FROM ({", ".join(f"new.{it}" for it in _FIXED.split(", "))})
    )
    EXECUTE FUNCTION only_the_priority_changes()
    """,
    """
    CREATE POLICY of_own_requests ON execution FOR SELECT
    USING (EXISTS (SELECT FROM request WHERE request.execution = execution.id))
    """,
    """
    CREATE POLICY of_own_requests ON attempt FOR SELECT
    USING (EXISTS (SELECT FROM execution WHERE execution.id = attempt.execution))
    """,
    f"""
    CREATE POLICY of_own_requests ON event FOR SELECT USING (
        CASE WHEN request IS NOT NULL THEN {_HAS_REQUEST} ELSE execution IS NULL OR {_HAS_EXECUTION} END
    )
    """,
    f"""
    CREATE POLICY new ON event FOR INSERT WITH CHECK (
        execution IS NULL AND owner IS NULL
        AND CASE WHEN request IS NULL THEN kind = 'named'
                 ELSE kind IN ('created', 'committed', 'priority') AND {_HAS_REQUEST} END
    )
    """,
    "CREATE POLICY everybody ON collection FOR SELECT USING (true)",
    "CREATE POLICY new ON collection FOR INSERT WITH CHECK (modified_by = current_user)",
    "CREATE POLICY change ON collection FOR UPDATE USING (modified_by = current_user)",
    # A user who knows a whole computation may know whether it was run; file permissions protect its output.
    """
    CREATE FUNCTION same_computation(wanted text[]) RETURNS SETOF execution
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
    AS 'SELECT * FROM execution WHERE fingerprint = ANY (wanted)'
    """,
)
# The first version of PostgreSQL in which a view can be read with the rights of the reader, not of its owner.
_VIEWS_OF_READERS = 15_00_00


def upgrade() -> None:
    """Turn row security on in PostgreSQL; SQLite has the permissions of its file."""
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    for statement in _STATEMENTS:
        op.execute(statement)
    if int(connection.exec_driver_sql("SHOW server_version_num").scalar() or 0) >= _VIEWS_OF_READERS:
        op.execute("ALTER VIEW accounting SET (security_invoker = true)")
        op.execute("GRANT SELECT ON accounting TO PUBLIC")
