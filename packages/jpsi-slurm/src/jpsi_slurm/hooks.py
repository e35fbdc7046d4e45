"""The hook implementations of the executor `slurm`, collected from the modules of this package."""

from .config import config_class
from .convert import read_script
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
from .submission import check_spec, nodes, parse_submit, render_script, submit
from .submit_errors import classify_failure

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
