"""Plans.

Turns a document into the jobs, arrays and allocations of one target, with resources and reasons.

The planner chooses among the resources of a document by what is known of a site: the limits of its queues,
its subsystems, the machine. A plan is a value; an allocation in it has nodes and a capacity, and its inside
can be flattened.
"""

from __future__ import annotations

from .capacity import Capacity
from .chooser import weigh_requirements
from .constraints import Mapped, configured_constraints
from .engines import (
    DASK,
    INSTALL_HINT,
    engine_for,
    groups_of_several_nodes,
    launcher_of,
    shortcomings,
    usable_engines,
)
from .flattening import flatten
from .limits import Limit, has_choice, has_pieces, queue_limits, takes_several_kinds, usual_duration
from .machine import Machine, this_machine
from .nodes import is_spread, slots_of_nodes, spanning
from .plan import After, Entry, Kind, Plan
from .planner import Site, draft_plan, make_plan
from .requirements import Verdict
from .subsystems import SUBSYSTEM_DIRECTORY, SubsystemNode, Subsystems, read_subsystems

__all__ = [
    "DASK",
    "INSTALL_HINT",
    "SUBSYSTEM_DIRECTORY",
    "After",
    "Capacity",
    "Entry",
    "Kind",
    "Limit",
    "Machine",
    "Mapped",
    "Plan",
    "Site",
    "SubsystemNode",
    "Subsystems",
    "Verdict",
    "configured_constraints",
    "draft_plan",
    "engine_for",
    "flatten",
    "groups_of_several_nodes",
    "has_choice",
    "has_pieces",
    "is_spread",
    "launcher_of",
    "make_plan",
    "queue_limits",
    "read_subsystems",
    "shortcomings",
    "slots_of_nodes",
    "spanning",
    "takes_several_kinds",
    "this_machine",
    "usable_engines",
    "usual_duration",
    "weigh_requirements",
]
