"""The one form that every command has: the instance of Flux that it is for."""

from __future__ import annotations

from collections.abc import Iterable

from jpsi.plugin import Command, Site


def command(site: Site, *argv: str, stdin: str | None = None, unset: Iterable[str] = ()) -> Command:
    """The command, for the instance that is configured."""
    uri = site.config.uri
    return Command(argv, stdin=stdin, unset=unset, environment={} if uri is None else {"FLUX_URI": uri})
