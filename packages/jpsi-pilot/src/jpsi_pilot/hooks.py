"""The executor `pilot`: its hooks, each from the module that knows the answer."""

from .answers import classify_failure, parse_cancel, parse_find, parse_status, parse_submit
from .asking import check_spec, render_script
from .commands import arrays_of, cancel, canonical_id, find, query, submit
from .config import capabilities, config_class
from .nodes import nodes
from .reaching import make_engine

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
