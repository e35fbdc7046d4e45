"""Submission: the `#PBS` lines that a spec becomes, the layout of its processes, and the call of qsub.

What PBS calls chunks and Torque calls nodes is written by the executors themselves, from the layout.
"""

from .chunk import CHUNK, added_resources
from .layout import Laid, Part, laid_out, spread_processes
from .qsub import parse_submit, submit
from .script import qsub_options, script_form, spelled

__all__ = [
    "CHUNK",
    "Laid",
    "Part",
    "added_resources",
    "laid_out",
    "parse_submit",
    "qsub_options",
    "script_form",
    "spelled",
    "spread_processes",
    "submit",
]
