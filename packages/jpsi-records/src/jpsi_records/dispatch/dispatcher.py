"""The dispatcher: runs requested executions, each as one J/PSI job at a time, and submits no job twice.

`jpsi request run` and `jpsi request dispatch` start it. In each round it leases executions, begins their
attempts, records how jobs go on, stores their outputs and cancels jobs that no request needs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs

import jpsi
from jpsi_engine import find_excess

from .. import jobs
from ..errors import StateError, StoreError
from ..files import open_untrusted
from ..inbox import NO_REPORT, Report, read_progress
from ..model import Attempt, Execution, ExecutionState, new_id, unmet_constraints
from ..records import Records, write_copy
from ..store import events, executions, ledger
from .intake import process_inbox, write_results
from .leases import Leases

log = logging.getLogger(__name__)

_SUBJECT = "the job"

# How long queues are taken to have the limits that they had, or not to answer.
_COMPARISON_SECONDS = 600.0
# The default duration of a lease.
_LEASE = timedelta(seconds=60)
# The longest wait between two rounds; a change of a job's status ends it.
_ROUND_SECONDS = 2.0
# The bytes that are read of a progress file: a number and a sentence are shorter.
_MAX_PROGRESS_BYTES = 4096
_NO_LEASE = {"holder": None, "lease_until": None}
# The longest wait for the ACTIVE status of a job that has ended: it may arrive late.
_ACTIVE_STATUS_SECONDS = 10.0


@attrs.define(slots=True)
class _Held:
    """An execution that this dispatcher holds, with its current attempt and job."""

    execution: Execution
    attempt: Attempt
    job: jpsi.Job
    is_cancelling: bool = False
    #: The progress and the report that the job's progress file contained last.
    last_report: tuple[float | None, Report] = (None, NO_REPORT)


class Dispatcher:
    """A loop that runs executions until it is closed or killed; then another dispatcher takes over its jobs.

    The dispatcher leases each execution it takes. It records every attempt with the job's id before it
    submits the job, so that the next dispatcher finds the job even if this process is killed.

    Args:
        records: the records whose executions it runs.
        executors: opens an executor by the name of an executor or target; None is the configured one.
        lease: the duration of a lease from each renewal.

    Raises:
        StateError: the user of the records may not write executions.
    """

    def __init__(
        self,
        records: Records,
        *,
        executors: Callable[[str | None], jpsi.JobExecutor] = jpsi.JobExecutor,
        lease: timedelta = _LEASE,
    ) -> None:
        if not records.may_dispatch:
            msg = f"{records.user} may not run executions: only the owner of the tables in PostgreSQL may"
            raise StateError(msg)
        self._records = records
        self._open = executors
        self._leases = Leases(records, lease)
        self._materializer = jobs.Materializer(records.blobs, records.repositories)
        self._executors: dict[str, jpsi.JobExecutor] = {}
        self._held: dict[str, _Held] = {}
        # the executions that it waited for in the last round
        self._awaited: set[str] = set()
        # when kinds of jobs were last compared with the queues, in seconds
        self._compared: dict[tuple[jpsi.JobExecutor, str], float] = {}
        self._status_changed = threading.Event()

    def run(self, *, until_idle: bool = False, is_over: Callable[[], bool] = lambda: False) -> None:
        """Run rounds until stopped.

        Args:
            until_idle: return once no execution can run, and none is running but those of other dispatchers
                that run. It waits for the lease of one that was killed in a submission on this machine; one
                that was killed on another machine is taken to run until its lease expires.
            is_over: called after each round; True stops the loop and leaves jobs to the next dispatcher.
        """
        while not is_over():
            self._status_changed.clear()
            is_idle = self.step()
            if until_idle and is_idle:
                return
            self._status_changed.wait(_ROUND_SECONDS)

    def step(self) -> bool:
        """Do one round; return True if there was nothing to do."""
        self._renew()
        with self._records.database.writing() as tx:
            ledger.catch_up(tx)
            ledger.expire(tx)
        self._records.advance()
        self._renew()
        # Read first: what is awaited no more has become due by then, so that no lease expires unseen.
        awaited = self._leases.awaited()
        due = self._leases.due()
        self._log_awaited(awaited)
        for execution in due:
            if self._leases.take(execution):
                self._reconcile(execution.id)
            # Each submission takes a while, and there may be many.
            self._renew()
        was_idle = not due and not self._held and not awaited
        self._cancel_unwanted()
        for held in list(self._held.values()):
            self._follow(held)
        # An execution that has ended in this round may be one that other requests wait for: not idle yet.
        return was_idle

    def _log_awaited(self, awaited: list[Execution]) -> None:
        """Log once for each execution that the dispatcher waits for it."""
        for it in awaited:
            if it.id not in self._awaited:
                log.info(
                    "execution %s: its dispatcher was killed while it submitted the job; "
                    "it is taken over as soon as that dispatcher's lease has expired",
                    it.id,
                )
        self._awaited = {it.id for it in awaited}

    def end_unwanted(self, execution_id: str, *, is_over: Callable[[], bool] = lambda: False) -> None:
        """End the job of an execution that no request needs, and record its end; begin no job.

        It returns once the execution has no job any more or a request needs it again; at once if another
        dispatcher runs, which ends the job. It takes the lease of this execution alone, and waits while
        another process has that.

        Args:
            execution_id: the execution.
            is_over: called before each round; True ends the wait, and the next dispatcher records the end.

        Raises:
            JpsiError: the job cannot be found or cancelled now; it runs on.
        """
        while not is_over() and (execution := self._unwanted(execution_id)) is not None:
            self._status_changed.clear()
            if execution_id not in self._held and self._leases.take(execution):
                self._resume_unwanted(execution)
            if execution_id in self._held:
                self._follow(self._held[execution_id])
            if execution_id in self._held and self._give_up(self._held[execution_id]):
                self._held[execution_id].job.cancel()
            self._status_changed.wait(_ROUND_SECONDS)

    def _unwanted(self, execution_id: str) -> Execution | None:
        """Return an execution if it has a job that no request needs, and that no dispatcher ends."""
        if execution_id not in self._held and self._records.dispatchers():
            return None
        with self._records.database.reading() as tx:
            return next((it for it in ledger.unwanted(tx) if it.id == execution_id), None)

    def _resume_unwanted(self, execution: Execution) -> None:
        """Continue the attempt of a leased execution to cancel its job; without a job, it waits again."""
        opened = [it for it in self._records.attempts(execution.id) if it.ended_at is None]
        for attempt in opened:
            for job in self._executor(attempt.executor).recall([attempt.job]):
                if job.status.state is not jpsi.JobState.NEW:
                    self._hold(execution, attempt, job)
                    return
            # No job was submitted, or its submission is late; then it must not run.
            if not jobs.revoke(self._files(attempt)):
                msg = f"{attempt.executor} knows no job {attempt.job}, which has begun to run"
                raise jpsi.SubmitException(msg)
            self._change_attempt(attempt, state="NEVER", ended_at=self._records.now())
        self._leases.release_all()
        self._status_changed.set()

    def _renew(self) -> None:
        for execution_id in self._leases.renew(self._held):
            self._drop(execution_id)

    def _drop(self, execution_id: str) -> None:
        """Drop an execution that another dispatcher took over after this one had let its lease expire."""
        log.warning("execution %s: another dispatcher has taken it over", execution_id)
        del self._held[execution_id]

    def _reconcile(self, execution_id: str) -> None:
        """Resume the attempt of a leased execution, or begin one."""
        execution, attempts = self._records.execution(execution_id), self._records.attempts(execution_id)
        opened = [it for it in attempts if it.ended_at is None]
        try:
            if not opened or not self._resume(execution, opened[0]):
                self._begin(execution, len(attempts) + 1)
        except (jpsi.ConfigError, jpsi.InvalidJobException, jpsi.PluginError) as e:
            self._requeue(execution, ExecutionState.CANCELLED, "invalid", str(e))
        except jpsi.JpsiError as e:
            is_last = len(attempts) + 1 >= execution.attempts
            state = ExecutionState.CANCELLED if is_last else ExecutionState.QUEUED
            self._requeue(execution, state, "submit", str(e))

    def _begin(self, execution: Execution, number: int) -> None:
        """Begin an attempt: record the job's id first, then stage in its files and submit it."""
        executor = self._executor(execution.placement.get("executor"))
        job = jpsi.Job()
        now = self._records.now()
        attempt = Attempt(
            id=new_id(now),
            execution=execution.id,
            number=number,
            executor=execution.placement.get("executor") or executor.name,
            job=job.id,
            state=jpsi.JobState.NEW.value,
            created_at=now,
        )
        with self._records.database.writing() as tx:
            executions.add_attempt(tx, attempt)
        write_copy(self._records, execution.id)
        execution = self._without_gpus(execution) if executor.name == "local" else execution
        files = self._files(attempt)
        jobs.remove_root(files.directory)
        self._materializer.lay_out(execution, files)
        job.spec = jobs.job_spec(execution, files, jobs.find_engine())
        self._require_fit(executor, job.spec)
        executor.submit(job)
        self._hold(execution, attempt, job)

    def _require_fit(self, executor: jpsi.JobExecutor, spec: jpsi.JobSpec) -> None:
        """Raise InvalidJobException if no queue can ever start such a job; it compares seldom."""
        kind, now = (executor, repr((spec.resources, spec.attributes))), time.monotonic()
        if now - self._compared.get(kind, -_COMPARISON_SECONDS) >= _COMPARISON_SECONDS:
            found = find_excess(executor, [("", spec)])
            if found:
                raise jpsi.InvalidJobException.of(_SUBJECT, [it.sentence for it in found])
            self._compared[kind] = now

    def _without_gpus(self, execution: Execution) -> Execution:
        """Return the execution without GPUs: the local executor allocates none to a job.

        Raises:
            InvalidJobException: a request requires GPUs.
        """
        if "gpus" not in execution.recorded:
            return execution
        recorded = {name: it for name, it in execution.recorded.items() if name != "gpus"}
        for request in self._records.requests(execution=execution.id):
            for it in unmet_constraints(request.spec.runtime_constraints, recorded):
                msg = f"runtime_constraints: {it}: local gives out no GPUs; name another executor"
                raise jpsi.InvalidJobException(msg)
        with self._records.database.writing() as tx:
            executions.change(tx, execution.id, self._leases.own_leases, recorded=recorded)
            return executions.get(tx, execution.id)

    def _hold(self, execution: Execution, attempt: Attempt, job: jpsi.Job) -> None:
        self._held[execution.id] = _Held(execution, attempt, job)
        job.set_job_status_callback(lambda *_: self._status_changed.set())
        self._change_attempt(attempt, native_id=job.native_id, state=jpsi.JobState.QUEUED.value)

    def _resume(self, execution: Execution, attempt: Attempt) -> bool:
        """Continue the attempt of a previous dispatcher; return False if another attempt is needed."""
        executor = self._executor(attempt.executor)
        for job in executor.recall([attempt.job]):
            if job.status.state is jpsi.JobState.NEW:
                executor.submit(job)
            self._hold(execution, attempt, job)
            return True
        # The executor has no record of the job. A delayed submission of it must not run.
        state = "NEVER" if jobs.revoke(self._files(attempt)) else "LOST"
        self._change_attempt(attempt, state=state, ended_at=self._records.now())
        return False

    def _follow(self, held: _Held) -> None:
        """Record the current status of a job."""
        status = held.job.status
        if status.final:
            self._end(held, status)
        elif status.state is jpsi.JobState.ACTIVE:
            if held.execution.state is not ExecutionState.RUNNING:
                self._has_started(held, status)
            self._note_progress(held)
            self._process_inbox(held)
            self._watch_capacities(held)

    def _has_started(self, held: _Held, status: jpsi.JobStatus) -> None:
        with self._records.database.writing() as tx:
            own, running = self._leases.own_leases, ExecutionState.RUNNING
            ledger.move(tx, held.execution.id, running, own, started_at=status.time)
            executions.change_attempt(tx, held.attempt.id, state=status.state.value)
            held.execution = executions.get(tx, held.execution.id)

    def _note_progress(self, held: _Held) -> None:
        try:
            with open_untrusted(self._files(held.attempt).progress) as file:
                progress, report = read_progress(file.read(_MAX_PROGRESS_BYTES).decode(errors="replace"))
        except OSError:
            return
        last_report, held.last_report = held.last_report, (progress, report)
        if held.last_report == last_report:
            return
        # A user may have changed the report since; record only what is new in the file.
        report = NO_REPORT if report == last_report[1] else report
        with self._records.database.writing() as tx:
            ledger.record_progress(tx, held.execution.id, progress, report, self._leases.own_leases)
            held.execution = executions.get(tx, held.execution.id)

    def _watch_capacities(self, held: _Held) -> str | None:
        """Cancel a job that exceeds the capacity of a temporary directory; return which, as a sentence."""
        found = jobs.excess(held.execution.capacities, self._files(held.attempt).place)
        if found is not None and held.execution.reason != jobs.TMP_CAPACITY:
            # The reason is recorded first, so that a dispatcher that takes over knows it.
            held.execution = attrs.evolve(held.execution, reason=jobs.TMP_CAPACITY)
            with self._records.database.writing() as tx:
                own = self._leases.own_leases
                executions.change(tx, held.execution.id, own, reason=jobs.TMP_CAPACITY, is_shared=0)
        if found is not None and not held.is_cancelling and not held.job.status.final:
            held.is_cancelling = True
            self._cancel(held)
        return found

    def _process_inbox(self, held: _Held) -> None:
        inbox = self._files(held.attempt).inbox
        process_inbox(self._records, held.execution.id, inbox)
        write_results(self._records, held.execution.id, inbox)

    def _end(self, held: _Held, status: jpsi.JobStatus) -> None:
        """Store the job's outputs, then record its end; if storing fails, the next round retries."""
        self._process_inbox(held)
        self._note_progress(held)
        files = self._files(held.attempt)
        end = jobs.end_of(status, attempts_left=held.execution.attempts - held.attempt.number)
        excess_sentence = self._watch_capacities(held)
        if held.execution.reason == jobs.TMP_CAPACITY:
            end = jobs.End(ExecutionState.CANCELLED, None, jobs.TMP_CAPACITY)
        try:
            captured = self._materializer.capture(held.execution, files)
        except StoreError as e:
            log.warning("execution %s: %s; it is tried again", held.execution.id, e)
            return
        values = _end_values(end, status, captured, excess_sentence)
        if not self._write_end(held, status, end.state, values):
            # The dispatcher that holds the execution now stores the outputs.
            self._drop(held.execution.id)
            return
        del self._held[held.execution.id]
        write_copy(self._records, held.execution.id)
        if captured.is_whole:
            jobs.remove_root(files.root)
        # others may wait for this end
        self._status_changed.set()

    def _write_end(
        self, held: _Held, status: jpsi.JobStatus, state: ExecutionState, values: dict[str, Any]
    ) -> bool:
        """Record the end of an attempt; return False if another dispatcher holds the execution."""
        started = _started(held.job)
        with self._records.database.writing() as tx:
            found = executions.get(tx, held.execution.id)
            if found.holder != self._leases.holder:
                return False
            if found.state is not ExecutionState.RUNNING and started is not None:
                # It ran and ended between two rounds.
                begin = min(tx.now, max(started, events.last_time(tx, found.id) or started))
                ledger.move(attrs.evolve(tx, now=begin), found.id, ExecutionState.RUNNING, started_at=started)
            executions.change_attempt(
                tx,
                held.attempt.id,
                state=status.state.value,
                exit_code=status.exit_code,
                reason=None if status.reason is None else status.reason.value,
                message=status.message,
                ended_at=tx.now,
            )
            if state is ExecutionState.COMPLETE:
                # Keep what the job has reported so far.
                values["status"] = {**found.status, **values["status"]}
            return ledger.move(tx, found.id, state, self._leases.own_leases, **values, **_NO_LEASE)

    def _requeue(self, execution: Execution, state: ExecutionState, reason: str, message: str) -> None:
        """Record that an attempt failed before a job was submitted, and release the execution."""
        # who waits for the execution reads of its end
        log.log(logging.INFO if state.ended else logging.WARNING, "execution %s: %s", execution.id, message)
        with self._records.database.writing() as tx:
            for attempt in executions.attempts(tx, execution.id):
                executions.change_attempt(
                    tx, attempt.id, state="FAILED", reason=reason, message=message, ended_at=tx.now
                )
            values: dict[str, Any] = {}
            if state.ended:
                values = {"reason": reason, "finished_at": tx.now, "status": {"error": message}}
            ledger.move(tx, execution.id, state, self._leases.own_leases, **values, **_NO_LEASE)

    def _cancel_unwanted(self) -> None:
        """Cancel the jobs of executions that no request needs any more."""
        with self._records.database.reading() as tx:
            unwanted = [self._held[it.id] for it in ledger.unwanted(tx) if it.id in self._held]
        for held in unwanted:
            if self._give_up(held):
                self._cancel(held)

    def _give_up(self, held: _Held) -> bool:
        """Record that the job of an execution is cancelled; False if it is already, or is needed again."""
        if held.is_cancelling:
            return False
        with self._records.database.writing() as tx:
            ledger.catch_up(tx)
            held.is_cancelling = ledger.give_up(tx, held.execution)
        return held.is_cancelling

    def _cancel(self, held: _Held) -> None:
        try:
            held.job.cancel()
        except jpsi.JpsiError as e:
            log.warning("execution %s cannot be cancelled yet: %s", held.execution.id, e)
            held.is_cancelling = False

    def _change_attempt(self, attempt: Attempt, **values: Any) -> None:  # noqa: ANN401  columns are of any type
        with self._records.database.writing() as tx:
            executions.change_attempt(tx, attempt.id, **values)

    def _executor(self, name: str | None) -> jpsi.JobExecutor:
        key = name or ""
        if key not in self._executors:
            self._executors[key] = self._open(name)
        return self._executors[key]

    def _files(self, attempt: Attempt) -> jobs.AttemptFiles:
        return jobs.AttemptFiles(self._records.attempt_directory(attempt))

    def close(self) -> None:
        """Close all executors and release all leases; jobs continue, for the next dispatcher to take over."""
        try:
            for executor in self._executors.values():
                executor.close()
        finally:
            self._held.clear()
            self._leases.release_all()

    def job_of(self, execution_id: str) -> jpsi.Job | None:
        """Return the job of an execution that this dispatcher runs now; None if it runs no such execution."""
        held = self._held.get(execution_id)
        return None if held is None else held.job

    def waits_for(self, execution_id: str) -> str | None:
        """Return another dispatcher that holds an execution, as `process 12 on node1`; None if none does."""
        return self._leases.other(self._records.execution(execution_id))


def _started(job: jpsi.Job) -> datetime | None:
    """Return the time at which an ended job began to run; None if it never ran."""
    try:
        status = job.wait(_ACTIVE_STATUS_SECONDS, jpsi.JobState.ACTIVE)
    except jpsi.UnreachableStateException:
        return None
    return None if status is None else status.time


def _end_values(
    end: jobs.End, status: jpsi.JobStatus, captured: jobs.CapturedOutput, excess_sentence: str | None
) -> dict[str, Any]:
    """Return the columns of an execution at the end of an attempt."""
    if end.state is ExecutionState.QUEUED:
        # A retry: the failure of this attempt is in the attempt's own record.
        return {"exit_code": None, "reason": None}
    values: dict[str, Any] = {
        "exit_code": end.exit_code,
        "reason": end.reason,
        "log": captured.log,
        "finished_at": status.time,
    }
    if end.state is ExecutionState.COMPLETE:
        values["output"] = captured.output
        values["status"] = _warning((*captured.problems, *captured.log_problems))
        values |= {"progress": 1.0} if end.exit_code == 0 else {}
    elif why := {**_error(end, status, excess_sentence), **_warning(captured.log_problems)}:
        values["status"] = why
    return values


def _warning(problems: Sequence[str]) -> dict[str, str]:
    return {"warning": "; ".join(problems)} if problems else {}


def _error(end: jobs.End, status: jpsi.JobStatus, excess_sentence: str | None) -> dict[str, str]:
    """Return why an execution has no result, for its status; empty if that is unknown."""
    if end.reason == jobs.TMP_CAPACITY:
        return {"error": excess_sentence or "it wrote more into a temporary directory than fits"}
    if not status.message:
        return {}
    if status.reason is jpsi.Reason.EXECUTABLE and status.exit_code is not None:
        # no result of the computation, but `jpsi request run` exits with it
        return {"error": status.message, "exit_code": str(status.exit_code)}
    return {"error": status.message}
