"""Requests and records as values.

A request's spec (`Wish`) with its computation, mounts, constraints, filters and placement; `Request`,
`Execution`, `Attempt`, `Event`; ids, priorities and canonical JSON. No module of this package reads a file or
knows the database.
"""

from .canonical_json import canonical
from .computation import STDIN, STDOUT, Computation, Purity, Topology, can_write
from .constraints import unmet_constraints
from .entities import (
    NOTHING_MORE,
    About,
    Attempt,
    Event,
    Execution,
    ExecutionState,
    Interval,
    Request,
    RequestState,
)
from .filters import unmet_filters
from .ids import new_id
from .mounts import (
    Blob,
    Collection,
    CollectionFile,
    GitTree,
    Json,
    Mount,
    Output,
    Text,
    Tmp,
    absolute_url,
    read_mount,
    revision_words,
    write_mount,
)
from .placement import Placement
from .priorities import Interest, check_priority, effective_priority
from .request_spec import Reuse, Wish, check_wish, read_wish, with_absolute_urls, write_wish

__all__ = [
    "NOTHING_MORE",
    "STDIN",
    "STDOUT",
    "About",
    "Attempt",
    "Blob",
    "Collection",
    "CollectionFile",
    "Computation",
    "Event",
    "Execution",
    "ExecutionState",
    "GitTree",
    "Interest",
    "Interval",
    "Json",
    "Mount",
    "Output",
    "Placement",
    "Purity",
    "Request",
    "RequestState",
    "Reuse",
    "Text",
    "Tmp",
    "Topology",
    "Wish",
    "absolute_url",
    "can_write",
    "canonical",
    "check_priority",
    "check_wish",
    "effective_priority",
    "new_id",
    "read_mount",
    "read_wish",
    "revision_words",
    "unmet_constraints",
    "unmet_filters",
    "with_absolute_urls",
    "write_mount",
    "write_wish",
]
