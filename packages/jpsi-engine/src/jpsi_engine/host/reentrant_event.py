"""An event that a finalizer may set: how a thread learns that its owner is gone.

The garbage collector calls finalizers at any point of any thread. A `threading.Event` holds a lock while it
is being set, and as a thread begins to wait for it; a finalizer that sets it at that moment waits for ever.
"""

from __future__ import annotations

import contextlib
import queue


class ReentrantEvent:
    """An event like `threading.Event`, except that `wait` may return False early.

    Any thread may call its methods.
    """

    def __init__(self) -> None:
        self._is_set = False
        # wakes the waiting threads; `SimpleQueue.put` is reentrant, so that a finalizer may call it
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()

    def is_set(self) -> bool:
        """Return True if it was set after it was last cleared."""
        return self._is_set

    def set(self) -> None:
        """Set it, and wake the threads that wait for it."""
        self._is_set = True
        self._wakes.put(None)

    def clear(self) -> None:
        """Reset it, so that threads wait for it again."""
        self._is_set = False
        with contextlib.suppress(queue.Empty):
            while True:
                self._wakes.get_nowait()
        self._wake_another()

    def wait(self, seconds: float) -> bool:
        """Wait until the event is set, for so many seconds at most; return True if it is set."""
        if not self._is_set:
            with contextlib.suppress(queue.Empty):
                self._wakes.get(timeout=seconds)
                self._wake_another()
        return self._is_set

    def _wake_another(self) -> None:
        """Put back what was taken from the queue, if that was for a thread that still waits."""
        if self._is_set:
            self._wakes.put(None)
