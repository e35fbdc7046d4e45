"""Submits jobs to Grid Engine.

The modules render a job spec into directives, choose its parallel environment, and build the qsub command.

They also render the shell lines by which the runner, inside the job, lists the node of each process.
"""

from .nodefile import nodes
from .qsub import parse_submit, submit
from .script import check_spec, render_script
