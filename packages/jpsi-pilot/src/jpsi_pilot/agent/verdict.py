"""The verdict on jobs whose runs have ended, or whose places are gone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Mapping

from ..node import carrier_of
from ..protocol import End
from .journal import Journal
from .lost_places import LostPlaces
from .pilot import Pilot
from .state import Job

# The final state by the reason why a run was ended.
_WORDS = {"cancel": "cancelled", "timeout": "timeout", "unable": "unable"}


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
        self, places: Container[str], pilots: Mapping[str, Pilot], carried: Container[tuple[str, int]]
    ) -> None:
        """Judge the jobs whose place is gone, by the place's log or by the end of their pilot.

        Args:
            places: the names of the existing places.
            pilots: the pilots that are not known to be over, or not yet removed.
            carried: the runs whose end an engine will report.
        """
        told_by = functools.cache(self._lost_places.story)
        for job in self._state.running:
            gone = [it for it in job.places if it not in places]
            if not gone or (len(gone) < len(job.places) and job.run in carried):
                continue
            told = [told_by(it) for it in (*job.places, carrier_of(job.places[0]))]
            ends = [it.ends[job.run] for it in told if job.run in it.ends]
            is_over = all(told_by(it).over for it in gone)
            pilot = pilots.get(job.pilot or "")
            if ends:
                self.note(job, ends[0])
            elif is_over and not any(job.run in it.begun for it in told):
                self.note(job, End(code=None, why="pilot"))
            elif is_over or pilot is None or pilot.over:
                cleared = [self._lost_places.is_cleared(it, told_by(it)) for it in gone]
                if all(cleared):
                    self._lost(job)

    def note(self, job: Job, end: End) -> None:
        """Record the end of a run: the job gets its final state, or waits again."""
        if end.why == "pilot":
            if end.code is None:
                # it never began
                self._back(job, ran=False)
            else:
                self._lost(job, end.code)
            return
        if end.why == "lost":
            self._lost(job, message=end.message)
            return
        word = _WORDS.get(end.why, "failed" if end.code else "done")
        self._end(job, word, end.code, end.message)

    def _lost(self, job: Job, code: int | None = None, message: str = "") -> None:
        """Record a run that was lost with its pilot or its node; requeue the job if it asked for a retry."""
        if job.submission.retry and not job.stopped:
            self._back(job, ran=True)
        else:
            self._end(job, "cancelled" if job.stopped else "lost", code, message)

    def _back(self, job: Job, *, ran: bool) -> None:
        if job.stopped:
            self._end(job, "cancelled", None)
        else:
            self._journal.write({"what": "back", "id": job.native_id, "ran": ran, "time": self._now()})

    def _end(self, job: Job, word: str, code: int | None, message: str = "") -> None:
        said = {"message": message} if message else {}
        self._journal.write(
            {"what": "ended", "id": job.native_id, "word": word, "code": code, "time": self._now(), **said}
        )
