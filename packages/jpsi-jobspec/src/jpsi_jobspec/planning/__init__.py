"""Plans.

Turns a document into the jobs, arrays and allocations of one target, with resources and reasons.

The planner chooses among the resources of a document by what is known of a site: the limits of its queues,
its subsystems, the machine. A plan is a value; an allocation in it has nodes and a capacity, and its inside
can be flattened.
"""

from __future__ import annotations

from .capacity import Capacity
from .chooser import evaluate_requirements
from .constraints import Mapped, configured_constraints
from .engines import (
    DASK,
    INSTALL_HINT,
    engine_for,
    find_unsupported_groups,
    launcher_of,
    multinode_groups,
    usable_engines,
)
from .flattening import flatten
from .limits import Limit, default_duration, has_choice, has_pieces, queue_limits, supports_heterogeneous_jobs
from .machine import Machine, this_machine
from .nodes import is_spread, multinode_entries, slots_of_nodes
from .plan import After, Entry, Kind, Plan
from .planner import Site, draft_plan, make_plan
from .requirements import Verdict
from .subsystems import SUBSYSTEM_DIRECTORY, SubsystemNode, Subsystems, read_subsystems
