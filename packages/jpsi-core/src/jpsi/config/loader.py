"""Loads and merges the configuration of the site, the user and the file that JPSI_CONFIG names."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from jpsi.config.settings import Layer, Settings
from jpsi.contract import ownership
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
    named = os.environ.get(CONFIG)
    site, user = folders()
    paths = [path for path in (user / _FILE, site / _FILE) if os.path.isfile(path)]  # noqa: PTH113  never raises
    if not named:
        return paths
    path = Path(named).expanduser()
    if not os.path.isfile(path):  # noqa: PTH113  as above
        msg = f"{CONFIG} names {named}, which is not a file"
        raise ConfigError(msg)
    return [path, *paths]


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
        msg = f"{path} cannot be read: {e}"
        raise ConfigError(msg, e) from e
    return read(text, str(path))
