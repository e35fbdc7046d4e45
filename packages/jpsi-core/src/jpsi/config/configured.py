"""What is configured, as values for people and programs to look at."""

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
    """What is configured for one executor or target, all files taken together."""

    #: The executor that a target stands for; None for an executor, and for a target that lacks it.
    executor: str | None
    #: Where the backend is; None is here.
    url: str | None
    #: A constraint for the version of the executor's plugin.
    version: str | None
    #: Values for fields of the executor's configuration, as they are written.
    config: Mapping[str, Any]
    #: What jobs get that leave it open, by the names of the fields of a spec.
    defaults: Mapping[str, Any]


@attrs.frozen(slots=True, kw_only=True)
class Configuration:
    """What is configured, all files taken together; names are in small letters."""

    #: The files that were read, the strongest first.
    files: Sequence[Path]
    default_executor: str | None
    plugin_path: Sequence[Path]
    executors: Mapping[str, Configured]
    targets: Mapping[str, Configured]


def configuration() -> Configuration:
    """What is configured now; whether plugins can do with it, nobody has looked.

    Raises:
        ConfigError: a file says something wrong; all that is wrong is named.
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
