"""The test kit for plugins, with pytest and hypothesis.

A backend's tests inherit `ExecutorConformance`, a launcher's `LauncherConformance`. The names below are
imported on first use, as pytest loads this package whether a test uses it or not.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_testing.conformance import *
    from jpsi_testing.plugin_directory import *
    from jpsi_testing.recordings import *
    from jpsi_testing.strategies import *
    from jpsi_testing.transports import *

__all__ = [
    "HOSTILE",
    "PYTHON_WORDS",
    "ExecutorConformance",
    "FakeTransport",
    "LauncherConformance",
    "PluginDirectory",
    "Recording",
    "RemoteTransport",
    "ReplayTransport",
    "command_result",
    "corrupted_documents",
    "custom_names",
    "directories",
    "durations",
    "environment_names",
    "environments",
    "executor_hooks",
    "heterogeneous_resources",
    "hostile_text",
    "job_attributes",
    "job_names",
    "json_values",
    "paths",
    "read_recordings",
    "resource_specs",
    "specs",
]

if not TYPE_CHECKING:
    from jpsi.plugin.engine import door

    # The last two need pytest or hypothesis.
    _rooms = ["plugin_directory", "recordings", "transports", "strategies", "conformance"]
    __getattr__, __dir__ = door(__name__, __all__, [f"{__name__}.{it}" for it in _rooms])
