"""Loads the layers of one executor, launcher or transport into a small plugin manager of its own."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

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


def executor_layers(
    plugins: Plugins, candidate: Candidate, folders: Sequence[Path]
) -> tuple[list[Layer], tuple[str, ...]]:
    """Return the backend of an executor and its overrides, and the hooks for a command line that all lack.

    The folders are the configuration directories that may hold overrides of one file, the strongest last. If
    the plugin or an override of it is broken, PluginError names every mistake.
    """
    layers = [Layer(candidate.label, load_plugin(candidate)), *overrides(plugins, candidate, folders)]
    wrong = [find_hook_problems(layer.plugin, LAID_OVER) for layer in layers]
    objects = [layer.plugin for layer in layers]
    missing = lacking(objects, BATCH_HOOKS)
    if missing and lacking(objects, [_MAKE_ENGINE]) and (implemented(objects[0]) or not wrong[0]):
        wrong[0].append(lacks_batch(missing))
    if found := [layer.unusable(its) for layer, its in zip(layers, wrong, strict=True) if its]:
        raise PluginError("\n".join(found))
    return layers, missing


def executor_hooks(layers: Sequence[Layer]) -> ExecutorHooks:
    """Return the hooks of an executor: of its layers, and of the core's defaults below them."""
    return cast("ExecutorHooks", relay([Layer("the core", default_hooks), *layers], LAID_OVER))


def lacks_batch(missing: Sequence[str]) -> str:
    """Return the phrase that a plugin lacks these hooks for a command line."""
    return f"{lacks(missing)}, or {_MAKE_ENGINE}"


def launcher_of(
    plugins: Plugins, name: str, constraint: str | None = None
) -> tuple[Candidate, LauncherHooks]:
    """Return the launcher of this name, and its hooks; PluginError if there is none, or it is broken."""
    candidate = plugins.find(LAUNCHERS, name, constraint)
    return candidate, cast("LauncherHooks", hooks_of(candidate))


def open_transport(plugins: Plugins, url: str, config: ExecutorConfig, here: Transport) -> Transport:
    """Return a transport to the host of a URL, from the plugin with the name of the URL's scheme.

    Raises:
        PluginError: there is no such plugin, or it is broken.
        ConfigError: the URL has no scheme.
    """
    scheme, separator, _ = url.partition("://")
    if not scheme or not separator:
        advice = "if it comes from the configuration, correct `url` of the target there"
        raise ConfigError(f"{url!r} is not a URL; a URL looks like ssh://cluster.example.org; {advice}")
    hooks = cast("TransportHooks", hooks_of(plugins.find(TRANSPORTS, scheme)))
    return hooks.open_transport(url=url, config=config, here=here)


def engine_hooks(plugins: Plugins) -> EngineHooks:
    """Return the hooks of the installed engine; PluginError if there is none, or it is broken."""
    return cast("EngineHooks", hooks_of(plugins.find(ENGINES, ENGINE)))


def hooks_of(candidate: Candidate) -> object:
    """Return the relay to a plugin that has no other layers; PluginError if it is broken."""
    return relay([checked(candidate)], SPECIFICATIONS[candidate.group][0])


def name_and_constraint(text: str) -> tuple[str, str]:
    """Split a launcher's name from its version constraint (`mpirun>=0.2`); PluginError for other text."""
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
    for candidate in latest(plugins.of(OBSERVERS)):
        try:
            yield checked(candidate)
        except PluginError as e:
            _warn(str(e))


@functools.cache
def _warn(message: str) -> None:
    import logging  # costs a tenth of what `import jpsi` takes

    logging.getLogger(__name__).warning("an observer is left out: %s", message)
