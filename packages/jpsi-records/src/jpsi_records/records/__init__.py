"""The public interface of the package: `Records`, which applications and `jpsi request` open.

`Records` makes and changes requests; `RecordsReader` has the queries and previews only. `copies` writes a
copy of each record beside the files of the jobs; `jpsi request reindex` restores a lost database from these
copies. `read_log` reads what their jobs have printed.
"""

from .copies import reindex, write_copy
from .queries import LOG_NAMES, RecordsReader, read_log
from .records import Records
