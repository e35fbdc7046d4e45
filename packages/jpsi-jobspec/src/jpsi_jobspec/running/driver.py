"""Drives a run to its end: submits entries that can start, follows their jobs, and journals the outcome.

After the process that drives a run dies, another one can go on with it. It does not run again what has ended,
and it finds running jobs again by the ids that the journal had before the jobs were submitted.
"""

from __future__ import annotations

import logging
import queue
import sys
import time
from collections.abc import Callable, Iterable, Sequence

from jpsi import Job, JobState, JobStatus

from ..planning import Capacity, Entry, Kind
from ..run_store import (
    DEPENDENCY_FAILED,
    LOST,
    NO_LONGER_NEEDED,
    NO_ROOM,
    Event,
    Journal,
    Part,
    Place,
    end_event,
    replica_event,
)
from .dependencies import Dependants, DependencyHandoff, joined
from .executor import Executor
from .live_output import LiveOutput, Show
from .outcome import cleans_up, end_of
from .probes import Probes
from .starter import Starter
from .submissions import Remark, SubmissionResult, Submissions

log = logging.getLogger(__name__)

#: Called with each entry that comes into another state.
StateCallback = Callable[[Entry, JobState], None]

# How often the driver checks for a request to cancel, in seconds.
_LOOK_SECONDS = 0.5


def _show(data: bytes, stream: str) -> None:
    """Write a job's output to the same stream of this process."""
    file = sys.stdout if stream == "stdout" else sys.stderr
    file.buffer.write(data)
    file.flush()


def _warn(sentence: str) -> None:
    log.warning("%s", sentence)


class Driver:
    """The driver of one run; the process that makes it holds the lock of the journal."""

    def __init__(  # noqa: PLR0913  callbacks, each by its name
        self,
        journal: Journal,
        executor: Executor,
        told: StateCallback,
        capacity: Capacity | None = None,
        *,
        is_restarted: bool = False,
        remark: Remark = _warn,
        show: Show = _show,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to drive one run.

        Args:
            journal: of the run.
            executor: runs the jobs.
            told: called with each entry that comes into another state.
            capacity: of an allocation, if the run is the inside of one: no more runs at a time than it has
                room for.
            is_restarted: True if jobs were submitted so far in an earlier start of that allocation; jobs that
                were lost with it run again.
            remark: called with a sentence about each problem that the user should know, such as a retry.
            show: called with the output of jobs that are watched.
            clock: returns seconds.
        """
        self._journal = journal
        self._executor = executor
        self._told = told
        self._is_inside = capacity is not None
        self._entries = {it.id: it for it in journal.plan.entries}
        self._dependants = Dependants.of(journal.plan.entries)
        # a job's status, or None for a service that can be used now
        self._news: queue.SimpleQueue[tuple[str, JobStatus | None]] = queue.SimpleQueue()
        self._submissions = Submissions(journal, executor, remark, clock, is_restarted=is_restarted)
        self._handoff = DependencyHandoff(journal, executor, self._submissions)
        self._starter = Starter(journal, executor, self._handoff, capacity)
        self._earlier = set(self._written_down()) if is_restarted else set()
        self._probes = Probes(lambda: executor.files, lambda job_id: self._news.put((job_id, None)))
        self._live_output = LiveOutput(show)
        self._shown: dict[str, JobState] = {}
        # why the driver ended jobs, by their ids
        self._why_ended: dict[str, str] = {}
        # entries that the user has cancelled
        self._unwanted: set[str] = set()
        self._is_cancelling = False
        self._is_ending = False

    def run(self, until: Callable[[], bool] | None = None) -> None:
        """Return once all entries have ended, or `until` returns True; then leave the rest as it is.

        Raises:
            JpsiError: the disk cannot be used; nothing is lost by that.
        """
        self._executor.set_job_status_callback(lambda job, status: self._news.put((job.id, status)))
        self._is_cancelling = self._journal.is_cancelled
        self._unwanted |= self._journal.cancelled & self._entries.keys()
        self._digest(self._submissions.seek(self._written_down()))
        self._proceed(self._entries)
        is_done = self._journal.have_ended if until is None else until
        while not is_done():
            if self._journal.is_cancelled and not self._is_cancelling:
                self._is_cancelling = True
                self._give_up(it for it in self._jobs if not cleans_up(self._place(it).entry))
            elif unwanted := self._journal.cancelled & self._entries.keys() - self._unwanted:
                self._unwanted |= unwanted
                self._give_up(it for it in self._jobs if self._place(it).entry.id in unwanted)
            elif not self._is_ending and self._has_only_services():
                self._is_ending = True
                self._give_up(self._jobs)
            self._digest(self._submissions.try_again())
            self._refuse_the_rest()
            self._live_output.look()
            self._take_news()
        self._live_output.look()

    # ------------------------------------------------------------------------------- state of the run

    @property
    def _jobs(self) -> list[Job]:
        return list(self._submissions.jobs.values())

    def _place(self, job: Job) -> Place:
        return self._submissions.places[job.id]

    def _part(self, place: Place) -> Part:
        return self._journal.parts[place.entry.id][place.replica - 1]

    def _written_down(self) -> dict[str, Place]:
        """Return the jobs in the journal that an earlier process made and whose end it did not see."""
        return {
            part.job_id: Place(self._entries[name], replica)
            for name, parts in self._journal.parts.items()
            for replica, part in enumerate(parts, 1)
            if part.job_id is not None and not part.state.final
        }

    def _has_only_services(self) -> bool:
        """Return True if only services are left, which run until all else has ended."""
        rest = [
            it.state.final
            for name, parts in self._journal.parts.items()
            if self._entries[name].kind is not Kind.SERVICE
            for it in parts
        ]
        return bool(rest) and all(rest)

    def _is_given_up(self, entry: Entry) -> bool:
        """Return True if an entry is not to run any more; tasks that clean up after a group always run."""
        is_unwanted = self._is_cancelling and not cleans_up(entry)
        return is_unwanted or entry.id in self._unwanted or self._is_ending

    # ------------------------------------------------------------------------------------- actions

    def _digest(self, news: SubmissionResult) -> None:
        """Go on from the results of submissions."""
        for job in news.followed:
            place = self._place(job)
            part = self._part(place)
            part.is_submitted = True
            # the final state is set when the journal has it
            part.state = JobState.QUEUED if job.status.final else job.status.state
            self._news.put((job.id, job.status))
        for place in news.unknown:
            self._part(place).job_id = None
        found = [*news.followed, *news.unsubmitted]
        for job in found:
            self._starter.take(self._place(job).entry, self._place(job).replica)
        given_up = [it for it in found if self._is_given_up(self._place(it).entry)]
        touched = self._end(given_up, self._why_given_up)
        touched |= self._submit([it for it in news.unsubmitted if it not in given_up])
        touched |= self._took(news) | {place.entry.id: None for place in news.unknown}
        self._settle(touched)

    def _settle(self, touched: Iterable[str]) -> None:
        """Report the state of changed entries, and go on with them and with those that wait for them."""
        names = dict.fromkeys(touched)
        for name in names:
            self._show(name)
        self._proceed({**names, **dict.fromkeys(it for name in names for it in self._dependants[name])})

    def _proceed(self, names: Iterable[str]) -> None:
        """Do all that is possible now for these entries, and then for those that wait for them."""
        changed = dict.fromkeys(names)
        while changed:
            jobs: list[Job] = []
            touched: dict[str, None] = {}
            for name in changed:
                entry = self._entries[name]
                in_vain = (it for it in self._handoff.in_vain(entry) if it.id not in self._why_ended)
                touched |= self._end(in_vain, DEPENDENCY_FAILED)
                why_not = self._why_given_up if self._is_given_up(entry) else None
                made, is_changed = self._starter.begin(entry, why_not)
                for job, place in made.items():
                    self._submissions.add(job, place)
                jobs += made
                touched |= dict.fromkeys([name] if is_changed else ())
            touched |= self._submit(jobs)
            for name in touched:
                self._show(name)
            again = dict.fromkeys(it for it in touched if it in self._handoff.held)
            changed = {**again, **dict.fromkeys(it for name in touched for it in self._dependants[name])}

    def _give_up(self, jobs: Iterable[Job]) -> None:
        """End these jobs, and submit no more of the entries that are given up."""
        self._settle(self._end(jobs, self._why_given_up))
        self._proceed(self._entries)

    @property
    def _why_given_up(self) -> str:
        return NO_LONGER_NEEDED if self._is_ending else self._journal.why

    def _submit(self, jobs: Sequence[Job]) -> dict[str, None]:
        """Submit jobs; return the entries that have changed."""
        if not jobs:
            return {}
        touched = dict.fromkeys(self._place(it).entry.id for it in jobs)
        return touched | self._took(self._submissions.submit(jobs))

    def _took(self, news: SubmissionResult) -> dict[str, None]:
        """Note the jobs that were refused; return the entries that this concerns."""
        self._handoff.held |= news.held
        for name in news.changed:
            self._starter.give_back(self._entries[name])
        return news.changed

    def _end(self, jobs: Iterable[Job], why: str) -> dict[str, None]:
        """End jobs; return the entries of those that the batch system never got."""
        live = [it for it in jobs if not self._part(self._place(it)).state.final]
        self._why_ended |= {it.id: why for it in live}
        never = self._submissions.end(live)
        state = JobState.FAILED if why == NO_ROOM else JobState.CANCELED
        self._journal.note([end_event(it, state, reason=why) for it in never])
        for place in never:
            self._starter.give_back(place.entry)
        return {it.entry.id: None for it in never}

    # -------------------------------------------------------------------------------------- news

    def _take_news(self) -> None:
        """Wait for status changes, and do all that is possible after them."""
        try:
            news = [self._news.get(timeout=_LOOK_SECONDS)]
        except queue.Empty:
            return
        while not self._news.empty():
            news.append(self._news.get())
        told: dict[str, None] = {}
        events: list[Event] = []
        for job_id, status in news:
            place = self._submissions.places.get(job_id)
            if place is not None and not self._part(place).state.final:
                events += self._taken_in(job_id, status, place)
                told[place.entry.id] = None
        self._journal.note(events)
        for name in told:
            self._starter.give_back(self._entries[name])
            self._show(name)
        waiting, self._starter.waiting = self._starter.waiting, {}
        self._proceed({**dict.fromkeys(it for name in told for it in self._dependants[name]), **waiting})

    def _taken_in(self, job_id: str, status: JobStatus | None, place: Place) -> list[Event]:
        """Take in a status of a job, or that its service is ready; return the events to journal."""
        part, job = self._part(place), self._submissions.jobs[job_id]
        if status is None:
            return [replica_event(place, is_ready=True)]
        if status.state is JobState.NEW:
            return []
        part.state = status.state
        if place.entry.is_watched:
            self._live_output.begin(job)
        if status.final:
            self._probes.end(job_id)
            return [self._told_by(job_id, status, place)]
        if status.state is JobState.ACTIVE and place.entry.ready is not None and not part.is_ready:
            self._probes.begin(job_id, place)
        return []

    def _told_by(self, job_id: str, status: JobStatus, place: Place) -> Event:
        """Return the event to journal for a job that has ended."""
        if job_id in self._earlier and status.reason in LOST:
            self._submissions.forget(job_id)
            self._starter.waiting[place.entry.id] = None
            return replica_event(place, job=None, state=JobState.NEW.value)
        why = self._why_ended.get(job_id)
        return end_of(place, status, self._journal, why, is_inside=self._is_inside)

    def _show(self, name: str) -> None:
        state = joined([it.state for it in self._journal.parts[name]])
        if self._shown.get(name) is not state:
            self._shown[name] = state
            self._told(self._entries[name], state)

    def _refuse_the_rest(self) -> None:
        """Fail entries that wait for room which services keep, since services end last.

        On several nodes, a pilot may have placed services otherwise than the capacity assumes. The driver
        asks the pilot where they run once nothing else does.
        """
        live = [it for it in self._jobs if not self._part(self._place(it)).state.final]
        services = [it for it in live if self._place(it).entry.kind is Kind.SERVICE and self._is_active(it)]
        others = [it for it in live if it not in services]
        if not self._is_inside or any(map(self._is_active, others)) or not self._news.empty():
            return
        waiting = self._starter.waiting
        if not (waiting or others) or (others and not services):
            return
        found = [self._starter.locate(it, self._place(it)) for it in services]
        if None in found:
            return
        if any(found):
            self._starter.waiting = {}
            self._proceed(waiting)
            return
        staying = [self._place(it) for it in services]
        if not all(self._starter.is_kept_by(staying, self._place(it)) for it in others):
            return
        self._starter.waiting = {}
        self._starter.refuse(self._entries[name] for name in waiting)
        self._settle({**waiting, **self._end(others, NO_ROOM)})

    def _is_active(self, job: Job) -> bool:
        return self._part(self._place(job)).state is JobState.ACTIVE
