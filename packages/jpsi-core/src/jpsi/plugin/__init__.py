"""The interface for authors of plugins: the values that hooks take and return, and access to specs.

`jpsi.plugin.kit` adds tools for plugins, and `jpsi.plugin.engine` what an engine needs as well.
"""

from typing import TYPE_CHECKING

from jpsi.lazy import door

if TYPE_CHECKING:
    from jpsi.contract import *
    from jpsi.document import explain_yaml_error
    from jpsi.model import *
    from jpsi.registry import install_command

# fmt: off
__all__ = [
    "NOT_OFFERED", "RANK_VARIABLES", "Arrays", "BatchConfig", "Bind", "BytesResult", "BytesTransport",
    "Capabilities", "Command", "CommandResult", "ConfigError", "Container", "ContainerHooks",
    "CustomOptions", "Dependency",
    "DependencyKind", "Directive", "Evidence", "ExecutorConfig", "ExecutorHooks", "Failure", "FailureKind",
    "FileTransport", "ForeignScript", "HeterogeneousResources", "InvalidJobException", "JobAttributes",
    "JobSpec", "JobState", "JpsiError", "LauncherHooks", "LineTransport", "Lines", "Meaning", "NotOffered",
    "Observation", "ObserverHooks", "Options", "PluginError", "Queue", "Reason", "RemoteDirectories",
    "ResourceSpec", "ResourceSpecV1", "Script", "ShellLine", "Site", "SubmitContext", "SubmitException",
    "Transport", "TransportError", "TransportHooks", "components", "custom_options",
    "explain_yaml_error", "hookimpl", "install_command", "line", "node_count", "parse_duration", "printable",
    "resources", "set_options", "units", "walltime", "word",
]
# fmt: on

if not TYPE_CHECKING:
    # Programs that list jobs need the values of jobs only, and hooks and fakes need no registry.
    __getattr__, _ = door(
        __name__, __all__, ["jpsi.contract", "jpsi.model", "jpsi.registry", "jpsi.document"]
    )
