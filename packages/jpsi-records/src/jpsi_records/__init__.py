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
else:
    from jpsi.plugin.engine import lazy_attributes

    # `jpsi --help` imports this package and needs no database, so names are imported at their first use.
    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".dispatch": "Dispatcher",
            ".errors": (
                "ChangedError InvalidRequestError NotFoundError NothingToReuseError RecordsError "
                "StateError StoreError"
            ),
            ".inbox": "Inbox Report RequestResult",
            ".model": (
                "About Attempt Computation Event Execution ExecutionState Interval Placement Purity Request "
                "RequestSpec RequestState Reuse Topology read_request_spec write_request_spec"
            ),
            ".records": "Records",
            ".reuse": "Difference NearMiss Plan",
        },
    )

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
