"""Submits jobs to LSF: renders a spec into `#BSUB` lines and builds the bsub command.

The modules also render the shell lines by which the runner, inside the job, lists the node of each process.
"""

from .bsub import parse_submit, submit
from .nodefile import nodes
from .script import DEPENDENCIES, check_spec, render_script
