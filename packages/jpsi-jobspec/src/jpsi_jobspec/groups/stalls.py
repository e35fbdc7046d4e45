"""Reports why jobs wait although there is room: the pilot that should run them does not start."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator

from jpsi import Job, JobExecutor, JobState, JpsiError

log = logging.getLogger(__name__)

# The interval of checks.
_SECONDS = 10.0


@contextlib.contextmanager
def warn_of_stalls(executor: JobExecutor, latest: Callable[[], Job | None]) -> Iterator[None]:
    """Within the block, warn of each reason why the job that was submitted last waits.

    Args:
        executor: of the job.
        latest: returns the job that was submitted last, if there is one.
    """
    is_over = threading.Event()

    def watch() -> None:
        last: str | None = None
        while not is_over.wait(_SECONDS):
            why = why_waiting(executor, latest())
            if why is not None and why != last:
                log.warning("tasks wait: %s", why)
                last = why

    threading.Thread(target=watch, name="jpsi-stalls", daemon=True).start()
    try:
        yield
    finally:
        is_over.set()


def why_waiting(executor: JobExecutor, job: Job | None) -> str | None:
    """Return what the executor says of a job that has not begun; None if it says nothing."""
    if job is None or job.status.state is not JobState.QUEUED:
        return None
    try:
        found = executor.info(job)
    except JpsiError:
        # the job has ended meanwhile, or the executor does not answer now
        return None
    return None if found is None else found.message
