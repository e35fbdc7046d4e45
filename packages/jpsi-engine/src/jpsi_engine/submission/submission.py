"""Submits a job or an array of jobs: ends earlier attempts, writes the intent, hands it to the batch system.

`submit_concurrency` in the configuration limits how many submissions run at a time.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from jpsi.plugin import Arrays, Capabilities, Dependency, JobSpec, JpsiError, SubmitContext, SubmitException
from jpsi.plugin.engine import (
    EngineSetup,
    Preview,
    Submission,
    dependencies,
    has_staging,
    process_count,
    serialization,
)
from jpsi_engine import runner
from jpsi_engine.array_expansion import array_index
from jpsi_engine.host import convert_os_errors
from jpsi_engine.runner import (
    BatchFrame,
    ElementFrame,
    Frame,
    Run,
    WalltimeWarning,
    container_commands,
    render_runner,
    staging,
)
from jpsi_engine.scheduler import Backend, JobView
from jpsi_engine.spool import ArrayAttempt, ArrayMember, JobIntent, Spool, read_link
from jpsi_engine.submission.handoff import HandedOff, Handoff, Prepared, write_nothing
from jpsi_engine.submission.requeue_rules import probe_requeue_codes, requeue_rules
from jpsi_engine.submission.run_host import RemoteStaging, RunHost, TakenError
from jpsi_engine.transfer import RemotePlan, plan

log = logging.getLogger(__name__)


@attrs.frozen(slots=True)
class Accepted:
    """The jobs that the batch system has accepted with one command."""

    jobs: Sequence[JobView]
    #: The errors of the others, by job id. A job that is in neither was not submitted, since the caller was
    #: interrupted.
    errors: Mapping[str, JpsiError] = attrs.field(factory=dict)
    #: The exception that interrupted the caller meanwhile; the caller raises it once the jobs are followed.
    interrupt: BaseException | None = None


class ContestedError(Exception):
    """Other processes have submitted some of the jobs in the meantime."""

    def __init__(self, job_ids: Collection[str]) -> None:
        super().__init__(job_ids)
        self.job_ids = frozenset(job_ids)


def contested_error(job_id: str) -> SubmitException:
    """Return the error for a job that another process has submitted in the meantime."""
    error = SubmitException(f"job {job_id} was submitted by another process in the meantime")
    error.__cause__ = FileExistsError(job_id)
    return error


# How long to wait for another process that holds the lock of an earlier attempt.
_JUDGE_SECONDS = 10.0


@attrs.define(slots=True, eq=False)
class SubmissionPipeline:
    """The submissions of one executor. Methods may be called from any thread."""

    _backend: Backend
    _run_host: RunHost
    #: Hands attempts to the batch system.
    _handoff: Handoff
    #: The engine's setup, with the executor's name and its callbacks.
    _setup: EngineSetup
    #: Returns the dependencies of a job that have not ended; the batch system must know them.
    _open_dependencies_of: Callable[[JobSpec], tuple[Dependency, ...]]
    #: The arrays of jobs that have not received the outcome of their submission yet, by job id.
    _unreported: dict[str, str] = attrs.field(factory=dict, init=False)
    #: Those arrays whose submission failed, so that their elements are NEW again. The others are being
    #: submitted, or the batch system has them.
    _failed_arrays: set[str] = attrs.field(factory=set, init=False)
    _slots: threading.BoundedSemaphore = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._slots = threading.BoundedSemaphore(self._backend.config.submit_concurrency)

    @property
    def _spool(self) -> Spool:
        return self._run_host.spool

    def submit_jobs(self, submissions: Sequence[Submission]) -> Accepted:
        """Submit one job, or several jobs that look alike to the batch system, with one command.

        Raises:
            JpsiError: none of the jobs was submitted.
        """
        spec = submissions[0].spec
        needs_transfer = self.needs_transfer(spec)
        probe_requeue_codes(self._backend, self._spool.root)
        with contextlib.ExitStack() as stack:
            # Before the jobs' files are written, but not before a transfer: it may take hours, must not
            # block other jobs, and the states of the jobs that this one depends on would grow stale.
            after = None if needs_transfer else self._take_slot(stack, spec)
            locks, errors = self._reserve(submissions)
            if not locks:
                return Accepted([], errors)
            attempts, held = list(locks), list(locks.values())
            with self._staged_in(submissions[0], locks):
                try:
                    after = self._take_slot(stack, spec) if after is None else after
                    begun = time.monotonic()
                    contexts = [self._context(it.job_id, it.tag, after) for it in attempts]
                except BaseException:
                    _discard(locks)
                    raise
                is_single = len(submissions) == 1
                prepared = Prepared(
                    attempts=attempts,
                    spec=spec,
                    contexts=contexts,
                    locks=held,
                    begun=begun,
                    write=functools.partial(self._write_files, held[0], submissions[0])
                    if is_single
                    else write_nothing,
                )
                if is_single:
                    native_id, interrupt = self._hand_off_one(prepared)
                    return Accepted([_view(attempts[0], native_id, begun)], {}, interrupt)
                handed_off = self._hand_off(prepared)
        jobs = []
        for attempt, outcome in zip(attempts, handed_off.outcomes, strict=True):
            if isinstance(outcome, str):
                jobs.append(_view(attempt, outcome, begun))
            elif isinstance(outcome, JpsiError):
                errors[attempt.job_id] = outcome
        return Accepted(jobs, errors, handed_off.interrupt)

    def _take_slot(self, stack: contextlib.ExitStack, spec: JobSpec) -> tuple[Dependency, ...]:
        """Wait until another submission may run; return the dependencies that have not ended then."""
        stack.enter_context(self._slots)
        return self._open_dependencies_of(spec)

    def _reserve(
        self, submissions: Sequence[Submission]
    ) -> tuple[dict[JobIntent, int], dict[str, JpsiError]]:
        """Reserve the attempts of jobs; return their locks, and the errors of the others by job id.

        The files of a single job are written later, while the submit command starts; its error is raised.
        """
        locks: dict[JobIntent, int] = {}
        errors: dict[str, JpsiError] = {}
        try:
            for it in submissions:
                job_attempt = self._attempt(it)
                try:
                    self.end_earlier_attempts(it.job_id, it.attempt)
                    with self._convert_errors(job_attempt.name):
                        locks[job_attempt] = (
                            self._spool.reserve(it.job_id, it.attempt)
                            if len(submissions) == 1
                            else self._spool.prepare(it.job_id, it.attempt, *self._render_files(it))
                        )
                except JpsiError as e:
                    if len(submissions) == 1:
                        raise
                    errors[it.job_id] = e
        except BaseException:
            _discard(locks)
            raise
        return locks, errors

    def _attempt(self, submission: Submission) -> JobIntent:
        return JobIntent(self._spool, submission.job_id, submission.attempt)

    def _context(self, job_id: str, tag: str, after: tuple[Dependency, ...]) -> SubmitContext:
        return SubmitContext(site=self._backend.site, job_id=job_id, tag=tag, after=after)

    def shell(self, spec: JobSpec) -> list[str]:
        """Return the words that run the script of a job; jobs of one array share it."""
        return self._handoff.shell(spec)

    def needs_transfer(self, spec: JobSpec) -> bool:
        """Return True if the client transfers files for a job; it submits such a job by itself."""
        return self._run_host.remote_staging is not None and has_staging(spec)

    @contextlib.contextmanager
    def _staged_in(self, submission: Submission, locks: Mapping[JobIntent, int]) -> Iterator[None]:
        """Copy the input files of a job to the remote host; remove them if the job is not submitted."""
        job_id, remote_staging = submission.job_id, self._run_host.remote_staging
        if remote_staging is None or not self.needs_transfer(submission.spec):
            yield
            return
        job_attempt = self._attempt(submission)
        # Another machine may have copied the same files for a later attempt. Only one machine can submit it.
        is_needed = submission.attempt > 1
        try:
            try:
                report = functools.partial(self._setup.staged, job_id)
                remote_staging.put(job_id, self._plan_transfers(remote_staging, submission).puts, report)
            except BaseException:
                _discard(locks)
                raise
            is_needed = False
            yield
            is_needed = True
        except TakenError:
            # the machine that submitted this attempt needs the files
            is_needed = True
            raise
        finally:
            # an attempt that may still run needs them
            if not is_needed and job_attempt.is_over():
                remote_staging.remove([job_id])

    @staticmethod
    def _plan_transfers(remote_staging: RemoteStaging, submission: Submission) -> RemotePlan:
        return remote_staging.plan_transfers(plan(submission.spec), submission.job_id, submission.attempt)

    def preview(self, submission: Submission) -> Preview:
        """Return what would be submitted for a job; see `jpsi.plugin.engine.Engine`."""
        spec = submission.spec
        job_attempt = self._attempt(submission)
        context = self._context(job_attempt.job_id, job_attempt.tag, tuple(dependencies(spec)))
        script = self._handoff.render_script(job_attempt, spec, context)
        return Preview(
            command=self._backend.submit_command(script, spec, context).argv,
            script=script.text,
            run=render_runner(self._make_single_run(submission)),
            path=Path(self._run_host.layout().path(job_attempt.file("run"))),
        )

    def _make_single_run(self, submission: Submission) -> Run:
        rules = requeue_rules(self._backend, self._spool.root)
        frame = BatchFrame(self._backend.capabilities.id_variable, rules)
        return self._make_run(submission, frame)

    def submit_array(
        self, submissions: Sequence[Submission], arrays: Arrays, at_a_time: int | None
    ) -> Accepted:
        """Submit several jobs that look alike to the batch system as one array.

        The caller has ended their earlier attempts (`end_earlier_attempts`). Until the caller calls
        `mark_reported` for these jobs, none of them is submitted again while the array may run.

        Raises:
            SubmitException, InvalidJobException: none of the jobs was submitted.
            ContestedError: none was submitted; the caller may submit the others without the jobs it names.
        """
        array, spec, count = os.urandom(16).hex(), submissions[0].spec, len(submissions)
        is_named = any(it.attempt > 1 for it in submissions)
        job_attempt = ArrayAttempt(self._spool, array, submissions[0].job_id, is_named)
        probe_requeue_codes(self._backend, self._spool.root)
        with self._slots:
            after = self._open_dependencies_of(spec)
            begun = time.monotonic()
            with self._convert_errors(job_attempt.name):
                lock = self._prepare_array(array, submissions, arrays)
                try:
                    self._enrol(array, submissions)
                except BaseException as e:
                    os.close(lock)
                    # discard a contested array completely, so that its other jobs may be submitted again
                    is_named = is_named and not isinstance(e, ContestedError)
                    attrs.evolve(job_attempt, is_named=is_named).discard()
                    raise
            made = [it.job_id for it in submissions if it.attempt == 1 and it.spec.attributes.retry]
            job_attempt = attrs.evolve(job_attempt, made=made)
            context = attrs.evolve(
                self._context(array, job_attempt.tag, after), elements=count, at_a_time=at_a_time
            )
            prepared = Prepared(
                attempts=[job_attempt], spec=spec, contexts=[context], locks=[lock], begun=begun
            )
            self._unreported.update(dict.fromkeys((it.job_id for it in submissions), array))
            try:
                native_id, interrupt = self._hand_off_one(prepared)
            except BaseException:
                self._failed_arrays.add(array)
                if job_attempt.is_over():
                    self.mark_reported(submissions)
                raise
        element_ids = self._backend.element_ids(native_id, range(1, count + 1))
        jobs = [
            _view(it, element_id, begun, ArrayMember(array, index))
            for index, (it, element_id) in enumerate(zip(submissions, element_ids, strict=True), 1)
        ]
        return Accepted(jobs, {}, interrupt)

    def mark_reported(self, submissions: Iterable[Submission]) -> None:
        """Note that the elements of an array have received the outcome of their submission."""
        for submission in submissions:
            self._unreported.pop(submission.job_id, None)

    def _hand_off_one(self, prepared: Prepared) -> tuple[str, BaseException | None]:
        """Hand a single attempt off; return its native id and what interrupted the caller meanwhile."""
        handed_off = self._hand_off(prepared)
        (outcome,) = handed_off.outcomes
        # an error does not matter once the batch system has the job; otherwise it is the outcome
        interrupt = None if isinstance(handed_off.interrupt, Exception) else handed_off.interrupt
        if isinstance(outcome, str):
            return outcome, interrupt
        raise interrupt or outcome

    def _hand_off(self, prepared: Prepared) -> HandedOff:
        try:
            handed_off = self._handoff.submit(prepared)
            for attempt, lock, outcome in zip(
                prepared.attempts, prepared.locks, handed_off.outcomes, strict=True
            ):
                if isinstance(outcome, str):
                    self._record_native_id(attempt.name, lock, outcome)
        finally:
            for lock in prepared.locks:
                os.close(lock)
        return handed_off

    def _record_native_id(self, name: str, lock: int, native_id: str) -> None:
        try:
            self._spool.started(lock, native_id)
        except OSError:
            # the claim, which the runner makes when the job starts, and the tag lead to the native id, too
            log.warning("%s: its native id %s could not be recorded", name, native_id, exc_info=True)

    def _convert_errors(self, name: str) -> contextlib.AbstractContextManager[None]:
        root = self._spool.root
        exists = f"{name} was submitted by another process in the meantime"
        return convert_os_errors(f"{name} could not be recorded in {root}", root, exists)

    def end_earlier_attempts(self, job_id: str, attempt: int) -> None:
        """Make sure that no earlier attempt of a job can still run.

        Raises:
            SubmitException: an earlier attempt runs or may run, or another process made this attempt.
        """
        if attempt > 1 and self._spool.attempt_exists(job_id, attempt):
            raise contested_error(job_id)
        retried = self._spool.last_retried(job_id, attempt) if attempt > 1 else None
        # its runner refuses to run an attempt with a final status
        for earlier in range(1 if retried is None else retried[0] + 1, attempt):
            with self._convert_errors(f"job {job_id}"):
                may_run = self._may_run(job_id, earlier)
            if may_run:
                raise SubmitException(f"attempt {earlier} of job {job_id} runs already; recover() finds it")
        self._unreported.pop(job_id, None)

    def _may_run(self, job_id: str, attempt: int) -> bool:
        """Return True if an attempt runs or may yet run; if False, the attempt can never run from now on."""
        if self._spool.has_run(job_id, attempt):
            # its markers count, even if its claim is lost
            return True
        if self._spool.has_script(job_id, attempt) and self._single_may_run(job_id, attempt):
            return True
        # Before a first attempt begins to run, only memory has the array that it belongs to.
        unreported = self._unreported.get(job_id)
        if unreported is not None:
            return unreported not in self._failed_arrays or self._array_may_run(unreported)
        place = read_link(self._spool.folder(job_id), attempt)
        if place is not None and self._spool.arrays.is_of_another_job(place, job_id, attempt):
            # which array the attempt was in, and whether that runs, is unknown
            msg = f"job {job_id} is damaged: array.{attempt} names the element of another job"
            raise SubmitException(msg)
        return place is not None and self._array_may_run(place.array)

    def _single_may_run(self, job_id: str, attempt: int) -> bool:
        job_attempt = JobIntent(self._spool, job_id, attempt)
        if self._spool.intent(job_id, attempt) is None:
            return self._handoff.withdraw(job_attempt) is not None
        with job_attempt.hold_lock(_JUDGE_SECONDS) as may_judge:
            # an attempt that another process has found in the batch system, and follows, is not withdrawn
            is_found = may_judge and job_attempt.read_native_id() is not None
            return is_found or self._handoff.withdraw(job_attempt) is not None

    def _array_may_run(self, array: str) -> bool:
        job_attempt = ArrayAttempt(self._spool, array)
        if job_attempt.is_over():
            return False
        with job_attempt.hold_lock(0.0) as may_judge:
            # once the batch system has accepted an array, one job must not withdraw the others' elements
            if not may_judge or job_attempt.read_native_id() is not None:
                return True
            return self._handoff.withdraw(job_attempt) is not None

    def _write_files(self, lock: int, submission: Submission) -> None:
        if self.needs_transfer(submission.spec):
            self._spool.stage_out_files.mark_pending(submission.job_id, submission.attempt)
        self._spool.write_attempt(
            lock, submission.job_id, submission.attempt, *self._render_files(submission)
        )

    def _render_files(self, submission: Submission) -> tuple[dict[str, Any], str]:
        """Return the intent, and the text of the runner's script."""
        run = self._make_single_run(submission)
        intent = {
            **self._intent_entries(submission.job_id),
            "attempt": submission.attempt,
            "directory": run.directory,
            "spec": encode_spec(submission),
        }
        return intent, render_runner(run)

    def _prepare_array(self, array: str, submissions: Sequence[Submission], arrays: Arrays) -> int:
        spool, layout, here = self._spool, self._run_host.layout(), self._run_host.directory()
        plains = list(map(encode_spec, submissions))
        # equal jobs share them
        shared = common_entries(list({id(it): it for it in plains}.values()))
        elements = [
            {
                "id": it.job_id,
                "attempt": it.attempt,
                "directory": str(it.spec.directory or here),
                "spec": {name: value for name, value in plain.items() if name not in shared},
            }
            for it, plain in zip(submissions, plains, strict=True)
        ]
        staged = (
            self._make_run(it, ElementFrame("", common="", index=0))
            for it in submissions
            if has_staging(it.spec)
        )
        functions = staging.functions(staged)
        rules = requeue_rules(self._backend, self._spool.root)
        script = runner.render_array_runner(array, layout, arrays, rules, functions)
        intent = {**self._intent_entries(array), "spec": shared}

        def prepare() -> int:
            blocks = runner.element_blocks(self._element_texts(submissions, f"{layout.arrays}/{array}/run"))
            return spool.arrays.prepare(array, intent, elements, script, blocks)

        try:
            return prepare()
        except FileNotFoundError:
            # The root was removed, for instance by a clean-up of the file system.
            spool.open()
            return prepare()

    def _element_texts(self, submissions: Sequence[Submission], common: str) -> Iterator[str]:
        """Yield the lines of each element; those of jobs in a row that are alike are rendered once."""
        last: tuple[tuple[str, int], runner.arrays.ElementForm] | None = None
        for index, it in enumerate(submissions, 1):
            arguments = it.spec.arguments or ()
            if it.like is None or any("${" in text for text in arguments):
                yield runner.element_text(self._make_run(it, ElementFrame("", common=common, index=index)))
                continue
            key = it.like.job_id, it.attempt
            if last is None or last[0] != key:
                spec = attrs.evolve(it.spec, arguments=[runner.arrays.ARGUMENTS])
                frame = ElementFrame("", common=common, index=runner.arrays.INDEX)
                form = self._make_run(attrs.evolve(it, job_id=runner.arrays.JOB_ID, spec=spec), frame)
                last = key, runner.arrays.ElementForm(form)
            yield last[1].text(it.job_id, index, arguments)

    def _enrol(self, array: str, submissions: Sequence[Submission]) -> None:
        """Write into the folders of jobs which array they belong to, before it is submitted.

        Those are the jobs with earlier attempts, and those that may be submitted again: others have no folder
        yet.

        Raises:
            ContestedError: other processes have submitted some of the jobs; then no folder names the array.
        """
        linked, others = [], []
        try:
            for index, it in enumerate(submissions, 1):
                retry = it.spec.attributes.retry
                if it.attempt == 1 and not retry:
                    continue
                try:
                    self._spool.link_retry(it.job_id, it.attempt, ArrayMember(array, index))
                except FileExistsError:
                    others.append(it.job_id)
                    continue
                linked.append(it)
                if retry:
                    self._spool.allow_retry(it.job_id, it.attempt)
        except BaseException:
            self._unlink(linked)
            raise
        if others:
            self._unlink(linked)
            raise ContestedError(others)

    def _unlink(self, linked: Iterable[Submission]) -> None:
        """Take the links of `_enrol` back; the folders of other jobs belong to those who submitted them."""
        for it in linked:
            if it.attempt == 1:
                self._spool.discard(it.job_id, 1)
            else:
                self._spool.unlink_retry(it.job_id, it.attempt)

    def _intent_entries(self, name: str) -> Mapping[str, Any]:
        return {
            "id": name,
            "executor": self._setup.executor,
            "version": self._setup.version,
            "time": datetime.now(UTC).isoformat(),
            **self._run_host.intent_entries(),
        }

    def _make_run(self, submission: Submission, frame: Frame) -> Run:
        job_id, spec, layout = submission.job_id, submission.spec, self._run_host.layout()
        remote_staging = self._run_host.remote_staging
        staged = plan(spec)
        if remote_staging is not None:
            staged = self._plan_transfers(remote_staging, submission).runner
        own = _own_array_variables(
            spec, self._backend.capabilities, is_element=isinstance(frame, ElementFrame)
        )
        spec = attrs.evolve(spec, environment={**own, **(spec.environment or {})}) if own else spec
        return Run(
            job_id=job_id,
            attempt=submission.attempt,
            folder=f"{layout.jobs}/{job_id}",
            events=layout.events,
            directory=str(spec.directory or self._run_host.directory()),
            spec=spec,
            kept_variables=tuple(own),
            launch=submission.launch,
            rank_variables=submission.rank_variables,
            sources_scripts=submission.sources_scripts,
            nodes=submission.nodes,
            prologue=self._backend.config.prologue,
            frame=frame,
            plan=staged,
            warning=WalltimeWarning.of(spec, self._backend.config),
            containers=container_commands(spec, self._backend.config),
        )


def _own_array_variables(spec: JobSpec, offered: Capabilities, *, is_element: bool) -> dict[str, str]:
    """Return the variables of the batch system by which a job knows its place in the array of its user.

    A program that reads `SLURM_ARRAY_TASK_ID`, say, finds its index there, also in a job that repeats an
    element; that job's own id is then that of its array. A variable that the spec sets is kept, and so is one
    that commands inside of the job read.
    """
    arrays, environment = offered.arrays, spec.environment or {}
    index = array_index(environment)
    if index is None or arrays is None or (arrays.reads_index and process_count(spec.resources) > 1):
        return {}
    numbers = {name: environment.get(it) for name, it in arrays.range_variables}
    # a job that inherits nothing knows no id
    has_own_id = spec.inherit_environment and not is_element
    return {
        **(_array_id_variables(offered.id_variable, arrays.id_variable) if has_own_id else {}),
        **dict.fromkeys(arrays.index_variable.split(), str(index)),
        **{name: it for name, it in numbers.items() if it is not None},
    }


def _array_id_variables(own: str, of_array: str) -> dict[str, str]:
    """Return the variables with the id of an array for a job that is in none, with references to its own id.

    Args:
        own: the variables with the id of a job, separated by blanks.
        of_array: those with the id of an element's array.
    """
    names = own.split()
    return {it: f"${{{names[0]}}}" for it in of_array.split() if names and it not in names}


def _discard(locks: Mapping[JobIntent, int]) -> None:
    """Discard attempts after an error, so that they were never made."""
    for job_attempt, lock in locks.items():
        # under its lock, or another process could take the attempt for one that it may withdraw
        try:
            job_attempt.discard()
        finally:
            os.close(lock)


def encode_spec(submission: Submission) -> Mapping[str, Any]:
    """Return the spec of a job as plain values."""
    return serialization.encode(submission.spec) if submission.plain is None else submission.plain


def _view(
    submitted: JobIntent | Submission, native_id: str, begun: float, place: ArrayMember | None = None
) -> JobView:
    job_id, attempt = submitted.job_id, submitted.attempt
    # the runner makes the folder of an element, so there is nothing to read yet
    is_read = place is not None
    return JobView(job_id, job_id, attempt, native_id, place=place, accepted_at=begun, is_read=is_read)


def common_entries(plains: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the entries that several specs, as plain values, have in common."""
    first, *others = plains
    return {
        name: value
        for name, value in first.items()
        if all(other.get(name, _MISSING) == value for other in others)
    }


_MISSING = object()
