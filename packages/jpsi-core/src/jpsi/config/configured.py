"""The configuration as values for people and programs to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from jpsi.config import loader
from jpsi.config.spec_defaults import SpecDefaults

if TYPE_CHECKING:
    from jpsi.config.file import Section


@attrs.frozen(slots=True, kw_only=True)
class Configured:
    """The configuration of one executor or target, merged from all files."""

    #: The executor of a target; None for an executor, and for a target that lacks it.
    executor: str | None
    #: The URL of the backend; None is this machine.
    url: str | None
    #: A constraint for the version of the executor's plugin.
    version: str | None
    #: Values for fields of the executor's configuration, as the files have them.
    config: Mapping[str, Any]
    #: Values for jobs that leave them open, by the names of the fields of a spec.
    defaults: Mapping[str, Any]


@attrs.frozen(slots=True, kw_only=True)
class Configuration:
    """The configuration, merged from all files; names are in lower case."""

    #: The files that were read, the strongest first.
    files: Sequence[Path]
    default_executor: str | None
    plugin_path: Sequence[Path]
    executors: Mapping[str, Configured]
    targets: Mapping[str, Configured]


def configuration() -> Configuration:
    """Return the current configuration; the values are not checked against the plugins.

    Raises:
        ConfigError: a file has mistakes; the message lists all of them.
    """
    settings = loader.load()
    layers = settings.layers
    return Configuration(
        files=loader.files(),
        default_executor=settings.default_executor,
        plugin_path=settings.plugin_path,
        executors=_joined([layer.executors for layer in layers]),
        targets=_joined([layer.targets for layer in layers]),
    )


def _joined(layers: Sequence[Mapping[str, Section]]) -> Mapping[str, Configured]:
    names = sorted({name for layer in layers for name in layer})
    return {name: _configured([layer[name] for layer in layers if name in layer]) for name in names}


def _configured(sections: Sequence[Section]) -> Configured:
    joined, *weaker = sections
    for section in weaker:
        joined = joined.over(section)
    defaults = attrs.asdict(joined.defaults)
    return Configured(
        executor=joined.executor,
        url=joined.url,
        version=joined.version,
        config={name: value.raw for name, value in joined.config.items()},
        defaults={name: it for name, it in defaults.items() if it != getattr(_NOTHING, name)},
    )


_NOTHING = SpecDefaults()
