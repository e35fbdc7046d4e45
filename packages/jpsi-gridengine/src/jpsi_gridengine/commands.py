"""Builds the command lines of Grid Engine with a clean environment.

Without that, environment variables of the user would change the output that jpsi parses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jpsi.plugin import Command

#: By default Grid Engine prints local times without their zone.
ENVIRONMENT = {"TZ": "UTC0"}


def gridengine_command(
    program: str,
    *arguments: str,
    stdin: str | None = None,
    unset: Iterable[str] = (),
    environment: Mapping[str, str] = ENVIRONMENT,
) -> Command:
    """Return the command that calls one of Grid Engine's programs."""
    # These variables turn on debugging output, which would mix with the command's output.
    debug_variables = ("SGE_DEBUG_LEVEL", "SGE_ND")
    return Command(
        [program, *arguments], stdin=stdin, unset=(*debug_variables, *unset), environment=environment
    )
