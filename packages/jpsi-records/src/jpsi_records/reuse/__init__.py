"""Reuse: the choice between a recorded execution and a new one.

The canonical key of a computation, the digests of its inputs, the match with recorded executions, the plan
of a preview, and the assignment of an execution when a request is committed.
"""

from .assignment import (
    Outlook,
    Plan,
    describe_failed_predecessor,
    execution_for,
    find_existing,
    outlook,
    passed_over,
    plan,
    with_chosen_execution,
)
from .canonical_key import Difference, fingerprint, preimage, recalled
from .input_differences import explain_inputs
from .matching import Evidence, Matcher, NearMiss
from .resolver import Resolution, Resolver
