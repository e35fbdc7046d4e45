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
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "jpsi_testing.conformance": (
                "ExecutorConformance LauncherConformance command_result executor_hooks"
            ),
            "jpsi_testing.plugin_directory": "PluginDirectory",
            "jpsi_testing.recordings": "Recording read_recordings",
            "jpsi_testing.strategies": (
                "HOSTILE PYTHON_WORDS custom_names directories durations environment_names environments "
                "heterogeneous_resources hostile_text job_attributes job_names json_values paths "
                "resource_specs specs corrupted_documents"
            ),
            "jpsi_testing.transports": "RemoteTransport FakeTransport ReplayTransport",
        },
    )

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
