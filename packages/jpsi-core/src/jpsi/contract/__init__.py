"""The interface between jpsi's core and its plugins and engines.

It has hook specifications, protocols and values, and working code that all of them share: shell quoting,
checks of file ownership, and helpers for specs.
"""

from typing import TYPE_CHECKING

# not below, as its module has the same name
from jpsi.contract.walltime import default_walltime, parse_duration, walltime, walltime_limit

if TYPE_CHECKING:
    from jpsi.contract import ownership
    from jpsi.contract.command import *
    from jpsi.contract.config import *
    from jpsi.contract.engine import *
    from jpsi.contract.hookspecs import *
    from jpsi.contract.job_files import *
    from jpsi.contract.observation import *
    from jpsi.contract.options import *
    from jpsi.contract.shell import *
    from jpsi.contract.spec_values import *
    from jpsi.contract.transport import *
else:
    # Listing jobs needs none of the hooks.
    from jpsi.lazy import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".": "ownership",
            ".command": "BytesResult Command CommandResult",
            ".config": "BatchConfig ExecutorConfig must_be",
            ".engine": "Engine EngineSetup InterruptedSubmission Outcomes Preview Recovered Submission",
            ".hookspecs": (
                "PROJECT SOME_TAG Arrays Capabilities ContainerHooks EngineHooks ExecutorHooks ForeignScript "
                "LauncherHooks ObserverHooks Site SubmitContext TransportHooks hookimpl"
            ),
            ".job_files": "JobFiles Output OutputPart Progress Stream Streams",
            ".observation": "NOT_OFFERED Failure FailureKind Meaning NotOffered Observation Queue",
            ".options": "CustomOptions Options Setting custom_options set_options",
            ".shell": "Directive Script ShellLine line word",
            ".spec_values": "RANK_VARIABLES dependencies node_count resources units",
            ".transport": (
                "BytesTransport FileTransport Lines LineTransport RemoteDirectories Transport "
                "directories_command read_directories"
            ),
        },
    )
