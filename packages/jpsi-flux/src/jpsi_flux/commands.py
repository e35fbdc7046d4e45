"""The one form that every call of Flux has: the instance that it is for."""

from __future__ import annotations

from collections.abc import Iterable

from jpsi.plugin import Command, Site


def flux(site: Site, *arguments: str, stdin: str | None = None, unset: Iterable[str] = ()) -> Command:
    """The command that calls Flux."""
    return instance(site, "flux", *arguments, stdin=stdin, unset=unset)


def instance(
    site: Site, program: str, *arguments: str, stdin: str | None = None, unset: Iterable[str] = ()
) -> Command:
    """The command that calls a program, for the instance that is configured."""
    uri = site.config.uri
    environment = {} if uri is None else {"FLUX_URI": uri}
    return Command([program, *arguments], stdin=stdin, unset=unset, environment=environment)
