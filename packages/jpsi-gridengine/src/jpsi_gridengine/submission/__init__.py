"""Submission.

The directives that a spec becomes, its slots and parallel environment, and the call of qsub.

It also holds the shell that prints the node of each process, which the runner needs inside of the job.
"""

from .nodefile import nodes
from .qsub import parse_submit, submit
from .script import check_spec, render_script

__all__ = [
    "check_spec",
    "nodes",
    "parse_submit",
    "render_script",
    "submit",
]
