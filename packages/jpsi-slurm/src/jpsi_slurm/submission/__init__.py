"""Submission.

The `#SBATCH` lines that a job's spec becomes, and the call of sbatch that hands the job over.

It also holds the shell that prints the node of each process, which the runner needs inside of the job.
"""

from .nodefile import nodes
from .sbatch import parse_submit, submit
from .script import check_spec, render_script

__all__ = [
    "check_spec",
    "nodes",
    "parse_submit",
    "render_script",
    "submit",
]
