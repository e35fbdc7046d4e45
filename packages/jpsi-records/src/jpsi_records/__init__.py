"""Requests and records: ask for a result, and run only what is not there yet.

>>> import tempfile
>>> from jpsi_records import Dispatcher, Records, read_wish
>>> with tempfile.TemporaryDirectory() as directory, Records(directory) as records:
...     wish = read_wish({"command": ["sh", "-c", "exit 3"]})
...     request = records.submit(wish)
...     Dispatcher(records).run(until_idle=True)
...     records.execution(request.execution).exit_code
3
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .computation import Computation, Purity, Topology
    from .dispatcher import Dispatcher
    from .errors import (
        ChangedError,
        InvalidRequestError,
        NotFoundError,
        NothingToReuseError,
        RecordsError,
        StateError,
        StoreError,
    )
    from .inbox import Inbox
    from .matching import NearMiss
    from .model import About, Attempt, Event, Execution, ExecutionState, Interval, Request, RequestState
    from .placement import Placement
    from .planning import Plan
    from .preimage import Difference
    from .records import Records
    from .reports import Report
    from .results import RequestResult
    from .wish import Reuse, Wish, read_wish, write_wish

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
    "RequestState",
    "Reuse",
    "StateError",
    "StoreError",
    "Topology",
    "Wish",
    "read_wish",
    "write_wish",
]

_ROOMS = {
    "computation": ("Computation", "Purity", "Topology"),
    "dispatcher": ("Dispatcher",),
    "errors": (
        *("ChangedError", "InvalidRequestError", "NotFoundError", "NothingToReuseError", "RecordsError"),
        *("StateError", "StoreError"),
    ),
    "inbox": ("Inbox",),
    "matching": ("NearMiss",),
    "model": (
        "About",
        "Attempt",
        "Event",
        "Execution",
        "ExecutionState",
        "Interval",
        "Request",
        "RequestState",
    ),
    "placement": ("Placement",),
    "planning": ("Plan",),
    "preimage": ("Difference",),
    "records": ("Records",),
    "reports": ("Report",),
    "results": ("RequestResult",),
    "wish": ("Reuse", "Wish", "read_wish", "write_wish"),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401  whatever the module holds
    # The help of the command line imports this package, and needs no database for that.
    for room, names in _ROOMS.items():
        if name in names:
            from importlib import import_module  # noqa: PLC0415

            value = globals()[name] = getattr(import_module(f".{room}", __name__), name)
            return value
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return [*__all__, *globals()]
