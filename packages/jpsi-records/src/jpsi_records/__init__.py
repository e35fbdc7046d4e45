"""Requests and records: ask for a result, and run only what is not there yet.

>>> import tempfile
>>> from jpsi_records import Dispatcher, Records, read_request_spec
>>> with tempfile.TemporaryDirectory() as directory, Records(directory) as records:
...     spec = read_request_spec({"command": ["sh", "-c", "exit 3"]})
...     request = records.submit(spec)
...     Dispatcher(records).run(until_idle=True)
...     records.execution(request.execution).exit_code
3
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .dispatch import *
    from .errors import *
    from .inbox import *
    from .model import *
    from .records import *
    from .reuse import *

__all__ = [
    "About",
    "Attempt",
    "ChangedError",
    "Computation",
    "Difference",
    "Dispatcher",
    "Event",
    "Execution",
    "ExecutionState",
    "Inbox",
    "Interval",
    "InvalidRequestError",
    "NearMiss",
    "NotFoundError",
    "NothingToReuseError",
    "Placement",
    "Plan",
    "Purity",
    "Records",
    "RecordsError",
    "Report",
    "Request",
    "RequestResult",
    "RequestSpec",
    "RequestState",
    "Reuse",
    "StateError",
    "StoreError",
    "Topology",
    "read_request_spec",
    "write_request_spec",
]

if not TYPE_CHECKING:
    from jpsi.plugin.engine import door

    # `jpsi --help` imports this package and needs no database, so names are imported at their first use.
    _rooms = ["errors", "model", "inbox", "records", "reuse", "dispatch"]
    __getattr__, __dir__ = door(__name__, __all__, [f"{__name__}.{it}" for it in _rooms])
