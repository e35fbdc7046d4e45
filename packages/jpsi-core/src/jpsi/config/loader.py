"""Loads and merges the configuration of the site, the user and the file that JPSI_CONFIG names."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from jpsi.contract import ownership
from jpsi.model import ConfigError, InvalidJobException

if TYPE_CHECKING:
    from jpsi.config.file import Layer, Section

#: The environment variable with the path of a configuration file that overrides the user's.
CONFIG = "JPSI_CONFIG"
_FILE = "config.yaml"


@attrs.frozen(slots=True)
class Settings:
    """The configuration, the strongest layer first; docs/guide describes the files."""

    layers: tuple[Layer, ...] = ()

    @property
    def plugin_path(self) -> list[Path]:
        """The directories with plugins, the user's before the site's."""
        return [directory for layer in self.layers for directory in layer.plugin_path]

    @property
    def default_executor(self) -> str | None:
        """The executor or target for callers that name none."""
        return next((it.default_executor for it in self.layers if it.default_executor), None)

    @property
    def default_location(self) -> str:
        """The location where that is configured; empty if it is not."""
        return next((it.default_location for it in self.layers if it.default_executor), "")

    @property
    def targets(self) -> list[str]:
        """The names of all targets, in lower case."""
        return sorted({name for layer in self.layers for name in layer.targets})

    def target(self, name: str) -> Section | None:
        """Return the configuration of a target of this name, or None.

        Raises:
            ConfigError: no layer names the executor of the target.
        """
        target = overlay([layer.targets for layer in self.layers], [name])
        if target is not None and target.executor is None:
            msg = f"the target {name!r} is configured without its executor; add it: targets.{name}.executor"
            raise ConfigError(msg)
        return target

    def executor(self, names: Collection[str]) -> Section | None:
        """Return the configuration of an executor that has these names, or None."""
        return overlay([layer.executors for layer in self.layers], names)


def overlay(layers: Iterable[Mapping[str, Section]], names: Collection[str]) -> Section | None:
    """Return the sections with these names, merged into one; None if there are none."""
    wanted = sorted({name.lower() for name in names})
    sections = [layer[name] for layer in layers for name in wanted if name in layer]
    return functools.reduce(lambda high, low: high.over(low), sections) if sections else None


def folders() -> tuple[Path, Path]:
    """Return the configuration directories, the site's and the user's."""
    import platformdirs

    return platformdirs.site_config_path("jpsi"), platformdirs.user_config_path("jpsi")


def files() -> list[Path]:
    """Return the existing configuration files, the strongest first.

    Raises:
        ConfigError: JPSI_CONFIG does not name a file.
    """
    named = os.environ.get(CONFIG)
    site, user = folders()
    paths = [path for path in (user / _FILE, site / _FILE) if os.path.isfile(path)]  # noqa: PTH113  never raises
    return [_named(named), *paths] if named else paths


def load() -> Settings:
    """Load the current configuration.

    Raises:
        ConfigError: a file has problems or may be changed by other users, or JPSI_CONFIG does not name a
            file; the message lists all problems of the files.
    """
    layers: list[Layer] = []
    problems: list[str] = []
    for path in files():
        try:
            layers.append(_read(path))
        except ConfigError as e:
            problems.append(str(e))
        except InvalidJobException as e:
            problems += e.problems
    if problems:
        raise config_error(problems)
    return Settings(tuple(layers))


def config_error(problems: Collection[str]) -> ConfigError:
    """Return one error for all problems of the configuration."""
    listed = "".join(f"\n  - {problem}" for problem in problems)
    return ConfigError(f"the configuration is wrong:{listed}")


def _named(text: str) -> Path:
    path = Path(text).expanduser()
    if not os.path.isfile(path):  # noqa: PTH113  as above
        msg = f"{CONFIG} names {text}, which is not a file"
        raise ConfigError(msg)
    return path


def _read(path: Path) -> Layer:
    from jpsi.config.file import read  # imports YAML, which most users never need

    if refusal := ownership.refusal(path):
        raise ConfigError(refusal)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        msg = f"{path} cannot be read: {e}"
        raise ConfigError(msg, e) from e
    return read(text, str(path))
