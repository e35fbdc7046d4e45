"""Loads the layers of one executor, launcher or transport into a small plugin manager of its own."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

import attrs

from jpsi.contract import EngineHooks, ExecutorHooks, LauncherHooks, ObserverHooks, TransportHooks
from jpsi.layers import default_hooks
from jpsi.layers.layer import (
    LAID_OVER,
    SPECIFICATIONS,
    Layer,
    checked,
    find_hook_problems,
    implemented,
    lacking,
    lacks,
    relay,
)
from jpsi.layers.overrides import latest, overrides
from jpsi.model import ConfigError, PluginError
from jpsi.registry import ENGINES, LAUNCHERS, OBSERVERS, TRANSPORTS, Candidate, Plugins, load_plugin

if TYPE_CHECKING:
    from pathlib import Path

    from jpsi.contract import ExecutorConfig, Transport

#: The hooks that an executor must implement, unless it implements the other one.
BATCH_HOOKS = ("render_script", "submit", "parse_submit", "query", "parse_status", "cancel")
_MAKE_ENGINE = "make_engine"
#: The engine of backends that have none of their own.
ENGINE = "batch"


@attrs.frozen(slots=True, kw_only=True)
class Stack:
    """An executor plugin with the layers above and below it."""

    candidate: Candidate
    hooks: ExecutorHooks
    #: The observers of every status.
    observers: tuple[ObserverHooks, ...]
    #: The hooks for a command line that it lacks.
    lacking: tuple[str, ...]
    #: True if an override checks specs as well.
    has_policy: bool

    def check_batch(self) -> None:
        """Raise unless it has all hooks for a backend with a command line.

        Raises:
            PluginError: it lacks hooks for that; the message names all.
        """
        if self.lacking:
            msg = f"{self.candidate.label} cannot be used: {_lacks(self.lacking)}"
            raise PluginError(msg)


def executor_stack(plugins: Plugins, candidate: Candidate, folders: Sequence[Path] = ()) -> Stack:
    """Load the layers of an executor: the core's defaults, the backend, overrides of the site and the user.

    The folders are the configuration directories that may hold overrides of one file, the strongest last.

    Raises:
        PluginError: the plugin or an override of it is broken; the message names every mistake.
    """
    layers, missing = executor_layers(plugins, candidate, folders)
    hooks = relay([Layer("the core", default_hooks), *layers], LAID_OVER)
    return Stack(
        candidate=candidate,
        hooks=cast("ExecutorHooks", hooks),
        observers=observers(plugins, layers),
        lacking=missing,
        has_policy=any("check_spec" in implemented(layer.plugin) for layer in layers[1:]),
    )


def executor_layers(
    plugins: Plugins, candidate: Candidate, folders: Sequence[Path]
) -> tuple[list[Layer], tuple[str, ...]]:
    """Return an executor's layers, and the hooks for a command line that all of them lack.

    Raises:
        PluginError: as for `executor_stack`.
    """
    layers = [Layer(candidate.label, load_plugin(candidate)), *overrides(plugins, candidate, folders)]
    wrong = [find_hook_problems(layer.plugin, LAID_OVER) for layer in layers]
    objects = [layer.plugin for layer in layers]
    missing = lacking(objects, BATCH_HOOKS)
    if missing and lacking(objects, [_MAKE_ENGINE]) and (implemented(objects[0]) or not wrong[0]):
        wrong[0].append(_lacks(missing))
    if found := [layer.unusable(its) for layer, its in zip(layers, wrong, strict=True) if its]:
        raise PluginError("\n".join(found))
    return layers, missing


def launcher_of(
    plugins: Plugins, name: str, constraint: str | None = None
) -> tuple[Candidate, LauncherHooks]:
    """Return the launcher of this name, and its hooks.

    Raises:
        PluginError: there is no such plugin, or it is broken.
    """
    candidate = plugins.find(LAUNCHERS, name, constraint)
    return candidate, cast("LauncherHooks", _hooks(candidate))


def open_transport(plugins: Plugins, url: str, config: ExecutorConfig, here: Transport) -> Transport:
    """Return a transport to the host of a URL, from the plugin with the name of the URL's scheme.

    Raises:
        PluginError: there is no such plugin, or it is broken.
        ConfigError: the URL has no scheme.
    """
    scheme, separator, _ = url.partition("://")
    if not scheme or not separator:
        advice = "if it comes from the configuration, mend `url` of the target there"
        msg = f"{url!r} is not a URL; a URL looks like ssh://cluster.example.org; {advice}"
        raise ConfigError(msg)
    hooks = cast("TransportHooks", _hooks(plugins.find(TRANSPORTS, scheme)))
    return hooks.open_transport(url=url, config=config, here=here)


def engine_hooks(plugins: Plugins) -> EngineHooks:
    """Return the hooks of the installed engine.

    Raises:
        PluginError: none is installed, or it is broken.
    """
    return cast("EngineHooks", _hooks(plugins.find(ENGINES, ENGINE)))


def _hooks(candidate: Candidate) -> object:
    return relay([checked(candidate)], SPECIFICATIONS[candidate.group][0])


def _lacks(missing: Sequence[str]) -> str:
    return f"{lacks(missing)}, or {_MAKE_ENGINE}"


def name_and_constraint(text: str) -> tuple[str, str]:
    """Split a launcher's name from the version constraint that it may carry (`mpirun>=0.2`).

    Raises:
        PluginError: the text is neither.
    """
    if text.isidentifier():
        return text, ""
    from packaging.requirements import InvalidRequirement, Requirement  # slow to import, and rarely needed

    try:
        wanted = Requirement(text)
    except InvalidRequirement as e:
        msg = f"{text!r} is not a launcher's name, with or without a version constraint"
        raise PluginError(msg, e) from e
    return wanted.name, str(wanted.specifier)


def observers(plugins: Plugins, layers: Iterable[Layer]) -> tuple[ObserverHooks, ...]:
    """Return the installed observers, and those of an executor's layers that observe, each once.

    A broken observer only causes a warning, once per process.
    """
    found: list[Layer] = []
    for layer in (*layers, *_installed(plugins)):
        is_new = all(layer.plugin is not other.plugin for other in found)
        if is_new and "status_changed" in implemented(layer.plugin):
            found.append(layer)
    return tuple(cast("ObserverHooks", relay([layer], LAID_OVER)) for layer in found)


def _installed(plugins: Plugins) -> Iterator[Layer]:
    for candidates, refusals in latest(plugins.of(OBSERVERS)):
        for candidate in candidates:
            try:
                if refusals:
                    msg = f"{candidate.label} is refused: {'; '.join(refusals)}"
                    raise PluginError(msg)  # noqa: TRY301  both errors become one warning
                layer = checked(candidate)
            except PluginError as e:
                _warn(str(e))
            else:
                yield layer


@functools.cache
def _warn(message: str) -> None:
    import logging  # costs a tenth of what `import jpsi` takes

    logging.getLogger(__name__).warning("an observer is left out: %s", message)
