"""The hooks of the executor `pilot`, which the core calls; pure functions of their arguments.

They describe the commands that talk to the agent (`commands`), the needs of a job and why no pilot could run
it (`requirements`), the agent's answers (`responses`), the check of the pilots' target (`target_check`), and
the shell by which a running job finds its nodes (`node_list`).
"""

from .commands import arrays_of, cancel, canonical_id, find, query, submit
from .node_list import nodes
from .requirements import check_spec, render_script
from .responses import classify_failure, parse_cancel, parse_find, parse_status, parse_submit
from .target_check import make_engine
