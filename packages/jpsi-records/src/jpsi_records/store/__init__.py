"""The database of the records: connection, schema, migrations, and reads and writes in transactions.

`executions`, `requests` and `events` read and write the tables; `ledger` adds the consequences of a change
(priorities, ends, accounting). All of them take the connection of the caller's transaction.
"""

from . import events, executions, ledger, requests
from .database import Changed, Database, changed_in, sqlite_path
from .database_setup import UnmadeDatabase, open_database
from .id_prefix import full_id
from .process_identity import describe_process, name_of_this_process, process_has_ended
from .rows import attempt_row, execution_row, request_row
from .schema import ACCOUNTING, ATTEMPT, COLLECTION, EVENT, EXECUTION, REQUEST, Moment
