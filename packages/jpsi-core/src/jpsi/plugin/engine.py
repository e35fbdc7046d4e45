"""The interface for authors of engines, beyond `jpsi.plugin`.

The base class of engines, and functions that read and write jobs, references and paths.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi.concurrency import concurrently
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
        ShownJob,
        Stream,
        Submission,
        dependencies,
        expanding,
        file_identity,
        look,
        ownership,
        path_word,
        walk,
    )
    from jpsi.layers import assemble, open_transport
    from jpsi.lazy import lazy_attributes, lazy_names
    from jpsi.model import (
        TIME_SOURCE,
        Reference,
        core_count,
        decode,
        decode_status,
        encode_status,
        exec_limits,
        expand,
        has_reference,
        has_staging,
        is_native_id,
        one_line,
        pieces,
        plain_values,
        problems,
        process_count,
        shape,
        timed,
        transitions,
        unmet,
    )
    from jpsi.registry import installed, load_plugin
else:
    from jpsi.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "jpsi.concurrency": "concurrently",
            "jpsi.contract": (
                "Engine EngineHooks EngineSetup InterruptedSubmission Outcomes "
                "Preview Progress Recovered "
                "SOME_TAG ShownJob Stream Submission dependencies expanding file_identity "
                "look ownership path_word walk"
            ),
            "jpsi.layers": "assemble open_transport",
            "jpsi.lazy": "lazy_attributes lazy_names",
            "jpsi.model": (
                "Reference TIME_SOURCE core_count decode decode_status encode_status exec_limits expand "
                "has_reference has_staging is_native_id one_line pieces plain_values problems process_count "
                "shape timed transitions unmet"
            ),
            "jpsi.registry": "installed load_plugin",
        },
    )

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
    "ShownJob",
    "Stream",
    "Submission",
    "assemble",
    "concurrently",
    "core_count",
    "decode",
    "decode_status",
    "dependencies",
    "encode_status",
    "exec_limits",
    "expand",
    "expanding",
    "file_identity",
    "has_reference",
    "has_staging",
    "installed",
    "is_native_id",
    "lazy_attributes",
    "lazy_names",
    "load_plugin",
    "look",
    "one_line",
    "open_transport",
    "ownership",
    "path_word",
    "pieces",
    "plain_values",
    "problems",
    "process_count",
    "shape",
    "timed",
    "transitions",
    "unmet",
    "walk",
]
