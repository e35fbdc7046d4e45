"""Finds the launcher that starts the processes of a job: the one that its spec names, or the default."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from jpsi.contract import Capabilities, LauncherHooks
from jpsi.layers import launcher_of, name_and_constraint
from jpsi.model import HeterogeneousResources, JobSpec, PluginError, components, process_count
from jpsi.registry import LAUNCHERS, Candidate, Plugins

if TYPE_CHECKING:
    from packaging.version import Version

_SINGLE = "single"
# Patterns that mean the same to fnmatch and to a shell.
_PATTERN = re.compile(r"[A-Za-z0-9_*?\[\]!-]+\Z")


@attrs.frozen(slots=True, kw_only=True)
class Launcher:
    """An installed launcher: its name, its hooks, and those of their results that depend on no spec."""

    #: The launcher's name, as `JobSpec.launcher` takes it.
    name: str
    hooks: LauncherHooks
    #: Patterns of the environment variables that it sets in each process.
    rank_variables: Sequence[str]
    #: True if its shell lines source pre_launch and post_launch and open the streams.
    sources_scripts: bool
    #: True if it launches jobs whose slots are of several kinds.
    heterogeneous: bool = False
    _version: str

    @property
    def version(self) -> Version:
        """The version of the distribution that the launcher came from."""
        from packaging.version import Version  # noqa: PLC0415  rarely used

        return Version(self._version)

    @classmethod
    def get_instance(cls, name: str, version_constraint: str | None = None) -> Launcher:
        """Return the launcher of this name; case does not matter.

        Of several versions, the highest that satisfies the constraint, such as `">= 0.2"`, is taken.

        Raises:
            PluginError: no such launcher is installed, or it cannot be loaded.
            ConfigError: the configuration is wrong.
        """
        from jpsi.config import loader  # noqa: PLC0415  few programs ask for launchers
        from jpsi.registry import installed  # noqa: PLC0415

        plugins = installed(loader.load().plugin_path)
        return _load(*launcher_of(plugins, name, version_constraint))


class Launchers:
    """The launchers of one executor; each is loaded once."""

    def __init__(self, plugins: Plugins, capabilities: Callable[[], Capabilities]) -> None:
        """Serve the installed launchers; the backend's capabilities name the default ones."""
        self._plugins = plugins
        self._capabilities = capabilities
        self._loaded: dict[str, Launcher] = {}

    def of(self, spec: JobSpec) -> tuple[Launcher | None, list[str]]:
        """Return the launcher for a spec, and the problems with that choice.

        The launcher is None for a job of one process that names none, if no installed distribution offers
        `single` (jpsi-engine does): another engine starts one process by itself.
        """
        count = process_count(spec.resources)
        name = spec.launcher or (self._default(spec) if count > 1 else _SINGLE)
        is_needed = spec.launcher is not None or count > 1 or name in self._loaded
        if not is_needed and not self._plugins.named(LAUNCHERS, _SINGLE):
            return None, []
        try:
            if name not in self._loaded:
                self._loaded[name] = _load(*launcher_of(self._plugins, *name_and_constraint(name)))
        except PluginError as e:
            why = "" if spec.launcher is not None else f" ({count} processes need it)"
            return None, [f"{e}{why}"]
        launcher = self._loaded[name]
        if isinstance(spec.resources, HeterogeneousResources) and not launcher.heterogeneous:
            others = ", ".join(self._heterogeneous()) or "none that is installed"
            return None, [f"the launcher {name} cannot start several kinds of processes; these can: {others}"]
        return launcher, []

    def _heterogeneous(self) -> Iterator[str]:
        """Yield the names of the installed launchers that launch jobs whose slots are of several kinds."""
        for name in sorted({it.name for it in self._plugins.candidates if it.group == LAUNCHERS}):
            # do not suggest a launcher that cannot be loaded
            with contextlib.suppress(PluginError):
                if launcher_of(self._plugins, name)[1].heterogeneous():
                    yield name

    def _default(self, spec: JobSpec) -> str:
        capabilities = self._capabilities()
        nodes = sum(it.computed_node_count for it in components(spec.resources))
        of_nodes = capabilities.nodes_launcher if nodes > 1 else ""
        return of_nodes or capabilities.default_launcher


def _load(candidate: Candidate, hooks: LauncherHooks) -> Launcher:
    patterns = hooks.rank_variables() or ()
    for pattern in patterns:
        if not _PATTERN.match(pattern):
            how = "names variables by patterns such as 'PMI_*', and not"
            raise PluginError(f"the launcher {candidate.name} {how} {pattern!r}")
    return Launcher(
        name=candidate.name,
        version=candidate.version,
        hooks=hooks,
        rank_variables=tuple(patterns),
        sources_scripts=bool(hooks.sources_scripts()),
        heterogeneous=bool(hooks.heterogeneous()),
    )
