"""Watches for the end of the inside of a group: a signal, the death of its keeper, or the walltime."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from datetime import timedelta

#: Why an inside ends that the user does not cancel: its walltime is over, or the allocation was taken away.
TIMEOUT, INTERRUPTED = "timeout", "interrupted"
# How long before the end of the walltime tasks begin to clean up: a tenth of it, and no more than this.
_MAX_CLEANUP_TIME = timedelta(minutes=1)
_CLEANUP_FRACTION = 10


def time_to_run(duration: timedelta | None, used: timedelta) -> timedelta | None:
    """Return how long an inside may go on before it has to clean up; None if there is no limit.

    >>> time_to_run(timedelta(minutes=5), used=timedelta(seconds=30))
    datetime.timedelta(seconds=240)
    """
    if not duration:
        return None
    return max(timedelta(0), duration - min(_MAX_CLEANUP_TIME, duration / _CLEANUP_FRACTION) - used)


def watch_for_end(on_end: Callable[[str], None], remaining: timedelta | None) -> None:
    """Call `on_end` with the reason when the inside has to end; unblock signals from now on.

    Args:
        on_end: may be called several times, in the main thread and in others.
        remaining: for how long the inside may run.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: on_end(INTERRUPTED))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})
    threading.Thread(target=_wait_for_keeper, args=(on_end,), daemon=True).start()
    if remaining is not None:
        timer = threading.Timer(remaining.total_seconds(), on_end, (TIMEOUT,))
        timer.daemon = True
        timer.start()


def _wait_for_keeper(on_end: Callable[[str], None]) -> None:
    """Wait for the end of the keeper, which holds standard input open and writes nothing, then end."""
    while os.read(0, 1):
        pass
    on_end(INTERRUPTED)
