"""Assembles the layers of one executor, launcher or transport into one small plugin manager of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import attrs

from jpsi.contract.hookspecs import (
    REQUIRED_BATCH_HOOKS,
    REQUIRED_LAUNCHER_HOOKS,
    REQUIRED_TRANSPORT_HOOKS,
    ExecutorHooks,
    LauncherHooks,
    ObserverHooks,
    TransportHooks,
)
from jpsi.model.errors import ConfigError, PluginError
from jpsi.registry.candidate import EXECUTORS, LAUNCHERS, TRANSPORTS, Candidate
from jpsi.registry.discovery import Plugins
from jpsi.registry.hooks import lacking
from jpsi.registry.layers import Layer, relay
from jpsi.registry.observers import observers
from jpsi.registry.overrides import overrides

if TYPE_CHECKING:
    from pathlib import Path

    from jpsi.contract.config import ExecutorConfig
    from jpsi.contract.protocols import Transport

_MAKE_ENGINE = "make_engine"


@attrs.frozen(slots=True, kw_only=True)
class Stack:
    """An executor plugin with everything that is laid over it and under it."""

    candidate: Candidate
    hooks: ExecutorHooks
    #: Who is told of every status.
    observers: tuple[ObserverHooks, ...]
    #: The hooks that it lacks for working through command lines.
    lacking: tuple[str, ...]

    def check_batch(self) -> None:
        """See that it can work through command lines.

        Raises:
            PluginError: it lacks hooks for that; all are named.
        """
        if self.lacking:
            raise PluginError(_lacks(self.candidate, self.lacking))


def executor_stack(
    plugins: Plugins, candidate: Candidate, lowest: object, folders: Sequence[Path] = ()
) -> Stack:
    """The layers of an executor: the core's defaults, the backend, overrides of the site and the user.

    Args:
        plugins: what is installed.
        candidate: the executor's plugin.
        lowest: the core's defaults.
        folders: the configuration folders that may hold overrides of one file, the strongest last.

    Raises:
        PluginError: the plugin or an override of it is broken; all that is wrong with it is said.
    """
    layers, missing = executor_layers(plugins, candidate, folders)
    hooks = relay([Layer("the core", lowest), *layers], (ExecutorHooks, ObserverHooks))
    return Stack(
        candidate=candidate,
        hooks=cast("ExecutorHooks", hooks),
        observers=observers(plugins, layers),
        lacking=missing,
    )


def executor_layers(
    plugins: Plugins, candidate: Candidate, folders: Sequence[Path]
) -> tuple[list[Layer], tuple[str, ...]]:
    """An executor and what is laid over it, and the hooks that all of them lack for working by command lines.

    Raises:
        PluginError: as for `executor_stack`.
    """
    layers = [Layer(candidate.label, candidate.load()), *overrides(plugins, candidate, folders)]
    for layer in layers:
        layer.check((ExecutorHooks, ObserverHooks))
    missing = lacking((layer.plugin for layer in layers), REQUIRED_BATCH_HOOKS)
    if missing and lacking((layer.plugin for layer in layers), [_MAKE_ENGINE]):
        raise PluginError(_lacks(candidate, missing))
    return layers, missing


def launcher_hooks(plugins: Plugins, text: str) -> LauncherHooks:
    """The hooks of the launcher of this name; it may carry a version constraint (`mpirun>=0.2`).

    Raises:
        PluginError: there is no such plugin, or it is broken.
    """
    candidate = plugins.find(LAUNCHERS, *_name_and_constraint(text))
    return cast("LauncherHooks", _single(candidate, LauncherHooks, REQUIRED_LAUNCHER_HOOKS))


def open_transport(plugins: Plugins, url: str, config: ExecutorConfig, here: Transport) -> Transport:
    """A transport to where a URL points, by the plugin that is named like its scheme.

    Raises:
        PluginError: there is no such plugin, or it is broken.
        ConfigError: the URL has no scheme.
    """
    scheme, separator, _ = url.partition("://")
    if not scheme or not separator:
        advice = "if it comes from the configuration, mend `url` of the target there"
        msg = f"{url!r} is not a URL; a URL looks like ssh://cluster.example.org; {advice}"
        raise ConfigError(msg)
    candidate = plugins.find(TRANSPORTS, scheme)
    hooks = cast("TransportHooks", _single(candidate, TransportHooks, REQUIRED_TRANSPORT_HOOKS))
    return hooks.open_transport(url=url, config=config, here=here)


def _single(candidate: Candidate, specification: type, required: Sequence[str]) -> object:
    return relay([checked(candidate, (specification,), required)], (specification,))


def checked(candidate: Candidate, specifications: Sequence[type], required: Sequence[str]) -> Layer:
    """The layer of a plugin that stands alone.

    Raises:
        PluginError: it is broken, or lacks a hook that is required.
    """
    layer = Layer(candidate.label, candidate.load())
    layer.check(specifications)
    if missing := lacking([layer.plugin], required):
        raise PluginError(_lacks(candidate, missing))
    return layer


def _lacks(candidate: Candidate, missing: Sequence[str]) -> str:
    alternative = f", or {_MAKE_ENGINE}" if candidate.group == EXECUTORS else ""
    hooks = f"the hook {missing[0]}" if len(missing) == 1 else f"the hooks {', '.join(missing)}"
    return f"{candidate.label} cannot be used: it lacks {hooks}{alternative}"


def _name_and_constraint(text: str) -> tuple[str, str]:
    if text.isidentifier():
        return text, ""
    from packaging.requirements import InvalidRequirement, Requirement  # slow to import, and rarely needed

    try:
        wanted = Requirement(text)
    except InvalidRequirement as e:
        msg = f"{text!r} is not a launcher's name, with or without a version constraint"
        raise PluginError(msg, e) from e
    return wanted.name, str(wanted.specifier)
