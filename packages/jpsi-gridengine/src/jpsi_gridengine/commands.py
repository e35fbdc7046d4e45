"""The one form that every call of a Grid Engine command has: its environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jpsi.plugin import Command

#: Grid Engine prints local time without saying which.
UNIVERSAL_TIME = {"TZ": "UTC0"}


def gridengine(
    program: str,
    *arguments: str,
    stdin: str | None = None,
    unset: Iterable[str] = (),
    environment: Mapping[str, str] = UNIVERSAL_TIME,
) -> Command:
    """The command that calls a program of Grid Engine's."""
    # They choose debugging output, which goes where answers are expected.
    misleading = ("SGE_DEBUG_LEVEL", "SGE_ND")
    return Command([program, *arguments], stdin=stdin, unset=(*misleading, *unset), environment=environment)
