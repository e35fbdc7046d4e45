"""Builds the command lines of Grid Engine with a clean environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jpsi.plugin import Command

#: By default Grid Engine prints local times without their zone.
UNIVERSAL_TIME = {"TZ": "UTC0"}


def gridengine(
    program: str,
    *arguments: str,
    stdin: str | None = None,
    unset: Iterable[str] = (),
    environment: Mapping[str, str] = UNIVERSAL_TIME,
) -> Command:
    """Return the command that calls one of Grid Engine's programs."""
    # These variables turn on debugging output, which would mix with the command's output.
    misleading = ("SGE_DEBUG_LEVEL", "SGE_ND")
    return Command([program, *arguments], stdin=stdin, unset=(*misleading, *unset), environment=environment)
