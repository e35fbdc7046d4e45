"""The database of the records: connection, schema, migrations, and reads and writes in transactions.

`executions`, `requests` and `events` read and write the tables; `ledger` adds the consequences of a change
(priorities, ends, accounting). All of them take the caller's transaction.
"""

from . import dispatchers, events, executions, ledger, requests
from .database import Database, Transaction, sqlite_path, utc_now
from .database_setup import open_database
from .file_lock import describe_process, name_of_this_process
from .rows import full_id, row_of
from .schema import ACCOUNTING, ATTEMPT, COLLECTION, EVENT, EXECUTION, REQUEST, Moment
