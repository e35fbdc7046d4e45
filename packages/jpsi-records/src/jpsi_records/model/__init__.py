"""Requests and records as values.

A request's spec (`RequestSpec`) with its computation, mounts, constraints, filters and placement; `Request`,
`Execution`, `Attempt`, `Event`; ids, priorities and canonical JSON. No module of this package reads a file or
knows the database.
"""

from .canonical_json import canonical
from .computation import STDIN, STDOUT, Computation, Purity, Topology, can_write
from .constraints import unmet_constraints
from .entities import (
    CANCELLATIONS,
    DEFAULT_ABOUT,
    UNWANTED,
    About,
    Attempt,
    Event,
    Execution,
    ExecutionState,
    Interval,
    Request,
    RequestState,
    check_priority,
    new_id,
)
from .filters import unmet_filters
from .mounts import (
    DIGEST,
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
from .paths import is_inside
from .placement import Placement
from .request_spec import (
    RequestSpec,
    Reuse,
    check_request_spec,
    read_request_spec,
    requested_placement,
    with_absolute_urls,
    write_request_spec,
)
