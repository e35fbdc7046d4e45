"""Configured options of batch systems that express requirements of resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import platformdirs
import yaml

from jpsi import ConfigError

_FILE = "workflows.yaml"
_KEYS = ("option", "value", "join")


@attrs.frozen(slots=True, kw_only=True)
class Mapped:
    """The option of a batch system that expresses a requirement."""

    #: `<system>.<option>`, such as `slurm.constraint`.
    option: str
    #: Its value, in which `{match}` stands for the wanted value.
    value: str = "{match}"
    #: The separator of the values of several requirements; None if the option takes one only.
    join: str | None = None


def configured_constraints(name: str) -> dict[str, Mapped]:
    """Return the configured options of an executor or target, by `subsystem.field`.

    The file `workflows.yaml`, beside the configuration of jpsi, has them; the user's file overrides the
    site's.

    Raises:
        ConfigError: a file has other contents.
    """
    found: dict[str, Mapped] = {}
    for folder in (platformdirs.site_config_path("jpsi"), platformdirs.user_config_path("jpsi")):
        path = folder / _FILE
        for target, table in _tables(path):
            if target.lower() == name:
                location = f"{path}: constraints.{target}"
                found |= {key: _parse_option(it, f"{location}.{key}") for key, it in table.items()}
    return found


def _tables(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the tables of a file, by the names of their executors or targets."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        msg = f"{path} cannot be read: {e}"
        raise ConfigError(msg, e) from e
    tables = content.get("constraints") if isinstance(content, dict) else None
    if content and (not isinstance(tables, dict) or content.keys() != {"constraints"}):
        msg = f"{path} must have the key `constraints` alone, with a table for each executor or target"
        raise ConfigError(msg)
    for name, table in (tables or {}).items():
        if not isinstance(table, dict):
            msg = f"{path}: constraints.{name} must be a mapping; write `subsystem.field: system.option`"
            raise ConfigError(msg)
        yield str(name), table


def _parse_option(content: object, location: str) -> Mapped:
    fields = {"option": content} if isinstance(content, str) else content
    if (
        isinstance(fields, dict)
        and fields.keys() <= set(_KEYS)
        and isinstance(fields.get("option"), str)
        and all(isinstance(it, str) for it in fields.values())
    ):
        return Mapped(**fields)
    msg = f"{location} must be an option such as slurm.constraint, or have option, value and join"
    raise ConfigError(msg)
