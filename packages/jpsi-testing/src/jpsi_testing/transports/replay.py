"""A transport that answers commands from recordings of a real batch system, for tests of a backend."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

from jpsi.plugin import Command, CommandResult, TransportError
from jpsi_testing.recordings import Recording


class ReplayTransport:
    """A transport that answers recorded command lines with their results; implements `jpsi.plugin.Transport`.

    A command line that was recorded several times gets its answers in order, and then always the last.
    """

    def __init__(self, recordings: Iterable[Recording]) -> None:
        #: The commands that were run.
        self.commands: list[Command] = []
        self._lock = threading.Lock()
        self._results: dict[tuple[str, ...], deque[CommandResult]] = {}
        for recording in recordings:
            self._results.setdefault(recording.argv, deque()).append(recording.result)

    @property
    def is_local(self) -> bool:
        """Always True."""
        return True

    def run(
        self, command: Command, keep: int | None = None, ready: Callable[[], None] | None = None
    ) -> CommandResult:
        """Answer a command; see `jpsi.plugin.Transport`.

        Raises:
            TransportError: there is no recording of it.
        """
        if ready is not None:
            ready()
        with self._lock:
            self.commands.append(command)
            results = self._results.get(command.argv)
            if results is None:
                raise TransportError(f"there is no recording of {list(command.argv)}")
            return results.popleft() if len(results) > 1 else results[0]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
