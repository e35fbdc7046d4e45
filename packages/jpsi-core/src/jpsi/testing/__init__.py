"""Door 4: what proves a plugin, with pytest and hypothesis (the extra `testing`).

A backend's tests inherit `ExecutorConformance`, a launcher's `LauncherConformance`. The names below are
imported when they are asked for, as pytest loads this package whether a test uses it or not.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jpsi.testing.answers import answered, hooks_of
    from jpsi.testing.elsewhere_transport import ElsewhereTransport
    from jpsi.testing.executor_conformance import ExecutorConformance
    from jpsi.testing.fake_transport import FakeTransport
    from jpsi.testing.launcher_conformance import LauncherConformance
    from jpsi.testing.plugin_directory import PluginDirectory
    from jpsi.testing.recordings import Recording, read_recordings
    from jpsi.testing.replay_transport import ReplayTransport
    from jpsi.testing.strategies import (
        HOSTILE,
        PYTHON_WORDS,
        custom_names,
        directories,
        durations,
        environment_names,
        environments,
        heterogeneous_resources,
        hostile_text,
        job_attributes,
        job_names,
        json_values,
        paths,
        resource_specs,
        specs,
        spoilt,
    )

__all__ = [
    "HOSTILE",
    "PYTHON_WORDS",
    "ElsewhereTransport",
    "ExecutorConformance",
    "FakeTransport",
    "LauncherConformance",
    "PluginDirectory",
    "Recording",
    "ReplayTransport",
    "answered",
    "custom_names",
    "directories",
    "durations",
    "environment_names",
    "environments",
    "heterogeneous_resources",
    "hooks_of",
    "hostile_text",
    "job_attributes",
    "job_names",
    "json_values",
    "paths",
    "read_recordings",
    "resource_specs",
    "specs",
    "spoilt",
]

_MODULES = {
    "ElsewhereTransport": "elsewhere_transport",
    "ExecutorConformance": "executor_conformance",
    "FakeTransport": "fake_transport",
    "LauncherConformance": "launcher_conformance",
    "PluginDirectory": "plugin_directory",
    "Recording": "recordings",
    "ReplayTransport": "replay_transport",
    "answered": "answers",
    "hooks_of": "answers",
    "read_recordings": "recordings",
}
_STRATEGIES = "strategies"


def __getattr__(name: str) -> Any:  # noqa: ANN401  whatever the module holds
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module  # noqa: PLC0415

    module = import_module(f"{__name__}.{_MODULES.get(name, _STRATEGIES)}")
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return [*__all__, *globals()]
