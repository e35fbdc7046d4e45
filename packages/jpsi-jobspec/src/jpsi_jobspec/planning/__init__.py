"""Plans.

Turns a document into the jobs, arrays and allocations of one target, with resources and reasons.

The planner chooses among the resources of a document by what is known of a site: the limits of its queues,
its subsystems, the machine. A plan is a value; an allocation in it has nodes and a capacity, and its
entries can be flattened.
"""

from __future__ import annotations

from .allocations import UNSHARED, flatten, is_spread, multinode_entries, slots_of_nodes
from .capacity import Capacity
from .engines import (
    DASK,
    engine_for,
    find_unsupported_groups,
    install_hint,
    launcher_of,
    multinode_groups,
    usable_engines,
)
from .plan import After, Entry, Kind, Plan
from .planner import draft_plan, make_plan
from .requirements import Verdict, evaluate_requirements
from .site import (
    Limit,
    Machine,
    Mapped,
    Site,
    configured_constraints,
    query_system,
    queue_limits,
    this_machine,
)
from .subsystems import SUBSYSTEM_DIRECTORY, SubsystemNode, Subsystems, read_subsystems
