"""The commands about installed plugins and the configuration: `jpsi plugins` and `config`."""

from __future__ import annotations

from .commands import CONFIG, PLUGINS
