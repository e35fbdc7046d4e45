"""Reports why the batch system does not start the jobs of a run.

The driver calls it between its other steps; statuses bring a state, but not each new reason to wait.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable

from jpsi import Job, JobState
from jpsi_engine import describe_never

from ..run_store import Part
from .job_specs import render_names
from .submissions import Report

# A job that starts soon needs no reason.
_PATIENCE_SECONDS = 5.0
_CHECK_SECONDS = 1.0
_NUMBER = re.compile("[0-9]+")


class WaitReasons:
    """The reasons for which jobs wait, each reported once for a task. Used by one thread."""

    def __init__(
        self,
        report: Report,
        is_dependent: Callable[[Part], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare.

        Args:
            report: called with a sentence about each new reason.
            is_dependent: returns True if a job also waits for others, which the user knows.
            clock: returns seconds.
        """
        self._report = report
        self._is_dependent = is_dependent
        self._clock = clock
        self._next_check = 0.0
        # when each job was first seen to wait, by its id
        self._since: dict[str, float] = {}
        # tasks with a reason that was reported, or need not be
        self._known: set[tuple[str, str]] = set()

    def update(self, jobs: Iterable[tuple[Job, Part]]) -> None:
        """Report the reasons that are new, for jobs with the replicas that they run."""
        now = self._clock()
        if now < self._next_check:
            return
        self._next_check = now + _CHECK_SECONDS
        found: dict[str, list[str]] = {}
        for job, part in jobs:
            reason, name = job.status.message, part.entry.id
            if job.status.state is not JobState.QUEUED:
                continue
            since = self._since.setdefault(job.id, now)
            # PBS's reasons have the number of free cores, which changes all the time
            known = name, _NUMBER.sub("0", reason or "")
            if not reason or known in self._known:
                continue
            if describe_never(reason) is None and self._is_dependent(part):
                # the reason stays for a while after the other jobs have ended
                self._known.add(known)
            elif now - since >= _PATIENCE_SECONDS:
                self._known.add(known)
                found.setdefault(reason, []).append(name)
        for reason, names in found.items():
            advice = describe_never(reason)
            verb = "waits" if len(names) == 1 else "wait"
            self._report(f"{render_names(names)} {verb}: {reason}{f'; {advice}' if advice else ''}")
