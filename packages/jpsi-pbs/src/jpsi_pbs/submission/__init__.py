"""Submits jobs to PBS and Torque: renders a spec into `#PBS` lines and builds the qsub command.

The modules also lay out the processes over nodes; the executors render this as PBS chunks or Torque nodes.
"""

from .chunk import CHUNK, chunk_resources
from .layout import Layout, Part, lay_out, spread_processes
from .qsub import parse_submit, submit
from .script import qsub_options, script_form, split_option
