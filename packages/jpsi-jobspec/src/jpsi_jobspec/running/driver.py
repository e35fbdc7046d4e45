"""Drives a run to its end: submits entries that can start, follows their jobs, and journals the outcome.

After the process that drives a run dies, another one can go on with it. It does not run again what has ended,
and it finds running jobs again by the ids that the journal had before the jobs were submitted.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import attrs

from jpsi import Job, JobState, JobStatus, JpsiError, Output

from ..planning import Capacity, Entry, Kind
from ..run_store import DEPENDENCY_FAILED, LOST, NO_LONGER_NEEDED, NO_ROOM, Event, Journal, Part
from .dependencies import DependencyHandoff
from .executor import Executor
from .next_step import Next, combined_state
from .outcome import cleans_up, end_event_for_job
from .probes import Probes
from .starter import Starter
from .submissions import Report, SubmissionResult, Submissions
from .wait_reasons import WaitReasons

log = logging.getLogger(__name__)

#: Called with each entry whose state changes.
StateCallback = Callable[[Entry, JobState], None]

# How often the driver checks for a request to cancel, in seconds.
_POLL_SECONDS = 0.5


def show_output(data: bytes, stream: str) -> None:
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
        on_state: StateCallback,
        capacity: Capacity | None = None,
        *,
        is_restarted: bool = False,
        report: Report = _warn,
        show: Show = show_output,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to drive one run.

        Args:
            journal: of the run.
            executor: runs the jobs.
            on_state: called with each entry whose state changes.
            capacity: of the allocation, if this is a group run: no more tasks run at a time than it has room
                for.
            is_restarted: True if jobs were submitted so far in an earlier start of that allocation; jobs that
                were lost with it run again.
            report: called with a sentence about each problem that the user should know, such as a retry.
            show: called with the output of watched jobs.
            clock: returns seconds.
        """
        self._journal = journal
        self._executor = executor
        self._on_state = on_state
        self._is_group_run = capacity is not None
        self._entries = {it.id: it for it in journal.plan.entries}
        self._dependants: dict[str, list[str]] = defaultdict(list)
        for entry in journal.plan.entries:
            for after in entry.after:
                self._dependants[after.id].append(entry.id)
        # a job's status, or None for a service that can be used now
        self._updates: queue.SimpleQueue[tuple[str, JobStatus | None]] = queue.SimpleQueue()
        self._submissions = Submissions(journal, executor, report, clock, is_restarted=is_restarted)
        self._handoff = DependencyHandoff(journal, executor, self._submissions)
        self._starter = Starter(journal, executor, self._handoff, capacity)
        # the jobs that an earlier process made and whose end it did not see
        self._journaled_jobs = {it.job_id: it for it in journal.all_parts() if it.job_id and it.is_live}
        self._jobs_of_earlier_start = set(self._journaled_jobs) if is_restarted else set()
        self._probes = Probes(lambda: executor.files, lambda job_id: self._updates.put((job_id, None)))
        self._live_output = LiveOutput(show)
        self._wait_reasons = WaitReasons(report, self._is_dependent, clock)
        self._shown: dict[str, JobState] = {}
        # why the driver ended jobs, by their ids
        self._why_ended: dict[str, str] = {}
        # entries that the user has cancelled
        self._cancelled_entries: set[str] = set()
        self._is_cancelling = False
        self._is_ending = False

    def run(self, until: Callable[[], bool] | None = None) -> None:
        """Return once all entries have ended, or `until` returns True; then leave the rest as it is.

        Raises:
            JpsiError: the disk cannot be used; a later process can go on with the run.
        """
        self._executor.set_job_status_callback(lambda job, status: self._updates.put((job.id, status)))
        self._is_cancelling = self._journal.is_cancelled
        self._cancelled_entries |= self._journal.cancelled_entries & self._entries.keys()
        self._handle_result(self._submissions.recover(self._journaled_jobs))
        self._proceed(self._entries)
        is_done = self._journal.have_ended if until is None else until
        while not is_done():
            self._withdraw_unwanted()
            self._handle_result(self._submissions.retry())
            self._fail_blocked_entries()
            self._live_output.update()
            self._report_wait_reasons()
            self._process_updates()
        self._live_output.update()

    # ------------------------------------------------------------------------------- state of the run

    @property
    def _jobs(self) -> list[Job]:
        return list(self._submissions.jobs.values())

    def _part(self, job: Job) -> Part:
        return self._submissions.parts[job.id]

    def _has_only_services(self) -> bool:
        """Return True if only services are left, which run until all else has ended."""
        others = [it for it in self._journal.all_parts() if it.entry.kind is not Kind.SERVICE]
        return bool(others) and all(it.state.final for it in others)

    def _is_withdrawn(self, entry: Entry) -> bool:
        """Return True if an entry is not to run any more; tasks that clean up after a group always run."""
        is_unwanted = self._is_cancelling and not cleans_up(entry)
        return is_unwanted or entry.id in self._cancelled_entries or self._is_ending

    # ------------------------------------------------------------------------------------- actions

    def _withdraw_unwanted(self) -> None:
        """End the jobs that the user has cancelled since the last check, or that nothing needs any more."""
        cancelled = self._journal.cancelled_entries & self._entries.keys() - self._cancelled_entries
        names: Collection[str] = self._entries
        if self._journal.is_cancelled and not self._is_cancelling:
            self._is_cancelling = True
        elif cancelled:
            self._cancelled_entries |= cancelled
            # entries cancelled before get no second signal while they clean up
            names = cancelled
        elif not self._is_ending and self._has_only_services():
            self._is_ending = True
        else:
            return
        entries = ((it, self._part(it).entry) for it in self._jobs)
        withdrawn = (it for it, entry in entries if entry.id in names and self._is_withdrawn(entry))
        self._report_and_proceed(self._end(withdrawn, self._withdrawal_reason))
        self._proceed(self._entries)

    def _handle_result(self, result: SubmissionResult) -> None:
        """Go on from the results of submissions."""
        for job in result.followed:
            part = self._part(job)
            part.is_submitted = True
            # the final state is set when the journal has it
            part.state = JobState.QUEUED if job.status.final else job.status.state
            self._updates.put((job.id, job.status))
        for part in result.unknown:
            part.job_id = None
        found = {it: self._part(it) for it in (*result.followed, *result.unsubmitted)}
        for part in found.values():
            self._starter.reserve(part)
        withdrawn = [it for it, part in found.items() if self._is_withdrawn(part.entry)]
        affected = self._end(withdrawn, self._withdrawal_reason)
        affected |= self._submit({it: found[it] for it in result.unsubmitted if it not in withdrawn})
        affected |= self._handle_refusals(result) | {it.entry.id: None for it in result.unknown}
        self._report_and_proceed(affected)

    def _report_and_proceed(self, affected: Iterable[str]) -> None:
        """Report the state of changed entries, and go on with them and with those that wait for them."""
        names = dict.fromkeys(affected)
        for name in names:
            self._show(name)
        self._proceed(names | self._dependants_of(names))

    def _dependants_of(self, names: Iterable[str]) -> dict[str, None]:
        return dict.fromkeys(it for name in names for it in self._dependants[name])

    def _proceed(self, names: Iterable[str]) -> None:
        """Do all that is possible now for these entries, and then for those that wait for them."""
        changed = dict.fromkeys(names)
        while changed:
            jobs: dict[Job, Part] = {}
            affected: dict[str, None] = {}
            for name in changed:
                entry = self._entries[name]
                unsatisfiable = self._handoff.find_unsatisfiable(entry)
                new = (it for it in unsatisfiable if it.id not in self._why_ended)
                affected |= self._end(new, DEPENDENCY_FAILED)
                why_not = self._withdrawal_reason if self._is_withdrawn(entry) else None
                new_jobs, is_changed = self._starter.begin(entry, why_not)
                jobs |= new_jobs
                affected |= dict.fromkeys([name] if is_changed else ())
            affected |= self._submit(jobs)
            for name in affected:
                self._show(name)
            held = dict.fromkeys(it for it in affected if it in self._handoff.held)
            changed = held | self._dependants_of(affected)

    @property
    def _withdrawal_reason(self) -> str:
        return NO_LONGER_NEEDED if self._is_ending else self._journal.cancel_reason

    def _submit(self, jobs: Mapping[Job, Part]) -> dict[str, None]:
        """Submit jobs; return the entries that have changed."""
        if not jobs:
            return {}
        affected = dict.fromkeys(it.entry.id for it in jobs.values())
        return affected | self._handle_refusals(self._submissions.submit(jobs))

    def _handle_refusals(self, result: SubmissionResult) -> dict[str, None]:
        """Note the jobs that were refused; return the entries that this concerns."""
        self._handoff.held |= result.held
        for name in result.changed:
            self._starter.release(name)
        return result.changed

    def _end(self, jobs: Iterable[Job], why: str) -> dict[str, None]:
        """End jobs; return the entries of those that the batch system never got."""
        live = [it for it in jobs if not self._part(it).state.final]
        self._why_ended |= {it.id: why for it in live}
        clauses = self._describe_unmet(map(self._part, live), why)
        unmet = {job.id: clause for job, clause in zip(live, clauses, strict=True) if clause}
        never_submitted = self._submissions.cancel(live, unmet)
        state = JobState.FAILED if why == NO_ROOM else JobState.CANCELED
        ends = zip(never_submitted, self._describe_unmet(never_submitted, why), strict=True)
        self._journal.append([it.end_event(state, why, message) for it, message in ends])
        affected = dict.fromkeys(it.entry.id for it in never_submitted)
        for name in affected:
            self._starter.release(name)
        return affected

    def _describe_unmet(self, parts: Iterable[Part], why: str) -> Sequence[str | None]:
        """Return for each replica why it can never start, if that is why it ends."""
        if why != DEPENDENCY_FAILED:
            return [None for _ in parts]
        return self._handoff.describe_unmet(parts)

    # ----------------------------------------------------------------------------------- statuses

    def _process_updates(self) -> None:
        """Wait for status changes, and do all that is possible after them."""
        try:
            updates = [self._updates.get(timeout=_POLL_SECONDS)]
        except queue.Empty:
            return
        while not self._updates.empty():
            updates.append(self._updates.get())
        changed: dict[str, None] = {}
        events: list[tuple[Part, Event]] = []
        for job_id, status in updates:
            part = self._submissions.parts.get(job_id)
            if part is not None and not part.state.final:
                events += [(part, it) for it in self._apply_status(job_id, status, part)]
                changed[part.entry.id] = None
        self._word_unmet_ends(events)
        self._journal.append([it for _, it in events])
        for name in changed:
            self._starter.release(name)
            self._show(name)
        waiting, self._starter.waiting = self._starter.waiting, {}
        self._proceed(self._dependants_of(changed) | waiting)

    def _word_unmet_ends(self, events: Iterable[tuple[Part, Event]]) -> None:
        """Give the ends for unmet dependencies the same words on every system."""
        unmet = [(part, it) for part, it in events if it.get("reason") == DEPENDENCY_FAILED]
        clauses = self._handoff.describe_unmet(part for part, _ in unmet)
        for (_, event), clause in zip(unmet, clauses, strict=True):
            event["message"] = clause or event["message"]

    def _apply_status(self, job_id: str, status: JobStatus | None, part: Part) -> list[Event]:
        """Take in a status of a job, or that its service is ready; return the events to journal."""
        if status is None:
            return [part.event(is_ready=True)]
        if status.state is JobState.NEW:
            return []
        part.state = status.state
        if part.entry.is_watched:
            self._live_output.begin(self._submissions.jobs[job_id])
        if status.final:
            self._probes.end(job_id)
            return [self._end_event(job_id, status, part)]
        if status.state is JobState.ACTIVE and part.entry.ready is not None and not part.is_ready:
            self._probes.begin(job_id, part)
        return []

    def _end_event(self, job_id: str, status: JobStatus, part: Part) -> Event:
        """Return the event to journal for a job that has ended."""
        if job_id in self._jobs_of_earlier_start and status.reason in LOST:
            self._submissions.forget(job_id)
            self._starter.waiting[part.entry.id] = None
            return part.event(job=None, state=JobState.NEW.value)
        why = self._why_ended.get(job_id)
        return end_event_for_job(part, status, self._journal, why, is_group_run=self._is_group_run)

    def _show(self, name: str) -> None:
        state = combined_state([it.state for it in self._journal.parts[name]])
        if self._shown.get(name) is not state:
            self._shown[name] = state
            self._on_state(self._entries[name], state)

    def _report_wait_reasons(self) -> None:
        """Report why jobs wait; inside of a group they wait for each other, as its resources demand."""
        if not self._is_group_run:
            self._wait_reasons.update((it, self._part(it)) for it in self._jobs)

    def _is_dependent(self, part: Part) -> bool:
        return self._handoff.steps([part]) != [Next.START]

    def _fail_blocked_entries(self) -> None:
        """Fail entries that wait for room which services keep, since services end last.

        On several nodes, a pilot may have placed services otherwise than the capacity assumes. The driver
        asks the pilot where they run once nothing else does.
        """
        if not self._is_group_run or not self._updates.empty():
            return
        live = {it: part for it in self._jobs if not (part := self._part(it)).state.final}
        active = {it: part for it, part in live.items() if part.state is JobState.ACTIVE}
        services = {it: part for it, part in active.items() if part.entry.kind is Kind.SERVICE}
        others = {it: part for it, part in live.items() if it not in services}
        is_stalled = services if others else self._starter.waiting
        if active == services and is_stalled:
            self._fail_blocked_by(services, others)

    def _fail_blocked_by(self, services: Mapping[Job, Part], others: Mapping[Job, Part]) -> None:
        """Fail what waits for room, and these other jobs, if these services keep the room."""
        waiting = self._starter.waiting
        found = [self._starter.locate(it, part) for it, part in services.items()]
        if None in found:
            return
        if any(found):
            self._starter.waiting = {}
            self._proceed(waiting)
        elif all(self._starter.is_blocked_by(services.values(), it) for it in others.values()):
            self._starter.fail_waiting()
            self._report_and_proceed(waiting | self._end(others, NO_ROOM))


#: Called with output of a job and its stream, `stdout` or `stderr`.
Show = Callable[[bytes, str], None]


@attrs.define(slots=True, eq=False)
class _Stream:
    """An output stream of a job, and how much of it was shown."""

    job: Job
    name: str
    output: Output
    offset: int = 0


class LiveOutput:
    """The jobs whose output is shown. Used by one thread."""

    def __init__(self, show: Show) -> None:
        """Show output by calling `show`."""
        self._show = show
        self._begun: set[str] = set()
        self._streams: list[_Stream] = []

    def begin(self, job: Job) -> None:
        """Show the output of a submitted job from its beginning; a second call does nothing."""
        if job.id in self._begun or job.executor is None:
            return
        self._begun.add(job.id)
        for name in ("stdout", "stderr"):
            output = job.executor.output(job, name)
            if output is not None:
                self._streams.append(_Stream(job, name, output))

    def update(self) -> None:
        """Show the output since the last call; all that is left of a job that has ended."""
        for it in list(self._streams):
            is_final = it.job.status.final
            self._show_new(it)
            if is_final:
                self._streams.remove(it)

    def _show_new(self, stream: _Stream) -> None:
        # on a remote host the next read may succeed
        with contextlib.suppress(JpsiError):
            while (chunk := stream.output.read(stream.offset)) is not None and chunk.data:
                self._show(chunk.data, stream.name)
                stream.offset = chunk.end
