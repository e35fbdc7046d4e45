"""Tells why jobs wait that have room: the pilot that they are to run in does not start."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator

from jpsi import Job, JobExecutor, JobState, JpsiError

log = logging.getLogger(__name__)

# How often it is looked.
_SECONDS = 10.0


@contextlib.contextmanager
def told(executor: JobExecutor, latest: Callable[[], Job | None]) -> Iterator[None]:
    """Within the block, warn of each reason why the job that was submitted last waits.

    Args:
        executor: whose job it is.
        latest: the job that was submitted last, if there is one.
    """
    is_over = threading.Event()

    def look() -> None:
        last: str | None = None
        while not is_over.wait(_SECONDS):
            why = why_waiting(executor, latest())
            if why is not None and why != last:
                log.warning("tasks wait: %s", why)
                last = why

    threading.Thread(target=look, name="jpsi-stalls", daemon=True).start()
    try:
        yield
    finally:
        is_over.set()


def why_waiting(executor: JobExecutor, job: Job | None) -> str | None:
    """What the executor says of a job that has not begun; None if it says nothing."""
    if job is None or job.status.state is not JobState.QUEUED:
        return None
    try:
        found = executor.info(job)
    except JpsiError:
        # it has ended meanwhile, or nobody answers now
        return None
    return None if found is None else found.message
