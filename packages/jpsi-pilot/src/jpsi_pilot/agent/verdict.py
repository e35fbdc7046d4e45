"""The verdict on jobs whose runs have ended, or whose places are gone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Mapping

from ..node import engine_log_place
from ..protocol import End
from .journal import Journal
from .lost_places import LostPlaces
from .pilot import Pilot
from .state import Job

# The final state by the reason why a run was ended.
_FINAL_STATES = {"cancel": "cancelled", "timeout": "timeout", "unable": "unable"}


class Verdicts:
    """The part of the poll loop that records ends, and requeues jobs."""

    def __init__(self, journal: Journal, now: Callable[[], float], lost_places: LostPlaces) -> None:
        """Create it; nothing is judged yet.

        Args:
            journal: records every verdict.
            now: returns the time.
            lost_places: reads the logs of places that are gone.
        """
        self._journal = journal
        self._state = journal.state
        self._now = now
        self._lost_places = lost_places

    def judge(
        self, places: Container[str], pilots: Mapping[str, Pilot], tracked_runs: Container[tuple[str, int]]
    ) -> None:
        """Judge the jobs whose place is gone, by the place's log or by the end of their pilot.

        Args:
            places: the names of the existing places.
            pilots: the pilots that are not known to be over, or not yet removed.
            tracked_runs: the runs whose end an engine will report.
        """
        read_log = functools.cache(self._lost_places.read_log)
        for job in self._state.running:
            lost = [it for it in job.places if it not in places]
            if not lost or (len(lost) < len(job.places) and job.run_key in tracked_runs):
                continue
            logs = [read_log(it) for it in (*job.places, engine_log_place(job.places[0]))]
            ends = [it.ends[job.run_key] for it in logs if job.run_key in it.ends]
            is_over = all(read_log(it).over for it in lost)
            pilot = pilots.get(job.pilot or "")
            if ends:
                self.record_end(job, ends[0])
            elif is_over and not any(job.run_key in it.begun for it in logs):
                self.record_end(job, End(code=None, why="pilot"))
            elif is_over or pilot is None or pilot.is_over:
                is_cleaned_up = [self._lost_places.is_cleaned_up(it, read_log(it)) for it in lost]
                if all(is_cleaned_up):
                    self._record_loss(job)

    def record_end(self, job: Job, end: End) -> None:
        """Record the end of a run: the job gets its final state, or waits again."""
        if end.why == "pilot":
            if end.code is None:
                # it never began
                self._requeue(job, ran=False)
            else:
                self._record_loss(job, end.code)
            return
        if end.why == "lost":
            self._record_loss(job, message=end.message)
            return
        word = _FINAL_STATES.get(end.why, "failed" if end.code else "done")
        self._record_final_state(job, word, end.code, end.message)

    def _record_loss(self, job: Job, code: int | None = None, message: str = "") -> None:
        """Record a run that was lost with its pilot or its node; requeue the job if it asked for a retry."""
        if job.submission.retry and not job.stopped:
            self._requeue(job, ran=True)
        else:
            self._record_final_state(job, "cancelled" if job.stopped else "lost", code, message)

    def _requeue(self, job: Job, *, ran: bool) -> None:
        if job.stopped:
            self._record_final_state(job, "cancelled", None)
        else:
            self._journal.write({"what": "back", "id": job.native_id, "ran": ran, "time": self._now()})

    def _record_final_state(self, job: Job, word: str, code: int | None, message: str = "") -> None:
        explanation = {"message": message} if message else {}
        self._journal.write(
            {
                "what": "ended",
                "id": job.native_id,
                "word": word,
                "code": code,
                "time": self._now(),
                **explanation,
            }
        )
