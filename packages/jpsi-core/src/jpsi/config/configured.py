"""The configuration as values for people and programs to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from jpsi.config import loader
from jpsi.config.settings import Section, overlay


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
        ConfigError: a file has problems; the message lists all of them.
    """
    loaded = loader.load()
    return Configuration(
        files=loader.files(),
        default_executor=loaded.default_executor,
        plugin_path=loaded.plugin_path,
        executors=_merged([layer.executors for layer in loaded.layers]),
        targets=_merged([layer.targets for layer in loaded.layers]),
    )


def _merged(layers: Sequence[Mapping[str, Section]]) -> dict[str, Configured]:
    names = sorted(set[str]().union(*layers))
    return {name: _configured(overlay(layers, [name])) for name in names}


def _configured(section: Section) -> Configured:
    return Configured(
        executor=section.executor,
        url=section.url,
        version=section.version,
        config={name: value.raw for name, value in section.config.items()},
        defaults=attrs.asdict(section.defaults, filter=lambda _, value: value not in (None, {})),
    )
