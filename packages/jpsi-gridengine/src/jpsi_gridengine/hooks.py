"""The executor `gridengine`: its hooks, each from the module that knows the answer."""

from .config import config_class
from .failures import classify_failure
from .ids import arrays_of, canonical_id, element_ids
from .nodefile import nodes
from .probe import capabilities, parse_probe, probe
from .qacct import parse_finished, query_finished
from .qstat import find, parse_find, parse_status, query
from .queues import parse_queues, queues, version
from .reading import read_script
from .requests import cancel, hold, parse_cancel, parse_hold, parse_release, release
from .script import check_spec, render_script
from .submission import parse_submit, submit

__all__ = [
    "arrays_of",
    "cancel",
    "canonical_id",
    "capabilities",
    "check_spec",
    "classify_failure",
    "config_class",
    "element_ids",
    "find",
    "hold",
    "nodes",
    "parse_cancel",
    "parse_find",
    "parse_finished",
    "parse_hold",
    "parse_probe",
    "parse_queues",
    "parse_release",
    "parse_status",
    "parse_submit",
    "probe",
    "query",
    "query_finished",
    "queues",
    "read_script",
    "release",
    "render_script",
    "submit",
    "version",
]
