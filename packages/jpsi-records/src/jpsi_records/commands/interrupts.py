"""Ends a command by Ctrl-C, SIGTERM or SIGHUP, also where Python loses the exception that this raises.

Python ignores an exception in a function that it calls on garbage collection, and SQLAlchemy has such
functions. Another exception, raised in a `finally`, may take its place.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterable, Iterator
from types import FrameType

import attrs


@attrs.define(slots=True)
class Interrupts:
    """The interrupts of a command."""

    is_received: bool = False

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal has arrived; loops call it, as the first may be lost."""
        if self.is_received:
            raise KeyboardInterrupt

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.is_received = True
        raise KeyboardInterrupt

    @contextlib.contextmanager
    def raised(self, numbers: Iterable[signal.Signals]) -> Iterator[None]:
        """Within the block, which the main thread enters, raise KeyboardInterrupt on these signals.

        A signal that was ignored before, as with nohup(1), stays ignored.
        """
        handlers = {it: handler for it in numbers if (handler := signal.getsignal(it)) is not signal.SIG_IGN}
        try:
            for it in handlers:
                signal.signal(it, self._handle)
            yield
        except Exception as e:
            if self.is_received:
                raise KeyboardInterrupt from e
            raise
        finally:
            for it, handler in handlers.items():
                signal.signal(it, handler)
