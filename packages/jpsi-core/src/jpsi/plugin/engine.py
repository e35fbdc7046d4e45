"""The interface for authors of engines, beyond `jpsi.plugin`: `Engine`, and functions for jobs and paths."""

from typing import TYPE_CHECKING

from jpsi.lazy import door, lazy_attributes

if TYPE_CHECKING:
    from jpsi.config import *
    from jpsi.contract import *
    from jpsi.layers import *
    from jpsi.model import *
    from jpsi.registry import *

__all__ = [
    "SOME_TAG",
    "TIME_SOURCE",
    "Engine",
    "EngineHooks",
    "EngineSetup",
    "InterruptedSubmission",
    "Outcomes",
    "Preview",
    "Progress",
    "Recovered",
    "Reference",
    "Stream",
    "Submission",
    "assemble",
    "container_runtime",
    "decode",
    "dependencies",
    "door",
    "exec_limits",
    "expand",
    "has_reference",
    "has_staging",
    "installed",
    "is_native_id",
    "lazy_attributes",
    "load_plugin",
    "named_file",
    "one_line",
    "open_transport",
    "ownership",
    "pieces",
    "problems",
    "process_count",
    "serialization",
    "shape",
    "timed",
    "transitions",
    "walltime_limit",
]

if not TYPE_CHECKING:
    # Not every program that reads jobs needs hooks or looks for plugins, which takes time.
    _rooms = ["jpsi.contract", "jpsi.model", "jpsi.config", "jpsi.registry", "jpsi.layers"]
    __getattr__, _ = door(__name__, __all__, _rooms)
