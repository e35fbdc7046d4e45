"""The executor `pilot`: collects its hooks from the modules that implement them.

It is the plugin that the core loads by its entry point; the core calls the hooks to submit and follow jobs.
"""

from .config import capabilities, config_class
from .executor import (
    arrays_of,
    cancel,
    canonical_id,
    check_spec,
    classify_failure,
    find,
    make_engine,
    nodes,
    parse_cancel,
    parse_find,
    parse_status,
    parse_submit,
    query,
    render_script,
    submit,
    version,
)
