"""Documents of workflows.

Turns YAML text into a checked `Document`, and reports each problem with its position.

A workflow has many tasks, as JobSpec NG defines it; the job document of J/PSI, which describes a single job,
is another format, read by `jpsi.document`. The loader reads text by values, parameters, tasks and resources,
and checks the rules; the graph orders tasks by their dependencies; a shape has the totals of a resource.
Nothing in this package knows where a document runs, or starts anything.
"""

from __future__ import annotations

from .graph import Scope, resolve
from .loader import load, parameter_names, parameter_values
from .model import (
    NO_ATTRIBUTES,
    Attributes,
    Document,
    Expression,
    Group,
    Ready,
    Requester,
    Requirement,
    Step,
    Task,
    When,
)
from .problems import NOWHERE, Findings, Position, WorkflowError, describe_value, suggest_name
from .resources import get_matcher
from .rules import schedulable
from .shape import (
    ONE_SLOT,
    Shape,
    as_one_kind,
    as_resources,
    combine_pieces,
    measure,
    merge_alike,
    unsupported_parts,
)
