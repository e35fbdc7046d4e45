"""Resolves an executor's name: finds its plugin, its layers and its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import attrs

from jpsi.config import Section, SpecDefaults
from jpsi.config import loader as configuration
from jpsi.contract import ContainerHooks, ExecutorConfig, ExecutorHooks, ObserverHooks
from jpsi.layers.layer import implemented
from jpsi.layers.stack import executor_hooks, executor_layers, hooks_of, lacks_batch, observers
from jpsi.model import PluginError
from jpsi.registry import CONTAINERS, EXECUTORS, Candidate, Plugins, installed

#: The executor if the caller names none and none is configured.
DEFAULT = "local"


@attrs.frozen(slots=True, kw_only=True)
class Assembly:
    """The parts of an executor."""

    plugins: Plugins
    candidate: Candidate
    #: The hooks of the backend, with those of the layers above and below it.
    hooks: ExecutorHooks
    #: The observers of every status.
    observers: Sequence[ObserverHooks]
    #: The hooks for a command line that all layers lack.
    lacking: Sequence[str]
    #: True if an override checks specs as well.
    has_policy: bool
    config: ExecutorConfig
    #: The name of the requested target, or the URL of the backend; empty for the executor on this machine.
    target: str
    #: The URL of the backend; None is this machine.
    url: str | None
    #: The values for fields that a job leaves open.
    defaults: SpecDefaults

    @property
    def identity(self) -> tuple[str, str, ExecutorConfig]:
        """A value that is equal for executors of the same batch system."""
        return self.candidate.name, self.target, self.config

    def check_batch(self) -> None:
        """Raise PluginError, which names all hooks that it lacks, unless it has those for a command line."""
        if self.lacking:
            raise PluginError(f"{self.candidate.label} cannot be used: {lacks_batch(self.lacking)}")


def container_runtime(name: str) -> ContainerHooks:
    """Return the hooks of a container runtime; PluginError if there is none, or it is broken."""
    candidate = installed(configuration.load().plugin_path).find(CONTAINERS, name)
    return cast("ContainerHooks", hooks_of(candidate))


def assemble(
    name: str | None,
    constraint: str | None = None,
    url: str | None = None,
    config: ExecutorConfig | None = None,
) -> Assembly:
    """Return the parts of the requested executor, completed from the configuration.

    The name is that of an executor or of a configured target, case ignored; None is the configured default.
    The other arguments replace what is configured. The errors are PluginError and ConfigError, and TypeError
    for a `config` of the wrong class.
    """
    settings = configuration.load()
    plugins = installed(settings.plugin_path)
    default_place = "" if name else settings.default_location
    name = name or settings.default_executor or DEFAULT
    target = settings.target(name)
    executor = name if target is None else target.executor or name
    section = settings.executor(_names(plugins, executor))
    if target is not None:
        section = target.over(section)
    wanted = section.version if constraint is None else constraint
    url = section.url if url is None else url
    try:
        candidate = plugins.find(EXECUTORS, executor, wanted, settings.targets)
    except PluginError as e:
        if not plugins.named(EXECUTORS, executor):
            raise _located(e, default_place if target is None else target.locations["executor"]) from e
        # the executor exists: its version does not satisfy the constraint
        raise _located(e, section.locations.get("version", "") if constraint is None else "") from e
    layers, lacking = executor_layers(plugins, candidate, configuration.folders())
    hooks = executor_hooks(layers)
    return Assembly(
        plugins=plugins,
        candidate=candidate,
        hooks=hooks,
        observers=observers(plugins, layers),
        lacking=lacking,
        has_policy=any("check_spec" in implemented(layer.plugin) for layer in layers[1:]),
        config=_config(candidate.name, hooks.config_class(), config, section),
        target=(url or "") if target is None else name.lower(),
        url=url,
        defaults=section.defaults,
    )


def _located(error: PluginError, place: str) -> PluginError:
    """Return an error whose first line names the place in the configuration that causes it, if one does."""
    first, separator, rest = str(error).partition("\n")
    location = f"; it is named in {place}" if place else ""
    return PluginError(f"{first}{location}{separator}{rest}", error)


def _names(plugins: Plugins, name: str) -> set[str]:
    """Return the names by which an executor may be configured."""
    same = (it for it in plugins.candidates if it.group == EXECUTORS and it.is_called(name))
    return {name, *(alias for candidate in same for alias in candidate.aliases)}


def _config(
    name: str, config_class: type[ExecutorConfig], given: ExecutorConfig | None, section: Section
) -> ExecutorConfig:
    if given is not None and issubclass(config_class, type(given)):
        # a caller can set the common fields without knowing the class of this executor
        return config_class(**{field: getattr(given, field) for field in attrs.fields_dict(type(given))})
    if given is not None and not isinstance(given, config_class):
        raise TypeError(f"the executor {name} is configured by {config_class.__name__}, not {given!r}")
    if given is not None or not section.config:
        return given or config_class()
    from jpsi.config import structured  # imports cattrs, which most users never need

    return structured(config_class, section.config)
