"""Loads and merges the configuration of the site, the user and the file that JPSI_CONFIG names.

`configuration` returns it as values for people and programs to read.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from jpsi.config.settings import OWN, Layer, Section, Settings, overlay
from jpsi.contract import ownership
from jpsi.document import Value
from jpsi.model import ConfigError, InvalidJobException

#: The environment variable with the path of a configuration file that overrides the user's.
CONFIG = "JPSI_CONFIG"
_FILE = "config.yaml"


def folders() -> tuple[Path, Path]:
    """Return the configuration directories, the site's and the user's."""
    import platformdirs

    return platformdirs.site_config_path("jpsi"), platformdirs.user_config_path("jpsi")


def files() -> list[Path]:
    """Return the existing configuration files, the strongest first; ConfigError if JPSI_CONFIG names none."""
    named = named_file()
    site, user = folders()
    paths = [path for path in (user / _FILE, site / _FILE) if os.path.isfile(path)]  # noqa: PTH113  never raises
    if named is not None and not os.path.isfile(named):  # noqa: PTH113  as above
        raise ConfigError(f"{CONFIG} names {os.environ[CONFIG]}, which is not a file")
    return paths if named is None else [named, *paths]


def named_file() -> Path | None:
    """Return the path that JPSI_CONFIG names; a relative one is of the directory at the first call."""
    named = os.environ.get(CONFIG)
    return _absolute(named) if named else None


@functools.cache
def _absolute(path: str) -> Path:
    return Path(path).expanduser().absolute()


def load() -> Settings:
    """Load the current configuration.

    ConfigError lists all problems of the files; one is that other users may change a file.
    """
    layers: list[Layer] = []
    problems: list[str] = []
    for path in files():
        try:
            layers.append(_read(path))
        except (ConfigError, InvalidJobException) as e:
            problems += e.problems if isinstance(e, InvalidJobException) else [str(e)]
    if problems:
        raise config_error(problems)
    return Settings(tuple(layers))


def config_error(problems: Collection[str]) -> ConfigError:
    """Return one error for all problems of the configuration."""
    listed = "".join(f"\n  - {problem}" for problem in problems)
    return ConfigError(f"the configuration is wrong:{listed}")


def _read(path: Path) -> Layer:
    from jpsi.config.file import read  # imports YAML, which most users never need

    if refusal := ownership.refusal(path):
        raise ConfigError(refusal)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigError(f"{path} cannot be read: {e}", e) from e
    return read(text, str(path))


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
    loaded = load()
    return Configuration(
        files=files(),
        default_executor=loaded.default_executor,
        plugin_path=loaded.plugin_path,
        executors=_merged([layer.executors for layer in loaded.layers]),
        targets=_merged([layer.targets for layer in loaded.layers]),
    )


def _merged(layers: Sequence[Mapping[str, Section]]) -> dict[str, Configured]:
    names = sorted(set[str]().union(*layers))
    return {name: _configured(overlay(layers, [name])) for name in names}


def _raw(name: str, value: Value) -> object:
    """Return a value as its file has it; the path of the work directory as executors use it."""
    is_path = name == "work_directory" and isinstance(value.raw, str) and not value.raw.startswith("~")
    return str(Path(value.problems.source).parent / value.raw) if is_path else value.raw


def _configured(section: Section) -> Configured:
    own = {name: getattr(section.defaults, name) for name in OWN}
    defaults = {**own, **attrs.asdict(section.defaults.attributes)}
    return Configured(
        executor=section.executor,
        url=section.url,
        version=section.version,
        config={name: _raw(name, value) for name, value in section.config.items()},
        defaults={name: value for name, value in defaults.items() if value not in (None, {})},
    )
