"""Resolves an executor's name: finds its plugin, its layers and its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from jpsi.config import SpecDefaults
from jpsi.config import loader as configuration
from jpsi.contract import ExecutorConfig
from jpsi.layers.stack import Stack, executor_stack
from jpsi.model import PluginError
from jpsi.registry import EXECUTORS, Plugins, installed

if TYPE_CHECKING:
    from jpsi.config import Section

#: The executor if the caller names none and none is configured.
DEFAULT = "local"


@attrs.frozen(slots=True, kw_only=True)
class Assembly:
    """The parts of an executor."""

    plugins: Plugins
    stack: Stack
    config: ExecutorConfig
    #: The name of the requested target, or the URL of the backend; empty for the executor on this machine.
    target: str
    #: The URL of the backend; None is this machine.
    url: str | None
    #: The values for fields that a job leaves open.
    defaults: SpecDefaults


def assemble(
    name: str | None,
    constraint: str | None,
    url: str | None,
    config: ExecutorConfig | None,
) -> Assembly:
    """Return the parts of the requested executor, completed from the configuration.

    Args:
        name: an executor or a configured target, case ignored; None is the configured default.
        constraint: a version constraint that replaces the configured one.
        url: the URL of the backend, instead of the target's.
        config: the executor's configuration, instead of the configured fields.

    Raises:
        PluginError: there is no such plugin, or an override of it is broken.
        ConfigError: the configuration is wrong.
        TypeError: `config` is not of the executor's configuration class.
    """
    settings = configuration.load()
    plugins = installed(settings.plugin_path)
    place = "" if name else settings.default_location
    name = name or settings.default_executor or DEFAULT
    target = settings.target(name)
    executor = name if target is None or target.executor is None else target.executor
    section = _section(target, settings.executor(_names(plugins, executor)))
    wanted = section.version if constraint is None and section is not None else constraint
    try:
        candidate = plugins.find(EXECUTORS, executor, wanted, settings.targets)
    except PluginError as e:
        if target is not None:
            place = target.locations["executor"]
        if plugins.named(EXECUTORS, executor):
            # the executor exists: its version does not satisfy the constraint
            place = section.locations.get("version", "") if section is not None and constraint is None else ""
        raise PluginError(_with_place(str(e), place), e) from e
    stack = executor_stack(plugins, candidate, configuration.folders())
    if url is None and section is not None:
        url = section.url
    return Assembly(
        plugins=plugins,
        stack=stack,
        config=_config(stack, config, section),
        target=(url or "") if target is None or target.executor is None else name.lower(),
        url=url,
        defaults=SpecDefaults() if section is None else section.defaults,
    )


def _with_place(message: str, place: str) -> str:
    """Return the message with the place in the configuration that requests the plugin."""
    first, separator, rest = message.partition("\n")
    return f"{first}; it is asked for in {place}{separator}{rest}" if place else message


def _names(plugins: Plugins, name: str) -> set[str]:
    """Return the names by which an executor may be configured."""
    same = (it for it in plugins.candidates if it.group == EXECUTORS and it.is_called(name))
    return {name, *(alias for candidate in same for alias in candidate.aliases)}


def _section(target: Section | None, executor: Section | None) -> Section | None:
    return target.over(executor) if target is not None and executor is not None else target or executor


def _config(stack: Stack, given: ExecutorConfig | None, section: Section | None) -> ExecutorConfig:
    config_class = stack.hooks.config_class()
    if given is not None and issubclass(config_class, type(given)):
        # a caller can set the common fields without knowing the class of this executor
        fields = attrs.fields_dict(type(given))
        return config_class(**{name: getattr(given, name) for name in fields})
    if given is not None and not isinstance(given, config_class):
        msg = f"the executor {stack.candidate.name} is configured by {config_class.__name__}, not {given!r}"
        raise TypeError(msg)
    if given is not None or section is None or not section.config:
        return config_class() if given is None else given
    from jpsi.config import structured  # imports cattrs, which most users never need

    return structured(config_class, section.config)
