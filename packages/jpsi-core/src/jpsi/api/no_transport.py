"""The transport of an installation without any distribution that runs commands."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from jpsi.contract import Command, CommandResult
from jpsi.model import TransportError


@attrs.frozen(slots=True)
class NoTransport:
    """A transport that refuses every command; a backend with an engine of its own needs none."""

    #: The reason, and what the user can do.
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
        """Do nothing: the transport holds no resources."""
