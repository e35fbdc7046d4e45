"""Waits for jobs for which no batch system can wait, and submits the jobs that are deferred until then.

`jpsi submit --after`, or `--array` with a limit, starts this module as a process of its own, which
outlives it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import attrs

import jpsi
from jpsi_engine import job_store
from jpsi_engine.job_store import Deferral, StoredJob

from .. import messages
from ..error_boundary import SelectionError
from .dependencies import describe_unmet, sort_dependencies
from .recall import RecalledJobs, best_status, recall_jobs, report_failures
from .retries import start_following

_PROGRAM = (
    "from sys import argv; from jpsi_cli.stored_jobs import submit_deferred; "
    "submit_deferred(argv[1], int(argv[2]))"
)
# The seconds between two checks of whether jobs were submitted or cancelled.
_POLL_SECONDS = 0.5
# The most seconds between two looks at all deferred jobs while no process announces a request. A process of
# an older jpsi announces none, and a network file system shows some files up to a minute late.
_LONGEST_LOOK_SECONDS = 15.0
# The least time between two looks at jobs, as a multiple of the time that a look takes.
_LOOK_PAUSE = 50.0
# The seconds after which a failed request to a batch system is repeated.
_RETRY_SECONDS = 15.0
# The most seconds between the starts of two processes that submit the same jobs.
_LONGEST_RESTART_SECONDS = 60.0
# The most seconds after which a submission is repeated; each one leaves the files of an attempt.
_LONGEST_RETRY_SECONDS = 300.0
# The pauses after which they grow no longer.
_MOST_PAUSES = 10
# How many processes may end, after another process has held their jobs, before the jobs seem not to be found.
_MOST_ENDS = 3


@attrs.frozen
class AwaitedJobs:
    """Jobs after the wait for the submission of those that were deferred."""

    #: All of them, as they are on disk now.
    jobs: Sequence[StoredJob]
    #: The ids of those that are still deferred.
    deferred_ids: Collection[str]
    #: The errors of those that no process submits, by job id.
    failures: Mapping[str, jpsi.JpsiError]


def start_waiting(deferral: Deferral) -> subprocess.Popen[bytes] | None:
    """Have a process wait and submit the jobs of a deferral, and return it; None if there is one already.

    Raises:
        SubmitException: the process cannot be started.
    """
    try:
        # without the current directory, in which a module of the same name may be
        return deferral.start([sys.executable, "-P", "-c", _PROGRAM, deferral.name])
    except OSError as e:
        msg = f"no process can be started that submits the deferred jobs: {e}"
        raise jpsi.SubmitException(msg, e) from e


def await_submission(jobs: Iterable[StoredJob], deadline: float | None = None) -> AwaitedJobs:
    """Return the jobs once those that are deferred were submitted, or can never be.

    A held one is submitted once another process has released it.

    If no process waits to submit a job, one is started. At the deadline, in seconds of the monotonic clock,
    they are returned as they are.
    """
    reported: set[str] = set()
    processes = _WaitingProcesses()
    jobs, settled = settle_submissions(jobs)
    submitted_ids, failures = set(settled.jobs), dict(settled.failures)
    while deferred := {
        it.id: deferral
        for it in jobs
        if it.id not in submitted_ids | failures.keys() and (deferral := _deferral(it)) is not None
    }:
        held = {job_id for job_id, deferral in deferred.items() if deferral.is_held(job_id)}
        _report_held([it for it in jobs if it.id in held - reported])
        reported |= held
        due = {job_id: it for job_id, it in deferred.items() if job_id not in held}
        refused = processes.start(due.values())
        failures |= {job_id: refused[it.name] for job_id, it in due.items() if it.name in refused}
        seconds_left = None if deadline is None else deadline - time.monotonic()
        if seconds_left is not None and seconds_left <= 0:
            break
        time.sleep(_POLL_SECONDS if seconds_left is None else min(_POLL_SECONDS, seconds_left))
        processes.look()
        jobs, gone = _reread(jobs)
        jobs, settled = settle_submissions(jobs)
        submitted_ids |= settled.jobs.keys()
        failures |= {**gone, **settled.failures}
    return AwaitedJobs(jobs, deferred.keys() - failures.keys(), failures)


def _report_held(jobs: Iterable[StoredJob]) -> None:
    """Report that jobs are held, those of an array in one line."""
    arrays: dict[str, list[StoredJob]] = {}
    for job in jobs:
        arrays.setdefault(job.array_id or job.id, []).append(job)
    for name, held in arrays.items():
        if len(held) == 1:
            messages.error(f"job {held[0].id} is held: jpsi release {held[0].id}")
        else:
            messages.error(f"{len(held)} jobs of the array {name} are held: jpsi release {name}")


def _deferral(job: StoredJob) -> Deferral | None:
    """Return the deferral of a job that may not have been submitted yet."""
    return job.deferral or job.unclear_deferral


@attrs.frozen
class _WaitingProcesses:
    """The processes that this one has started to wait and submit jobs, by deferral.

    The more of them were killed, the longer it waits before it starts the next one.
    """

    _started: dict[str, list[subprocess.Popen[bytes]]] = attrs.field(factory=dict)
    _failed: set[str] = attrs.field(factory=set)
    #: When the next one may be started, in seconds of the monotonic clock.
    _due_at: dict[str, float] = attrs.field(factory=dict)
    _reported: set[str] = attrs.field(factory=set)

    def look(self) -> None:
        """Note which of them have failed; only jobs that are read after that tell what they have left."""
        for name, started in self._started.items():
            codes = [it.poll() for it in started]
            # a process that was killed says nothing of the next one
            if (
                max((code for code in codes if code is not None), default=0) > 0
                or codes.count(0) > _MOST_ENDS
            ):
                self._failed.add(name)

    def start(self, deferrals: Iterable[Deferral]) -> dict[str, jpsi.JpsiError]:
        """Have a process wait for each deferral; return the errors where that fails, by its name."""
        errors: dict[str, jpsi.JpsiError] = {}
        for deferral in {it.name: it for it in deferrals}.values():
            started, now = self._started.setdefault(deferral.name, []), time.monotonic()
            if deferral.name in self._failed:
                msg = f"the process that was to submit it has failed; {deferral.log} says why"
                errors[deferral.name] = jpsi.SubmitException(msg)
                continue
            if now < self._due_at.get(deferral.name, now):
                continue
            try:
                process = start_waiting(deferral)
            except jpsi.JpsiError as e:
                errors[deferral.name] = e
                continue
            if process is not None:
                self._report_kill(deferral)
                pause = _POLL_SECONDS * 2.0 ** min(len(started), _MOST_PAUSES)
                self._due_at[deferral.name] = now + min(pause, _LONGEST_RESTART_SECONDS)
                started.append(process)
        return errors

    def _report_kill(self, deferral: Deferral) -> None:
        """Report once that a process of a deferral was killed."""
        codes = [code for it in self._started[deferral.name] if (code := it.poll()) is not None and code < 0]
        if codes and deferral.name not in self._reported:
            self._reported.add(deferral.name)
            killed = f"the process that submits deferred jobs was killed by signal {-codes[-1]}"
            messages.error(
                f"{killed}; jpsi starts another, and if that is killed too, the next ones ever later"
            )


def settle_submissions(jobs: Iterable[StoredJob]) -> tuple[list[StoredJob], RecalledJobs]:
    """Find out whether deferred jobs were submitted whose process was killed while it submitted them.

    Returns:
        The jobs as they are then. Of those, the ones that were submitted, and the errors of those for which
        that is not known yet.
    """
    jobs = list(jobs)
    unclear = [it for it in jobs if _is_cut_short(it)]
    if not unclear:
        return jobs, RecalledJobs({}, {})
    recalled = recall_jobs(unclear)
    jobs, failures = _reread(jobs)
    failures |= {
        it.id: recalled.failures[it.id] for it in jobs if it.id in recalled.failures and _is_cut_short(it)
    }
    return jobs, RecalledJobs(recalled.jobs, failures)


def _is_cut_short(job: StoredJob) -> bool:
    return job.unclear_deferral is not None and not job.unclear_deferral.is_attended


def _reread(jobs: Sequence[StoredJob]) -> tuple[list[StoredJob], dict[str, jpsi.JpsiError]]:
    """Return the jobs as they are on disk now; those that are gone as they were, with an error by job id."""
    found = {job.id: job for job in job_store.reread(jobs)}
    gone = {
        job.id: jpsi.SubmitException("it is not on disk any more")
        for job in jobs
        if job.id not in found and not job.status.final
    }
    return [found.get(job.id, job) for job in jobs], dict(gone)


def await_dependencies(
    wanted: Iterable[jpsi.Dependency], is_wanted: Callable[[], object] = lambda: True
) -> list[str] | None:
    """Wait until jobs have ended as they must; return why they did not, as soon as that is certain.

    The result is None if the wait has ended before that, and an empty list if they all did. If one of them is
    deferred itself and no process waits to submit it, one is started.

    Args:
        wanted: the jobs, by the ids that jpsi gave them.
        is_wanted: called now and then; the wait ends if the result is false.
    """
    left = {str(it.job): it for it in wanted}
    followed: dict[str, jpsi.Job] = {}
    processes, reported = _WaitingProcesses(), set[str]()
    stored = {job.id: job for job in job_store.jobs() if job.id in left}
    retry_at = 0.0
    while left and is_wanted():
        looked_at = time.monotonic()
        if len(followed) < len(left) and looked_at >= retry_at:
            processes.look()
            stored = {job.id: job for job in job_store.reread(stored.values())}
            if missing := left.keys() - stored.keys():
                return [f"the job {it} is not on disk any more" for it in sorted(missing)]
            unfollowed = [it for it in stored.values() if it.id not in followed]
            errors = _follow(unfollowed, followed, processes)
            report_failures({job_id: e for job_id, e in errors.items() if str(e) not in reported})
            reported.update(map(str, errors.values()))
            retry_at = time.monotonic() + (_RETRY_SECONDS if errors else _pause_after(looked_at))
        statuses = {it.id: best_status(it, _status(followed.get(it.id))) for it in stored.values()}
        ended = {job_id: status for job_id, status in statuses.items() if status.final}
        unmet = [
            describe_unmet(left[job_id].kind, stored[job_id], status)
            for job_id, status in ended.items()
            if not left[job_id].kind.is_met(status.state)
        ]
        if unmet:
            return unmet
        for job_id in ended:
            del left[job_id], stored[job_id]
            followed.pop(job_id, None)
        if not left:
            break
        if followed:
            jpsi.wait_all(followed.values(), _POLL_SECONDS)
        else:
            time.sleep(_POLL_SECONDS)
    return None if left else []


def _follow(
    jobs: Sequence[StoredJob], followed: dict[str, jpsi.Job], processes: _WaitingProcesses
) -> dict[str, jpsi.JpsiError]:
    """Follow the jobs that were submitted, and have a process submit those that are deferred.

    Returns the errors of those for which that is not possible now, by job id; one for each deferral.
    """
    live = [it for it in jobs if not it.status.final]
    deferred = {
        it.deferral.name: it for it in live if it.deferral is not None and not it.deferral.is_held(it.id)
    }
    refused = processes.start(it.deferral for it in deferred.values() if it.deferral is not None)
    recalled = recall_jobs(it for it in live if _deferral(it) is None or _is_cut_short(it))
    followed.update(recalled.jobs)
    errors = {deferred[name].id: _describe_refusal(deferred[name], e) for name, e in refused.items()}
    return {**errors, **recalled.failures}


def _describe_refusal(job: StoredJob, error: jpsi.JpsiError) -> jpsi.JpsiError:
    msg = f"job {job.id} is not submitted: {error}; a process has to run that submits it: jpsi wait {job.id}"
    return jpsi.SubmitException(msg, error)


def _pause_after(start: float) -> float:
    """Return how long to wait after a look at jobs on disk that began at a time of the monotonic clock."""
    return max(_POLL_SECONDS, min(_LOOK_PAUSE * (time.monotonic() - start), _LONGEST_LOOK_SECONDS))


def _status(job: jpsi.Job | None) -> jpsi.JobStatus | None:
    return None if job is None else job.status


def submit_deferred(name: str, lock: int) -> None:
    """Wait, and submit the jobs of a deferral.

    Args:
        name: the name of the deferral.
        lock: the file descriptor by which this process holds the lock of the deferral.
    """
    # the processes that it starts must not hold the lock as well
    os.set_inheritable(lock, False)  # noqa: FBT003  it takes no keyword
    jobs = {job.id: job for job in job_store.jobs() if job.deferral is not None and job.deferral.name == name}
    if not jobs:
        return
    first = next(iter(jobs.values()))
    deferral, origin = first.deferral, first.origin
    assert deferral is not None  # noqa: S101  selected above
    asked_for = origin.asked_for[0]
    deferred_jobs = _DeferredJobs(deferral, asked_for)
    specs = deferred_jobs.read_specs(jobs)
    while deferred_jobs.acknowledge(specs):
        try:
            with origin.open() as executor:
                deferred_jobs.submit_when_due(executor)
        except jpsi.JpsiError as e:
            deferred_jobs.judge_error(specs, e)
    os.close(lock)
    if deferral.acknowledge(jobs):
        # the user has released them since, and this process still seemed to wait for them
        start_waiting(deferral)
    # last, as it may fail
    if retried := [job_id for job_id, spec in specs.items() if spec.attributes.retry]:
        start_following(retried)


def _group(specs: Mapping[str, jpsi.JobSpec]) -> Mapping[tuple[jpsi.Dependency, ...], list[str]]:
    """Return the ids of jobs by what they wait for; the documents of some may name further jobs."""
    found: dict[tuple[jpsi.Dependency, ...], list[str]] = {}
    for job_id, spec in specs.items():
        after = dict.fromkeys(map(jpsi.Dependency.of, spec.attributes.after or ()))
        found.setdefault(tuple(after), []).append(job_id)
    return found


@attrs.define
class _DeferredJobs:
    """The jobs of a deferral, and what is known of the jobs that they wait for."""

    _deferral: Deferral
    #: The name that the user gave the executor.
    _name: str
    #: The ids of jobs by what they wait for.
    _groups: Mapping[tuple[jpsi.Dependency, ...], list[str]] = attrs.field(factory=dict, init=False)
    _met: set[jpsi.Dependency] = attrs.field(factory=set, init=False)
    #: The number of pauses after failed submissions.
    _pauses: int = attrs.field(default=0, init=False)

    @property
    def last_request(self) -> str:
        """A text that differs after each request about the jobs."""
        return self._deferral.last_request

    def acknowledge(self, job_ids: Iterable[str]) -> list[str]:
        """Return the jobs that are to be submitted now; see `Deferral.acknowledge`.

        Raises:
            SubmitException: their files cannot be read or changed, and repetitions do not help.
        """
        ids = list(job_ids)
        while True:
            try:
                return self._deferral.acknowledge(ids)
            except jpsi.SubmitException as e:
                if not e.transient:
                    raise
                _log(e)
                time.sleep(_RETRY_SECONDS)

    def read_specs(self, jobs: Mapping[str, StoredJob]) -> Mapping[str, jpsi.JobSpec]:
        """Return the specs of the jobs by id, once all can be read but those that are held or cancelled.

        A job whose spec cannot be read now, as on a network file system, would seem to wait for nothing.
        """
        found: dict[str, jpsi.JobSpec] = {}
        left, reported = list(jobs.values()), set[str]()
        while True:
            pending = self.acknowledge(jobs)
            for job in left:
                try:
                    found[job.id] = job.read_spec()
                except jpsi.SubmitException as e:
                    if str(e) not in reported:
                        _log(e)
                    reported.add(str(e))
            if found.keys() >= set(pending):
                break
            time.sleep(_RETRY_SECONDS)
            with contextlib.suppress(jpsi.SubmitException):
                left = job_store.reread(job for job in left if job.id not in found)
        specs = {job_id: found[job_id] for job_id in jobs if job_id in found}
        self._groups = _group(specs)
        return specs

    def submit_when_due(self, executor: jpsi.JobExecutor) -> None:
        """Submit the jobs that wait for no others, unless held or cancelled; wait once for the rest.

        A request about jobs whose submission waits for a free slot, or for the quota, ends that, and closes
        the executor.
        """
        for after, job_ids in self._groups.items():
            try:
                if self._submit_group(after, job_ids, executor):
                    break
            except (jpsi.JpsiError, SelectionError) as e:
                self.judge_error(job_ids, e)

    def judge_error(self, job_ids: Iterable[str], error: jpsi.JpsiError | SelectionError) -> None:
        """Give up those jobs that can never be submitted, and wait before the others are submitted again."""
        _log(error)
        errors: dict[str, Exception] = dict.fromkeys(job_ids, error)
        if isinstance(error, jpsi.BulkException):
            errors = {job.id: it for job, it in error.failed.items()}
        is_repeated = False
        for job_id in self.acknowledge(errors):
            why = errors[job_id]
            if isinstance(why, jpsi.SubmitException) and why.transient:
                is_repeated = True
            else:
                self._deferral.give_up(job_id, str(why))
        if is_repeated:
            self._pause(errors)

    def _pause(self, job_ids: Collection[str]) -> None:
        """Wait before jobs are submitted again; meanwhile they may be cancelled or held."""
        deadline = time.monotonic() + min(_RETRY_SECONDS * 1.5**self._pauses, _LONGEST_RETRY_SECONDS)
        self._pauses = min(self._pauses + 1, _MOST_PAUSES)
        pending = _PendingJobs(self, job_ids)
        while (left := deadline - time.monotonic()) > 0 and pending.find():
            time.sleep(min(_POLL_SECONDS, left))

    def _submit_group(
        self, after: Sequence[jpsi.Dependency], job_ids: Sequence[str], executor: jpsi.JobExecutor
    ) -> bool:
        """Submit jobs unless they have to wait for others; return True if a request has ended that."""
        request = _Request(self._deferral, executor)
        pending = self.acknowledge(job_ids)
        if not pending:
            return False
        left = [it for it in after if it not in self._met]
        try:
            dependencies = sort_dependencies(left, executor, self._name)
        except jpsi.InvalidJobException as e:
            self._deferral.end(pending, "; ".join(e.problems))
            return False
        if not dependencies.foreign:
            self._submit(pending, executor, dependencies.native, request)
            return request.came
        unmet = await_dependencies(dependencies.foreign, _PendingJobs(self, job_ids).find)
        if unmet:
            self._deferral.end(self.acknowledge(job_ids), "; ".join(unmet))
        elif unmet is not None:
            # jobs of its own batch system may have ended meanwhile
            self._met.update(dependencies.foreign)
        return False

    def _submit(
        self,
        job_ids: Sequence[str],
        executor: jpsi.JobExecutor,
        after: Sequence[jpsi.Dependency],
        request: _Request,
    ) -> None:
        found = [job for job in executor.recall(job_ids) if job.native_id is None]
        if not found:
            msg = f"{executor.name} does not find deferred jobs: another process may be submitting them"
            raise jpsi.SubmitException(msg, transient=True)
        for job in found:
            if job.spec is not None:
                job.spec.attributes.after = list(after)
        try:
            with request.watched_for(job_ids):
                if len(found) == 1:
                    executor.submit(found[0])
                else:
                    executor.submit_many(found)
        except jpsi.JpsiError:
            # the next submission meets any other error again
            if not request.came:
                raise
        finally:
            for job in found:
                # the request may have come a moment late
                if job.native_id is not None and self._deferral.was_cancelled(job.id):
                    job.cancel()
        executor.record_site_policy()


@attrs.define
class _Request:
    """A request to cancel, hold or release jobs of a deferral, which may come while they are submitted."""

    _deferral: Deferral
    _executor: jpsi.JobExecutor
    _before: str = attrs.field(init=False)
    #: True once a request has come.
    came: bool = attrs.field(default=False, init=False)
    _is_over: threading.Event = attrs.field(factory=threading.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self._before = self._deferral.last_request

    @contextlib.contextmanager
    def watched_for(self, job_ids: Collection[str]) -> Iterator[None]:
        """Close the executor if a request comes within the block: the rest of the jobs is not submitted."""
        thread = threading.Thread(target=self._watch, args=[job_ids], name="jpsi-requests", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()

    def _watch(self, job_ids: Collection[str]) -> None:
        look_at = time.monotonic() + _LONGEST_LOOK_SECONDS
        while not self._is_over.wait(_POLL_SECONDS):
            self.came = self._deferral.last_request != self._before
            if not self.came and time.monotonic() >= look_at:
                # it may not have been announced, or not be visible before
                with contextlib.suppress(jpsi.SubmitException):
                    self.came = self._deferral.has_request(job_ids)
                look_at = time.monotonic() + _LONGEST_LOOK_SECONDS
            if self.came:
                self._executor.close()
                return


@attrs.define
class _PendingJobs:
    """The jobs of a deferral that are yet to be submitted, for those who ask again and again."""

    _jobs: _DeferredJobs
    _ids: Collection[str]
    _found: Sequence[str] = attrs.field(default=(), init=False)
    _request: str | None = attrs.field(default=None, init=False)
    #: When the last request was seen, and when all jobs are read again, in seconds of the monotonic clock.
    _requested_at: float = attrs.field(default=0.0, init=False)
    _due_at: float = attrs.field(default=0.0, init=False)

    def find(self) -> Sequence[str]:
        """Return what `acknowledge` does; without new requests, it reads the jobs at growing intervals."""
        # the requests of one that comes later may not be visible yet
        request, now = self._jobs.last_request, time.monotonic()
        if request != self._request:
            self._request, self._requested_at = request, now
        elif now < self._due_at:
            return self._found
        self._due_at = now + min(max(_POLL_SECONDS, now - self._requested_at), _LONGEST_LOOK_SECONDS)
        self._found = self._jobs.acknowledge(self._ids)
        return self._found


def _log(error: Exception) -> None:
    """Write an error to the log, if its disk is not full."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
