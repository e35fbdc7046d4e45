"""Publishes statuses in the order in which they were found, without the lock under which they were found."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

import attrs

from jpsi import JobStatus

log = logging.getLogger(__name__)


@attrs.define(slots=True, eq=False)
class Outbox:
    """A queue of statuses to publish.

    Any thread may put statuses in while it holds its own lock, and empties the outbox after it has released
    it.
    """

    #: Called with a job id and a status, by one thread at a time: one of those that call `flush`.
    _publish: Callable[[str, JobStatus], None]
    _waiting: deque[tuple[str, JobStatus]] = attrs.field(factory=deque, init=False)
    #: No thread waits for this lock: one that finds it taken leaves the statuses to its holder.
    _emptying: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def put(self, job_id: str, status: JobStatus) -> None:
        """Add a status after all that were put in before."""
        self._waiting.append((job_id, status))

    def flush(self) -> None:
        """Publish all statuses that were put in, on this thread or the one that is publishing already."""
        # again after the release: another thread may have found the lock taken just before it
        while self._waiting and self._emptying.acquire(blocking=False):
            try:
                while self._waiting:
                    # Removed only after that: an interrupted thread leaves the status to the next, and a
                    # repeat does no harm.
                    job_id, status = self._waiting[0]
                    try:
                        self._publish(job_id, status)
                    except Exception:
                        log.exception("job %s: publishing the status %s failed", job_id, status)
                    self._waiting.popleft()
            finally:
                self._emptying.release()
