"""Checks if a plugin could be used: loads it, and inspects the hooks that it implements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jpsi.contract import (
    REQUIRED_ENGINE_HOOKS,
    REQUIRED_LAUNCHER_HOOKS,
    REQUIRED_OBSERVER_HOOKS,
    REQUIRED_TRANSPORT_HOOKS,
    EngineHooks,
    ExecutorHooks,
    LauncherHooks,
    ObserverHooks,
    TransportHooks,
)
from jpsi.layers.layer import checked
from jpsi.layers.overrides import file_layer
from jpsi.layers.stack import executor_layers
from jpsi.model import PluginError
from jpsi.registry import (
    ENGINES,
    EXECUTORS,
    LAUNCHERS,
    OBSERVERS,
    OVERRIDES,
    TRANSPORTS,
    Candidate,
    Plugins,
    load_plugin,
)

_LAID_OVER = (ExecutorHooks, ObserverHooks)
#: The hooks that plugins without other layers may implement, and those that they must.
_ALONE: dict[str, tuple[Sequence[type], Sequence[str]]] = {
    ENGINES: ((EngineHooks,), REQUIRED_ENGINE_HOOKS),
    LAUNCHERS: ((LauncherHooks,), REQUIRED_LAUNCHER_HOOKS),
    TRANSPORTS: ((TransportHooks,), REQUIRED_TRANSPORT_HOOKS),
    OVERRIDES: (_LAID_OVER, ()),
    OBSERVERS: (_LAID_OVER, REQUIRED_OBSERVER_HOOKS),
}
_FAKE = ("commands", "unreachable")


def error(plugins: Plugins, candidate: Candidate, folders: Sequence[Path]) -> str | None:
    """Return why a candidate could not be used; None if it could be.

    Args:
        plugins: the installed plugins: overrides may supply hooks that an executor lacks, or be broken.
        candidate: the plugin.
        folders: the configuration directories that may hold overrides of one file.
    """
    try:
        if candidate.group == EXECUTORS:
            executor_layers(plugins, candidate, folders)
        elif candidate.group in _ALONE:
            checked(candidate, *_ALONE[candidate.group])
        else:
            _check_fake(candidate)
    except PluginError as e:
        return str(e)
    return None


def file_error(path: Path) -> str | None:
    """Return why an override of one file could not be used; None if it could be."""
    try:
        file_layer(path).check(_LAID_OVER)
    except PluginError as e:
        return str(e)
    return None


def _check_fake(candidate: Candidate) -> None:
    plugin = load_plugin(candidate)
    if missing := [name for name in _FAKE if not hasattr(plugin, name)]:
        msg = f"{candidate.label} cannot be used: it lacks {' and '.join(missing)}"
        raise PluginError(msg)
