"""Builds command lines for the configured Flux instance.

The hooks of the backend build their commands with it; the engine runs them.
"""

from __future__ import annotations

from collections.abc import Iterable

from jpsi.plugin import Command, Site


def command(site: Site, *argv: str, stdin: str | None = None, unset: Iterable[str] = ()) -> Command:
    """Return a command with the environment of the configured Flux instance."""
    uri = site.config.uri
    return Command(argv, stdin=stdin, unset=unset, environment={} if uri is None else {"FLUX_URI": uri})
