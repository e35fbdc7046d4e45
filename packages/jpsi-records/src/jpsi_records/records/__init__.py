"""`Records`, the interface that applications and commands open.

Queries, previews, requests and their changes, and the copies beside the files of jobs from which a lost
database is restored.
"""

from .copies import keep_copy, reindex
from .queries import Reading
from .records import Records

__all__ = [
    "Reading",
    "Records",
    "keep_copy",
    "reindex",
]
