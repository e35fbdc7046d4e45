"""Which launcher starts the processes of a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from jpsi.model.errors import PluginError
from jpsi.model.resources import ResourceSpec, ResourceSpecV1
from jpsi.model.spec import JobSpec
from jpsi.registry.stack import launcher_hooks

if TYPE_CHECKING:
    from jpsi.contract.hookspecs import LauncherHooks
    from jpsi.registry.discovery import Plugins

_SINGLE = "single"


class Launchers:
    """The launchers of one executor; each is found once."""

    def __init__(self, plugins: Plugins, default: Callable[[], str]) -> None:
        """The default is the one for several processes."""
        self._plugins = plugins
        self._default = default
        self._found: dict[str, LauncherHooks] = {}

    def of(self, spec: JobSpec) -> tuple[LauncherHooks | None, list[str]]:
        """The launcher for a spec, or what is wrong with the choice."""
        count = _count(spec.resources)
        name = spec.launcher or (self._default() if count > 1 else _SINGLE)
        try:
            if name not in self._found:
                self._found[name] = launcher_hooks(self._plugins, name)
        except PluginError as e:
            why = "" if spec.launcher is not None else f" ({count} processes need it)"
            return None, [f"{e}{why}"]
        return self._found[name], []


def _count(resources: ResourceSpec | None) -> int:
    return resources.computed_process_count if isinstance(resources, ResourceSpecV1) else 1
