"""What a fake batch system was asked, and when."""

from __future__ import annotations

import attrs

from jpsi_testing.fake.invocation import Invocation


@attrs.frozen(slots=True)
class Call:
    """One call of a command."""

    #: When it came, by the scheduler's clock.
    time: float
    invocation: Invocation

    @property
    def command(self) -> str:
        """The command's name."""
        return self.invocation.argv[0]


class Log(list[Call]):
    """Every call of a command, in order; those that met a fault too."""

    def of(self, command: str) -> list[Call]:
        """The calls of one command."""
        return [call for call in self if call.command == command]

    def count(self, command: object) -> int:
        """How often a command was called."""
        return sum(1 for call in self if call.command == command)
