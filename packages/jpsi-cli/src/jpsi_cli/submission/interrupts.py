"""Handles Ctrl-C and similar signals: the first one cancels, the second one leaves at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

from .. import exit_codes, messages

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """A context in which the first signal calls `cancel`, and any further one ends the process at once.

    A signal that was ignored before, as with nohup(1), stays ignored. Enter it on the main thread.
    """

    def __init__(self, cancel: Callable[[signal.Signals], None], farewell: Callable[[], str]) -> None:
        """Prepare; a signal handler calls both functions, `farewell` for the last message."""
        #: The first signal; None before it.
        self.received: signal.Signals | None = None
        self._cancel = cancel
        self._farewell = farewell
        # the handlers of `signal.signal`, whose type has no public name
        self._previous_handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._previous_handlers[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._previous_handlers.items():
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
