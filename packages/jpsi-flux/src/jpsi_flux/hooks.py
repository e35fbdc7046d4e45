"""The executor `flux`: its hooks, each from the module that knows the answer."""

from .bulk import parse_submit_several, submit_several
from .config import capabilities, config_class
from .events import parse_event, watch
from .failures import classify_failure
from .ids import canonical_id
from .jobs import find, parse_find, parse_status, query
from .placing import nodes
from .queues import parse_queues, queues, version
from .reading import read_script
from .requests import cancel, hold, parse_cancel, parse_hold, parse_release, release
from .script import check_spec, render_script
from .submission import parse_submit, submit

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
