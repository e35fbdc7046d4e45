"""Ctrl-C and its kin: the first one asks, the second one leaves."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

from .. import exit_codes, messages

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """While entered, the first of the signals calls `ask`; at any further one the process ends at once.

    A signal that was ignored before, as nohup(1) has it, stays ignored. To be entered on the main thread.
    """

    def __init__(self, ask: Callable[[signal.Signals], None], farewell: Callable[[], str]) -> None:
        """Prepare; both functions are called in a signal handler, `farewell` for the last words."""
        #: The signal that asked.
        self.received: signal.Signals | None = None
        self._ask = ask
        self._farewell = farewell
        # what `signal.signal` takes and returns, for which there is no public name
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self.received is None:
            self.received = signal.Signals(number)
            self._ask(self.received)
        else:
            # Below the terminal's `^C`.
            messages.write("\n" if os.isatty(messages.STDERR) else "")
            messages.error(self._farewell())
            # Nothing may keep us: not a reader that does not read, not a batch system that does not answer.
            os._exit(exit_codes.CANCELLED)
