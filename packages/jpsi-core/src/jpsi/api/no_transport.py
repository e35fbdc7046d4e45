"""The transport of an environment in which nothing is installed that runs commands."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from jpsi.contract import Command, CommandResult
from jpsi.model import TransportError


@attrs.frozen(slots=True)
class NoTransport:
    """Refuses every command; a backend with an engine of its own needs none."""

    #: Why there is none, and what to do.
    message: str

    @property
    def is_local(self) -> bool:
        """Always true."""
        return True

    def run(
        self, command: Command, keep: int | None = None, ready: Callable[[], None] | None = None
    ) -> CommandResult:
        """Raise TransportError."""
        del command, keep, ready
        raise TransportError(self.message)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
