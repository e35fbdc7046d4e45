"""The side of the core: what the hooks of the executor `pilot` answer.

How a job is handed to the agent (`commands`), what it needs of a pilot and why none can ever give it
(`requirements`), what the agent answers (`responses`), whether the target of pilots can be used
(`target_check`), and how a running job finds its nodes (`node_list`). It describes, and does nothing.
"""

from .commands import arrays_of, cancel, canonical_id, find, query, submit
from .node_list import nodes
from .requirements import check_spec, render_script
from .responses import classify_failure, parse_cancel, parse_find, parse_status, parse_submit
from .target_check import make_engine

__all__ = [
    "arrays_of",
    "cancel",
    "canonical_id",
    "check_spec",
    "classify_failure",
    "find",
    "make_engine",
    "nodes",
    "parse_cancel",
    "parse_find",
    "parse_status",
    "parse_submit",
    "query",
    "render_script",
    "submit",
]
