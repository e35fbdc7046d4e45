"""The interface for authors of plugins: the values that hooks take and return, and access to specs.

`jpsi.plugin.kit` adds tools for plugins, and `jpsi.plugin.engine` what an engine needs as well.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi.contract import (
        NOT_OFFERED,
        RANK_VARIABLES,
        Arrays,
        BatchConfig,
        BytesResult,
        BytesTransport,
        Capabilities,
        Command,
        CommandResult,
        CustomOptions,
        Directive,
        Draft,
        ExecutorConfig,
        ExecutorHooks,
        Failure,
        FailureKind,
        FileTransport,
        ForeignScript,
        LauncherHooks,
        Lines,
        LineTransport,
        Meaning,
        NotOffered,
        Observation,
        ObserverHooks,
        Options,
        Queue,
        Reader,
        RemoteDirectories,
        Script,
        ShellLine,
        Site,
        SubmitContext,
        Transport,
        TransportHooks,
        attributes,
        custom_options,
        given,
        hookimpl,
        line,
        node_count,
        resources,
        time_limit,
        units,
        word,
    )
    from jpsi.model import (
        ConfigError,
        Dependency,
        DependencyKind,
        Evidence,
        HeterogeneousResources,
        InvalidJobException,
        JobAttributes,
        JobSpec,
        JobState,
        JpsiError,
        PluginError,
        Reason,
        ResourceSpec,
        ResourceSpecV1,
        SubmitException,
        TransportError,
        components,
        parse_duration,
        printable,
    )
else:
    from jpsi.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "jpsi.contract": (
                "Arrays BatchConfig BytesResult BytesTransport Capabilities Command CommandResult "
                "CustomOptions Directive Draft ExecutorConfig ExecutorHooks Failure FailureKind "
                "RemoteDirectories FileTransport ForeignScript LauncherHooks LineTransport Lines Meaning "
                "NOT_OFFERED NotOffered Observation ObserverHooks Options Queue RANK_VARIABLES Reader "
                "Script ShellLine Site SubmitContext Transport TransportHooks attributes custom_options "
                "given hookimpl line node_count resources time_limit units word"
            ),
            "jpsi.model": (
                "ConfigError Dependency DependencyKind Evidence HeterogeneousResources InvalidJobException "
                "JobAttributes JobSpec JobState JpsiError PluginError Reason ResourceSpec ResourceSpecV1 "
                "SubmitException TransportError components parse_duration printable"
            ),
        },
    )

__all__ = [
    "NOT_OFFERED",
    "RANK_VARIABLES",
    "Arrays",
    "BatchConfig",
    "BytesResult",
    "BytesTransport",
    "Capabilities",
    "Command",
    "CommandResult",
    "ConfigError",
    "CustomOptions",
    "Dependency",
    "DependencyKind",
    "Directive",
    "Draft",
    "Evidence",
    "ExecutorConfig",
    "ExecutorHooks",
    "Failure",
    "FailureKind",
    "FileTransport",
    "ForeignScript",
    "HeterogeneousResources",
    "InvalidJobException",
    "JobAttributes",
    "JobSpec",
    "JobState",
    "JpsiError",
    "LauncherHooks",
    "LineTransport",
    "Lines",
    "Meaning",
    "NotOffered",
    "Observation",
    "ObserverHooks",
    "Options",
    "PluginError",
    "Queue",
    "Reader",
    "Reason",
    "RemoteDirectories",
    "ResourceSpec",
    "ResourceSpecV1",
    "Script",
    "ShellLine",
    "Site",
    "SubmitContext",
    "SubmitException",
    "Transport",
    "TransportError",
    "TransportHooks",
    "attributes",
    "components",
    "custom_options",
    "given",
    "hookimpl",
    "line",
    "node_count",
    "parse_duration",
    "printable",
    "resources",
    "time_limit",
    "units",
    "word",
]
