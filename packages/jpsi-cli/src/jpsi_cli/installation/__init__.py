"""The commands about what is installed for jpsi and what is configured: `jpsi plugins` and `config`."""

from __future__ import annotations

from .commands import CONFIG, PLUGINS

__all__ = ["CONFIG", "PLUGINS"]
