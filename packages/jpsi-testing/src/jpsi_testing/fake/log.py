"""The log of a fake batch system: which commands were called, and when."""

from __future__ import annotations

import attrs

from jpsi_testing.fake.invocation import Invocation


@attrs.frozen(slots=True)
class Call:
    """A logged call of a command."""

    #: The time of the call, by the scheduler's clock.
    time: float
    invocation: Invocation

    @property
    def command(self) -> str:
        """The command's name."""
        return self.invocation.argv[0]


class Log(list[Call]):
    """All calls of commands, in order, with those that met a fault."""

    def of(self, command: str) -> list[Call]:
        """Return the calls of one command."""
        return [call for call in self if call.command == command]

    def count(self, command: object) -> int:
        """Return the number of calls of a command."""
        return sum(1 for call in self if call.command == command)
