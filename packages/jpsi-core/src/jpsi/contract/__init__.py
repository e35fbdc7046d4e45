"""The interface between jpsi's core and its plugins and engines.

Hook specifications, protocols, commands, shell text, observations, and the rules by which files are trusted.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi.contract import ownership
    from jpsi.contract.command import (
        BytesResult,
        Command,
        CommandResult,
    )
    from jpsi.contract.config import (
        BatchConfig,
        ExecutorConfig,
    )
    from jpsi.contract.engine import (
        Engine,
        EngineSetup,
        InterruptedSubmission,
        Outcomes,
        Preview,
        Recovered,
        Submission,
    )
    from jpsi.contract.foreign_scripts import (
        Draft,
        ForeignScript,
        Reader,
        Spelled,
    )
    from jpsi.contract.hookspecs import (
        PROJECT,
        REQUIRED_BATCH_HOOKS,
        REQUIRED_ENGINE_HOOKS,
        REQUIRED_LAUNCHER_HOOKS,
        REQUIRED_OBSERVER_HOOKS,
        REQUIRED_TRANSPORT_HOOKS,
        SOME_TAG,
        Arrays,
        Capabilities,
        EngineHooks,
        ExecutorHooks,
        LauncherHooks,
        ObserverHooks,
        Site,
        SubmitContext,
        TransportHooks,
        hookimpl,
    )
    from jpsi.contract.job_files import (
        JobFiles,
        Output,
        OutputPart,
        Progress,
        Stream,
        Streams,
    )
    from jpsi.contract.observation import (
        NOT_OFFERED,
        Failure,
        FailureKind,
        Meaning,
        NotOffered,
        Observation,
        Queue,
        ShownJob,
    )
    from jpsi.contract.options import (
        CustomOptions,
        Options,
        custom_options,
        given,
    )
    from jpsi.contract.ownership import (
        file_identity,
        look,
        walk,
    )
    from jpsi.contract.shell import (
        Directive,
        Script,
        ShellLine,
        expanding,
        line,
        path_word,
        word,
    )
    from jpsi.contract.spec_values import (
        RANK_VARIABLES,
        attributes,
        dependencies,
        node_count,
        resources,
        time_limit,
        units,
    )
    from jpsi.contract.transport import (
        BytesTransport,
        FileTransport,
        Lines,
        LineTransport,
        RemoteDirectories,
        Transport,
        directories_command,
        read_directories,
    )
else:
    from jpsi.lazy import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "command": "BytesResult Command CommandResult",
            "config": "BatchConfig ExecutorConfig",
            "engine": "Engine EngineSetup InterruptedSubmission Outcomes Preview Recovered Submission",
            "foreign_scripts": "Draft ForeignScript Reader Spelled",
            "hookspecs": (
                "Arrays Capabilities EngineHooks ExecutorHooks LauncherHooks ObserverHooks PROJECT "
                "REQUIRED_BATCH_HOOKS REQUIRED_ENGINE_HOOKS REQUIRED_LAUNCHER_HOOKS REQUIRED_OBSERVER_HOOKS "
                "REQUIRED_TRANSPORT_HOOKS SOME_TAG Site SubmitContext TransportHooks hookimpl"
            ),
            "job_files": "JobFiles Output OutputPart Progress Stream Streams",
            "observation": "Failure FailureKind Meaning NOT_OFFERED NotOffered Observation Queue ShownJob",
            "options": "CustomOptions Options custom_options given",
            "ownership": "file_identity look walk",
            "shell": "Directive Script ShellLine expanding line path_word word",
            "spec_values": "RANK_VARIABLES attributes dependencies node_count resources time_limit units",
            "transport": (
                "BytesTransport FileTransport Lines LineTransport RemoteDirectories "
                "Transport directories_command read_directories"
            ),
            "": "ownership",
        },
    )

__all__ = [
    "NOT_OFFERED",
    "PROJECT",
    "RANK_VARIABLES",
    "REQUIRED_BATCH_HOOKS",
    "REQUIRED_ENGINE_HOOKS",
    "REQUIRED_LAUNCHER_HOOKS",
    "REQUIRED_OBSERVER_HOOKS",
    "REQUIRED_TRANSPORT_HOOKS",
    "SOME_TAG",
    "Arrays",
    "BatchConfig",
    "BytesResult",
    "BytesTransport",
    "Capabilities",
    "Command",
    "CommandResult",
    "CustomOptions",
    "Directive",
    "Draft",
    "Engine",
    "EngineHooks",
    "EngineSetup",
    "ExecutorConfig",
    "ExecutorHooks",
    "Failure",
    "FailureKind",
    "FileTransport",
    "ForeignScript",
    "InterruptedSubmission",
    "JobFiles",
    "LauncherHooks",
    "LineTransport",
    "Lines",
    "Meaning",
    "NotOffered",
    "Observation",
    "ObserverHooks",
    "Options",
    "Outcomes",
    "Output",
    "OutputPart",
    "Preview",
    "Progress",
    "Queue",
    "Reader",
    "Recovered",
    "RemoteDirectories",
    "Script",
    "ShellLine",
    "ShownJob",
    "Site",
    "Spelled",
    "Stream",
    "Streams",
    "Submission",
    "SubmitContext",
    "Transport",
    "TransportHooks",
    "attributes",
    "custom_options",
    "dependencies",
    "directories_command",
    "expanding",
    "file_identity",
    "given",
    "hookimpl",
    "line",
    "look",
    "node_count",
    "ownership",
    "path_word",
    "read_directories",
    "resources",
    "time_limit",
    "units",
    "walk",
    "word",
]
