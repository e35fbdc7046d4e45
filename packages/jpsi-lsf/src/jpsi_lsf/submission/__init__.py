"""Submission: the `#BSUB` lines that a spec becomes, its slots and dependencies, and the call of bsub.

It also holds the shell that prints the node of each process, which the runner needs inside of the job.
"""

from .bsub import parse_submit, submit
from .nodefile import nodes
from .script import DEPENDENCIES, check_spec, render_script

__all__ = [
    "DEPENDENCIES",
    "check_spec",
    "nodes",
    "parse_submit",
    "render_script",
    "submit",
]
