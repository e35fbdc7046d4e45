"""The hooks of the executor `pilot`, which the core calls; pure functions of their arguments.

They describe the commands that talk to the agent (`commands`), the needs of a job, why no pilot could run it
and the shell by which it finds its nodes (`requirements`), the agent's answers (`responses`), and the check
of the pilots' target (`target_check`).
"""

from .commands import arrays_of, cancel, canonical_id, find, query, submit, version
from .requirements import check_spec, nodes, render_script
from .responses import classify_failure, parse_cancel, parse_find, parse_status, parse_submit
from .target_check import make_engine
