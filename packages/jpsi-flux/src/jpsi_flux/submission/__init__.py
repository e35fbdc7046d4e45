"""Submits jobs to Flux.

The modules render a job spec into `#flux:` lines and build the commands for the handoff.

They also render the shell lines by which the runner, inside the job, lists the node of each process.
"""

from .bulk import parse_submit_several, submit_several
from .flux_submit import parse_printed_ids, parse_submit, submit
from .nodefile import nodes
from .script import check_spec, render_script
