"""Reuse: the choice between a recorded execution and a new one.

The canonical key of a computation, the digests of its inputs, the match with recorded executions, the plan
of a preview, and the assignment of an execution when a request is committed.
"""

from .assignment import Outlook, execution_for, find_existing, outlook, with_chosen_execution
from .canonical_key import Difference, fingerprint, preimage, recalled
from .matching import NearMiss, objections
from .planning import Plan, passed_over, plan
from .resolver import Lookup, Resolution, Resolver
