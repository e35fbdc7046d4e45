"""The hook implementations of the executor `flux`, collected from the modules of this package."""

from .config import capabilities, config_class
from .convert import read_script
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
from .submission import (
    check_spec,
    nodes,
    parse_submit,
    parse_submit_several,
    render_script,
    submit,
    submit_several,
)
from .submit_errors import classify_failure

__all__ = [
    "cancel",
    "canonical_id",
    "capabilities",
    "check_spec",
    "classify_failure",
    "config_class",
    "find",
    "hold",
    "nodes",
    "parse_cancel",
    "parse_event",
    "parse_find",
    "parse_hold",
    "parse_queues",
    "parse_release",
    "parse_status",
    "parse_submit",
    "parse_submit_several",
    "query",
    "queues",
    "read_script",
    "release",
    "render_script",
    "submit",
    "submit_several",
    "version",
    "watch",
]
