"""Submission.

The `#flux:` lines that a job's spec becomes, and the commands that hand jobs over to Flux.

It also holds the shell that prints the node of each process, which the runner needs inside of the job.
"""

from .bulk import parse_submit_several, submit_several
from .flux_submit import parse_submit, printed_ids, submit
from .nodefile import nodes
from .script import check_spec, render_script

__all__ = [
    "check_spec",
    "nodes",
    "parse_submit",
    "parse_submit_several",
    "printed_ids",
    "render_script",
    "submit",
    "submit_several",
]
