"""Submits jobs to Slurm.

The modules render a job spec into `#SBATCH` lines and build the sbatch command for the handoff.

They also render the shell lines by which the runner, inside the job, lists the node of each process.
"""

from .nodefile import nodes
from .sbatch import parse_submit, submit
from .script import check_spec, render_script
