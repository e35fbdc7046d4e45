"""The interface for authors of engines, beyond `jpsi.plugin`: `Engine`, and functions for jobs and paths."""

from typing import TYPE_CHECKING

from jpsi.lazy import lazy_attributes
from jpsi.model import (
    TIME_SOURCE,
    Reference,
    decode,
    exec_limits,
    expand,
    has_reference,
    has_staging,
    is_native_id,
    one_line,
    pieces,
    problems,
    process_count,
    serialization,
    shape,
    timed,
    transitions,
)

if TYPE_CHECKING:
    from jpsi.config import named_file
    from jpsi.contract import (
        SOME_TAG,
        Engine,
        EngineHooks,
        EngineSetup,
        InterruptedSubmission,
        Outcomes,
        Preview,
        Progress,
        Recovered,
        Stream,
        Submission,
        dependencies,
        ownership,
        walltime_limit,
    )
    from jpsi.layers import assemble, open_transport
    from jpsi.registry import installed, load_plugin

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
    "decode",
    "dependencies",
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
    __getattr__, _ = lazy_attributes(
        __name__,
        {
            "jpsi.contract": " ".join(__all__),
            "jpsi.config": "named_file",
            "jpsi.layers": "assemble open_transport",
            "jpsi.registry": "installed load_plugin",
        },
    )
