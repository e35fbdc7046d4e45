"""Writes down what is to be submitted, a job or an array of them, and has it sent; so many at a time."""

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

from jpsi.plugin import Arrays, Dependency, JobSpec, JpsiError, SubmitContext, SubmitException
from jpsi.plugin.engine import (
    EngineSetup,
    InterruptedSubmission,
    Preview,
    Submission,
    dependencies,
    has_staging,
    plain_values,
)
from jpsi_engine.host import is_transient
from jpsi_engine.runner import BatchFrame, ElementFrame, Frame, RequeueRules, Run, render_runner, staging
from jpsi_engine.scheduler import Backend
from jpsi_engine.spool import (
    EVERY_FAILURE,
    JobAttempt,
    Place,
    WrittenArray,
    WrittenJob,
    keep_codes,
    read_codes,
    read_link,
)
from jpsi_engine.submission.grouping import common
from jpsi_engine.submission.handoff import Sending, Sent, nothing
from jpsi_engine.submission.run_host import RemoteStaging, Side, TakenError
from jpsi_engine.transfer import FarPlan, plan

log = logging.getLogger(__name__)


@attrs.frozen(slots=True)
class Accepted:
    """What the batch system has taken."""

    native_id: str
    #: When the submission was begun: answers to older questions tell nothing of it.
    begun: float
    #: What has interrupted the caller meanwhile, to be raised once it is followed.
    interrupt: BaseException | None = None


@attrs.frozen(slots=True)
class AcceptedArray:
    """What the batch system has taken as one."""

    #: jpsi's id of the array.
    array: str
    #: The native ids of its elements, in their order.
    native_ids: Sequence[str]
    whole: Accepted


@attrs.frozen(slots=True)
class AcceptedSeveral:
    """What came of jobs that were submitted with one command."""

    #: By job id; of others nothing was submitted, as the caller was interrupted.
    outcomes: Mapping[str, Accepted | JpsiError]
    #: What has interrupted the caller meanwhile, to be raised once they are followed.
    interrupt: BaseException | None = None


class ContestedError(Exception):
    """Other processes have submitted some of the jobs in the meantime."""

    def __init__(self, job_ids: Collection[str]) -> None:
        super().__init__(job_ids)
        self.job_ids = frozenset(job_ids)


def contested(job_id: str) -> SubmitException:
    """What the caller is told of a job that another process has submitted."""
    return SubmitException(f"job {job_id} was submitted by another process in the meantime")


@attrs.define(slots=True, eq=False)
class _Untold:
    """An array whose elements have not been told yet what came of it."""

    array: str
    #: Whether its elements are NEW again; otherwise it is on its way, or the batch system has it.
    has_failed: bool = False


# How long somebody else is waited for who finds out what became of an earlier attempt.
_JUDGE_SECONDS = 10.0


class Submitting:
    """Submissions of one executor. Methods may be called from any thread.

    Args:
        backend: which batch system it is.
        side: where they run.
        sending: hands them over.
        setup: whose jobs they are.
        still_open: the dependencies of a job of which the batch system must be told.
    """

    def __init__(
        self,
        backend: Backend,
        side: Side,
        sending: Sending,
        setup: EngineSetup,
        still_open: Callable[[JobSpec], tuple[Dependency, ...]],
    ) -> None:
        self._backend = backend
        self._side = side
        self._spool = side.spool
        self._sending = sending
        self._setup = setup
        self._still_open = still_open
        self._untold: dict[str, _Untold] = {}
        self._slots = threading.BoundedSemaphore(backend.config.submit_concurrency)

    def one(self, submission: Submission) -> Accepted:
        """Submit one job; see `jpsi.plugin.Engine`."""
        job_id, attempt, spec = submission.job_id, submission.attempt, submission.spec
        written = WrittenJob(self._spool, job_id, attempt)
        self._learn_requeue_codes()
        with contextlib.ExitStack() as held:
            if not self.carries(spec):
                held.enter_context(self._slots)
            self.end_earlier(job_id, attempt)
            with self._writing(written.name):
                lock = self._spool.reserve(job_id, attempt)
            with self._carried(submission, lock):
                with _given_up(written, lock):
                    if self.carries(spec):
                        # Only now: files may take hours, and keep no other job.
                        held.enter_context(self._slots)
                    # Only now: what is known of other jobs grows old while one waits.
                    after = self._still_open(spec)
                    begun = time.monotonic()
                    site = self._backend.site
                context = SubmitContext(site=site, job_id=job_id, tag=written.tag, after=after)
                write = functools.partial(self._write_down, lock, submission)
                return self._send(written, spec, context, lock, begun=begun, write=write)

    def carries(self, spec: JobSpec) -> bool:
        """Whether files are carried for a job, which is submitted by itself then."""
        return self._side.carrying is not None and has_staging(spec)

    @contextlib.contextmanager
    def _carried(self, submission: Submission, lock: int) -> Iterator[None]:
        """Put the files of a job where it runs; they are removed if it comes to nothing."""
        job_id, carrying = submission.job_id, self._side.carrying
        if carrying is None or not self.carries(submission.spec):
            yield
            return
        written = WrittenJob(self._spool, job_id, submission.attempt)
        # another machine may have put the same there for a later attempt, which only one of them can submit
        is_needed = submission.attempt > 1
        try:
            with _given_up(written, lock):
                told = functools.partial(self._setup.staged, job_id)
                carrying.put(job_id, self._far_plan(carrying, submission).puts, told)
            is_needed = False
            yield
            is_needed = True
        except TakenError:
            # they are those of the machine that has it
            is_needed = True
            raise
        finally:
            # what may run or not needs them
            if not is_needed and written.is_over():
                carrying.remove([job_id])

    @staticmethod
    def _far_plan(carrying: RemoteStaging, submission: Submission) -> FarPlan:
        return carrying.planned(plan(submission.spec), submission.job_id, submission.attempt)

    def several(self, submissions: Sequence[Submission]) -> AcceptedSeveral:
        """Submit several jobs with one command: those that the batch system sees no difference between."""
        self._learn_requeue_codes()
        with self._slots, contextlib.ExitStack() as held:
            after = self._still_open(submissions[0].spec)
            begun = time.monotonic()
            outcomes: dict[str, Accepted | JpsiError] = {}
            locks: dict[WrittenJob, int] = {}
            try:
                for submission in submissions:
                    written = WrittenJob(self._spool, submission.job_id, submission.attempt)
                    try:
                        self.end_earlier(written.job_id, written.attempt)
                        with self._writing(written.name):
                            locks[written] = self._prepare(submission)
                    except JpsiError as e:
                        outcomes[written.job_id] = e
                    else:
                        held.callback(os.close, locks[written])
            except BaseException:
                for written in locks:
                    written.discard()
                raise
            sent = self._sent(locks, submissions[0].spec, after)
            for (written, lock), outcome in zip(locks.items(), sent.outcomes, strict=True):
                if isinstance(outcome, str):
                    self._note(written.name, lock, outcome)
                    outcomes[written.job_id] = Accepted(outcome, begun)
                elif outcome is not None:
                    outcomes[written.job_id] = outcome
        return AcceptedSeveral(outcomes, sent.interrupt)

    def _sent(self, locks: Mapping[WrittenJob, int], spec: JobSpec, after: tuple[Dependency, ...]) -> Sent:
        if not locks:
            return Sent([])
        site = self._backend.site
        contexts = [SubmitContext(site=site, job_id=it.job_id, tag=it.tag, after=after) for it in locks]
        return self._sending.send_several(list(locks), spec, contexts, list(locks.values()))

    def preview(self, submission: Submission) -> Preview:
        """What submitting one job would come to; see `jpsi.plugin.PreviewingEngine`."""
        spec = submission.spec
        written = WrittenJob(self._spool, submission.job_id, submission.attempt)
        context = SubmitContext(
            site=self._backend.site,
            job_id=submission.job_id,
            tag=written.tag,
            after=tuple(dependencies(spec)),
        )
        script = self._sending.script(written, spec, context)
        return Preview(
            command=self._backend.submission(script, spec, context).argv,
            script=script.text,
            run=render_runner(self._single_run(submission)),
            path=Path(self._side.layout().path(written.file("run"))),
        )

    def _single_run(self, submission: Submission) -> Run:
        frame = BatchFrame(self._backend.capabilities.id_variable, self._requeue_rules())
        return self._run(submission, self._side.directory(), frame)

    def _learn_requeue_codes(self) -> None:
        """Have the site asked after which exit codes it puts jobs back, before a spool's first job is sent.

        What it answers is on disk then for every job that is started again: until it is known, a failure that
        nobody has seen may be one that asked for it; and a client that is killed asks no more.
        """
        if self._known_codes() is not EVERY_FAILURE:
            return
        try:
            self._backend.probe()
        except JpsiError as e:
            log.info("%s does not tell after which exit codes it puts jobs back: %s", self._backend.place, e)
        else:
            keep_codes(self._spool.root, self._backend.requeue_exit_codes)

    def _known_codes(self) -> Collection[int]:
        codes = self._backend.requeue_exit_codes
        return read_codes(self._spool.root) if codes is EVERY_FAILURE else codes

    def _requeue_rules(self) -> RequeueRules:
        """What is known of the jobs that the batch system runs again."""
        codes = self._known_codes()
        return RequeueRules(
            count_variable=self._backend.capabilities.restart_variable,
            exit_codes=None if codes is EVERY_FAILURE else codes,
        )

    def array(
        self, submissions: Sequence[Submission], arrays: Arrays, at_a_time: int | None = None
    ) -> AcceptedArray:
        """Submit several jobs as one array: those that the batch system sees no difference between.

        Their earlier attempts are ended already. Until `told` is called for them, none of them is submitted
        again while the array may run.

        Raises:
            SubmitException, InvalidJobException: none of them was submitted.
            ContestedError: neither, and without some of them the others may be.
        """
        array, spec, count = os.urandom(16).hex(), submissions[0].spec, len(submissions)
        is_named = any(it.attempt > 1 for it in submissions)
        written = WrittenArray(self._spool, array, submissions[0].job_id, is_named)
        self._learn_requeue_codes()
        with self._slots:
            after = self._still_open(spec)
            begun = time.monotonic()
            with self._writing(written.name):
                lock = self._prepare_array(array, submissions, arrays)
                try:
                    self._enrol(array, submissions)
                except BaseException as e:
                    os.close(lock)
                    # with nothing of it left, the others may be submitted as if it had never been
                    is_named = is_named and not isinstance(e, ContestedError)
                    attrs.evolve(written, is_named=is_named).discard()
                    raise
            site = self._backend.site
            context = SubmitContext(
                site=site,
                job_id=array,
                tag=written.tag,
                after=after,
                elements=count,
                at_a_time=at_a_time,
            )
            untold = _Untold(array)
            self._untold.update(dict.fromkeys((it.job_id for it in submissions), untold))
            try:
                whole = self._send(written, spec, context, lock, begun=begun)
            except BaseException:
                untold.has_failed = True
                if written.is_over():
                    self.told(submissions)
                raise
        return AcceptedArray(array, self._backend.element_ids(whole.native_id, range(1, count + 1)), whole)

    def told(self, submissions: Iterable[Submission]) -> None:
        """The elements of an array know what came of it."""
        for submission in submissions:
            self._untold.pop(submission.job_id, None)

    def _send(  # noqa: PLR0913  what is sent, and how
        self,
        written: JobAttempt,
        spec: JobSpec,
        context: SubmitContext,
        lock: int,
        *,
        begun: float,
        write: Callable[[], None] = nothing,
    ) -> Accepted:
        try:
            native_id = self._sending.send(written, spec, context, lock, write)
            self._note(written.name, lock, native_id)
        except InterruptedSubmission as e:
            return Accepted(e.native_id, begun, e.interrupt)
        finally:
            os.close(lock)
        return Accepted(native_id, begun)

    def _note(self, name: str, lock: int, native_id: str) -> None:
        try:
            self._spool.started(lock, native_id)
        except OSError:
            # its claim, made when it begins to run, and its tag tell it as well
            log.warning("%s: its native id %s could not be written down", name, native_id, exc_info=True)

    @contextlib.contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileExistsError as e:
            msg = f"{name} was submitted by another process in the meantime"
            raise SubmitException(msg, e) from e
        except OSError as e:
            msg = f"{name} could not be written down in {self._spool.root}: {e}"
            raise SubmitException(msg, e, transient=is_transient(e)) from e

    def end_earlier(self, job_id: str, attempt: int) -> None:
        """Make sure that no earlier attempt of a job can run any more.

        Raises:
            SubmitException: one of them runs or may run, or somebody else made this one.
        """
        if attempt > 1 and self._spool.is_made(job_id, attempt):
            raise contested(job_id)
        for earlier in range(1, attempt):
            with self._writing(f"job {job_id}"):
                runs = self._runs(job_id, earlier)
            if runs:
                msg = f"attempt {earlier} of job {job_id} runs already; recover() finds it"
                raise SubmitException(msg)
        self._untold.pop(job_id, None)

    def _runs(self, job_id: str, attempt: int) -> bool:
        """Whether an attempt runs or is on its way; otherwise it can run no more once this returns."""
        if self._spool.has_run(job_id, attempt):
            # what it has left counts, although its claim may be lost
            return True
        if self._spool.has_script(job_id, attempt) and self._single_runs(job_id, attempt):
            return True
        # Before it begins to run, nothing but memory tells in which array a first attempt is.
        untold = self._untold.get(job_id)
        if untold is not None:
            return not untold.has_failed or self._array_runs(untold.array)
        place = read_link(self._spool.folder(job_id), attempt)
        return place is not None and self._array_runs(place.array)

    def _single_runs(self, job_id: str, attempt: int) -> bool:
        written, intent = WrittenJob(self._spool, job_id, attempt), self._spool.intent(job_id, attempt)
        if intent is None:
            return self._sending.withdraw(written) is not None
        with self._spool.judging(intent, _JUDGE_SECONDS) as may_judge:
            known = self._spool.intent(job_id, attempt) if may_judge else None
            # what somebody has found in the batch system, and follows, is not taken back
            is_there = known is not None and known.native_id is not None
            return is_there or self._sending.withdraw(written) is not None

    def _array_runs(self, array: str) -> bool:
        written = WrittenArray(self._spool, array)
        if written.is_over():
            return False
        with self._spool.arrays.judging(array, 0.0) as may_judge:
            # what the batch system has taken is not withdrawn from those whose jobs are in it
            if not may_judge or self._spool.arrays.read_native_id(array) is not None:
                return True
            return self._sending.withdraw(written) is not None

    def _prepare(self, submission: Submission) -> int:
        return self._spool.prepare(submission.job_id, submission.attempt, *self._texts(submission))

    def _write_down(self, lock: int, submission: Submission) -> None:
        if self.carries(submission.spec):
            self._spool.await_files(submission.job_id, submission.attempt)
        self._spool.write_down(lock, submission.job_id, submission.attempt, *self._texts(submission))

    def _texts(self, submission: Submission) -> tuple[dict[str, Any], str]:
        """The intent, and the runner's script."""
        run = self._single_run(submission)
        intent = {
            **self._intent(submission.job_id),
            "attempt": submission.attempt,
            "directory": run.directory,
            "spec": encoded(submission),
        }
        return intent, render_runner(run)

    def _prepare_array(self, array: str, submissions: Sequence[Submission], arrays: Arrays) -> int:
        from jpsi_engine.runner import element_blocks, render_array_runner  # noqa: PLC0415  for arrays alone

        spool, layout = self._spool, self._side.layout()
        here = self._side.directory()
        folder = f"{layout.arrays}/{array}"
        runs = [
            self._run(submission, here, ElementFrame("", common=f"{folder}/run", index=index))
            for index, submission in enumerate(submissions, 1)
        ]
        specs = list(map(encoded, submissions))
        shared = common(specs)
        elements = [
            {
                "id": run.job_id,
                "attempt": run.attempt,
                "directory": run.directory,
                "spec": {name: value for name, value in spec.items() if name not in shared},
            }
            for run, spec in zip(runs, specs, strict=True)
        ]
        functions = staging.functions(runs)
        rules = self._requeue_rules()
        script = render_array_runner(array, folder, layout.jobs, layout.events, arrays, functions, rules)
        intent = {**self._intent(array), "spec": shared}
        try:
            return spool.arrays.prepare(array, intent, elements, script, element_blocks(runs))
        except FileNotFoundError:
            # Somebody removed the root, as those do who clean up.
            spool.open()
            return spool.arrays.prepare(array, intent, elements, script, element_blocks(runs))

    def _enrol(self, array: str, submissions: Sequence[Submission]) -> None:
        """Have the folders of jobs that were tried before name the array before it is sent.

        If others have submitted some of the jobs, none names it.
        """
        named, others = [], []
        for index, submission in enumerate(submissions, 1):
            if submission.attempt > 1:
                try:
                    self._spool.enrol(submission.job_id, submission.attempt, Place(array, index))
                except FileExistsError:
                    others.append(submission.job_id)
                else:
                    named.append(submission)
        if others:
            for submission in named:
                self._spool.leave(submission.job_id, submission.attempt)
            raise ContestedError(others)

    def _intent(self, name: str) -> Mapping[str, Any]:
        return {
            "id": name,
            "executor": self._setup.executor,
            "version": self._setup.version,
            "time": datetime.now(UTC).isoformat(),
            **self._side.said(),
        }

    def _run(self, submission: Submission, here: str, frame: Frame) -> Run:
        job_id, spec, layout = submission.job_id, submission.spec, self._side.layout()
        carrying = self._side.carrying
        staged = plan(spec) if carrying is None else self._far_plan(carrying, submission).runner
        return Run(
            job_id=job_id,
            attempt=submission.attempt,
            folder=f"{layout.jobs}/{job_id}",
            events=layout.events,
            directory=str(spec.directory or here),
            spec=spec,
            launch=submission.launch,
            rank_variables=submission.rank_variables,
            sources_scripts=submission.sources_scripts,
            nodes=submission.nodes,
            prologue=self._backend.config.prologue,
            frame=frame,
            plan=staged,
        )


@contextlib.contextmanager
def _given_up(written: JobAttempt, lock: int) -> Iterator[None]:
    """An attempt during which something fails before it is sent was never made."""
    try:
        yield
    except BaseException:
        os.close(lock)
        written.discard()
        raise


def encoded(submission: Submission) -> Mapping[str, Any]:
    """The spec of a job as plain values."""
    return plain_values.encode(submission.spec) if submission.plain is None else submission.plain
