"""The executor `pilot`: its hooks, each from the module that knows the answer."""

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
)

__all__ = [
    "arrays_of",
    "cancel",
    "canonical_id",
    "capabilities",
    "check_spec",
    "classify_failure",
    "config_class",
    "find",
    "make_engine",
    "nodes",
    "parse_cancel",
    "parse_find",
    "parse_status",
    "parse_submit",
    "query",
    "render_script",
    "submit",
]
