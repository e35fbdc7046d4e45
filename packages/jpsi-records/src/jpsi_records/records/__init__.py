"""`Records`, the interface that applications and commands open.

Queries, previews, requests and their changes, and the copies beside the files of jobs from which a lost
database is restored.
"""

from .copies import reindex, write_copy
from .queries import RecordsReader
from .records import Records
