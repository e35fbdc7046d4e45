"""The hook implementations of the executor `slurm`, collected from the modules of this package.

It is the plugin that the core loads by its entry point; the core calls the hooks to submit and follow jobs.
"""

from .config import config_class
from .directives import check_spec, read_script, render_script
from .native_ids import arrays_of, canonical_id, element_ids
from .probe import capabilities, parse_probe, probe
from .queue import (
    cancel,
    find,
    hold,
    parse_cancel,
    parse_find,
    parse_finished,
    parse_hold,
    parse_queues,
    parse_release,
    parse_status,
    query,
    query_finished,
    queues,
    release,
    version,
)
from .sbatch import nodes, parse_submit, submit
from .submit_errors import classify_failure
