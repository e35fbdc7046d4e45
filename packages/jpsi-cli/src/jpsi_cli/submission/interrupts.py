"""Handles Ctrl-C, SIGTERM and SIGHUP in `jpsi run`: the first cancels the job, the second exits at once."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType

from .. import exit_codes, messages

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """A signal handler: the first signal calls `cancel`, and any further one ends the process at once."""

    def __init__(self, cancel: Callable[[signal.Signals], None], farewell: Callable[[], str]) -> None:
        """Prepare the handler; it installs nothing yet.

        Args:
            cancel: called with the first signal.
            farewell: returns the last message before the process ends.
        """
        #: The first signal; None before it.
        self.received: signal.Signals | None = None
        self._cancel = cancel
        self._farewell = farewell

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """Handle signals within the block, which the main thread enters.

        A signal that was ignored before, as with nohup(1), stays ignored.
        """
        numbers = [it for it in _SIGNALS if signal.getsignal(it) is not signal.SIG_IGN]
        previous = {number: signal.signal(number, self._handle) for number in numbers}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self.received is None:
            self.received = signal.Signals(number)
            self._cancel(self.received)
        else:
            # Below the terminal's `^C`.
            messages.write("\n" if os.isatty(messages.STDERR) else "")
            messages.error(self._farewell())
            # The exit must not wait: not for a stuck reader of the output, nor for a silent batch system.
            os._exit(exit_codes.CANCELLED)
