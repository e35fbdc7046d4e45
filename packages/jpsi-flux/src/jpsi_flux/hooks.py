"""The hook implementations of the executor `flux`, collected from the modules of this package.

It is the plugin that the core loads by its entry point; the core calls the hooks to submit and follow jobs.
"""

from .bulk import parse_submit_several, submit_several
from .config import capabilities, config_class
from .directives import check_spec, read_script, render_script
from .native_ids import canonical_id
from .queue import (
    cancel,
    find,
    hold,
    parse_cancel,
    parse_event,
    parse_find,
    parse_hold,
    parse_queues,
    parse_release,
    parse_status,
    query,
    queues,
    release,
    version,
    watch,
)
from .submit import nodes, parse_submit, submit
from .submit_errors import classify_failure
