"""Publishes statuses in the order in which they were found, outside the lock under which they were."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from jpsi import JobStatus

log = logging.getLogger(__name__)


class Outbox:
    """Statuses on their way. Any thread may put some in under its lock, and empty it after that.

    Args:
        publish: called with a job id and a status, by one thread at a time, of those that empty the outbox.
    """

    def __init__(self, publish: Callable[[str, JobStatus], None]) -> None:
        self._publish = publish
        self._waiting: deque[tuple[str, JobStatus]] = deque()
        # Nobody ever waits for it: whoever finds it taken leaves the rest to its holder.
        self._emptying = threading.Lock()

    def put(self, job_id: str, status: JobStatus) -> None:
        """Add a status after all that were put in before."""
        self._waiting.append((job_id, status))

    def _tell(self, job_id: str, status: JobStatus) -> None:
        try:
            self._publish(job_id, status)
        except Exception:
            log.exception("job %s: %s could not be told", job_id, status)

    def empty(self) -> None:
        """See to it that all that was put in is published: by this thread, or by one that is at it."""
        # once more after letting go: another thread may have come by in vain
        while self._waiting and self._emptying.acquire(blocking=False):
            try:
                while self._waiting:
                    # Taken out only then: who is interrupted leaves it to the next, and twice does no harm.
                    self._tell(*self._waiting[0])
                    self._waiting.popleft()
            finally:
                self._emptying.release()
