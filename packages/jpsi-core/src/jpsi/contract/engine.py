"""The base class of engines, and the values that the executor passes to them."""

# ruff: noqa: ARG002  the defaults need no arguments

from __future__ import annotations

import abc
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import attrs

from jpsi.contract.config import ExecutorConfig
from jpsi.contract.job_files import Streams
from jpsi.contract.observation import NOT_OFFERED, NotOffered, Observation, Queue
from jpsi.contract.shell import ShellLine
from jpsi.contract.transport import Transport
from jpsi.model import JobSpec, JobStatus, JpsiError, StagingProgress, SubmitException

_T = TypeVar("_T")


@attrs.frozen(slots=True, kw_only=True)
class Submission:
    """A job on its way to the engine: its spec is valid and no other code changes it."""

    job_id: str
    #: The number of this attempt to submit the job, from 1.
    attempt: int
    spec: JobSpec
    #: The shell lines of the launcher; empty for a job of one process for which no launcher is installed.
    launch: Sequence[ShellLine]
    #: Patterns of the environment variables that the launcher sets in each process.
    rank_variables: Sequence[str] = ()
    #: True if the launcher's lines source pre_launch and post_launch and open the streams.
    sources_scripts: bool = False
    #: Shell that prints the node name of each process.
    nodes: Sequence[ShellLine] = ()
    #: The spec as plain values; None if they were not needed yet.
    plain: Mapping[str, Any] | None = None
    #: An earlier submission of the same request that differs in its id, attempt and arguments alone, if any.
    like: Submission | None = None


@attrs.frozen(slots=True, kw_only=True)
class Recovered:
    """A job that the engine found on disk."""

    job_id: str
    #: The number of the last attempt.
    attempt: int
    spec: JobSpec
    #: None if the job never reached the backend; it can be submitted again.
    native_id: str | None
    #: The time of its submission.
    time: datetime


@attrs.frozen(slots=True, kw_only=True)
class Preview:
    """The result that a submission would have; nothing of it is on disk, and nothing was sent."""

    #: The words of the command that would submit or start the job.
    command: Sequence[str]
    #: The text that the batch system would read; None if there is none.
    script: str | None
    #: The shell script that runs the job.
    run: str
    #: The path that this shell script would have.
    path: Path


class InterruptedSubmission(BaseException):
    """A job was submitted, but its caller was interrupted, as by Ctrl-C: raise that once it is bound."""

    def __init__(self, native_id: str, interrupt: BaseException) -> None:
        super().__init__(native_id, interrupt)
        self.native_id = native_id
        self.interrupt = interrupt


#: The outcome of a request about many jobs: by job id, the native id, or the error of a job that failed.
Outcomes = Mapping[str, str | JpsiError]


class Engine(abc.ABC):
    """The part that runs the jobs of one executor instance; the base class of all engines.

    Any thread may call its methods. Jobs are named by their jpsi ids. After `submit`, `attach` or `recover`
    the engine publishes nothing about a job until `track` is called for it. Methods that are not abstract do
    what suits an engine that does not offer more.
    """

    #: True if `submit_many` sends few requests. `problems` must then not use executable, arguments,
    #: environment and streams of a spec: it is called once for jobs which differ in nothing else.
    is_bulk: ClassVar[bool] = False
    #: True if it submits jobs again as their attribute `retry` says.
    retries: ClassVar[bool] = False

    @abc.abstractmethod
    def submit(self, submission: Submission) -> str:
        """Start one job and return its native id.

        Raises:
            SubmitException: the job was not started, and nothing of it is left.
            InterruptedSubmission: the job was started, but the caller was interrupted.
        """

    @abc.abstractmethod
    def track(self, job_id: str) -> None:
        """Publish the statuses of a job from now on, until a final one."""

    @abc.abstractmethod
    def cancel(self, job_id: str) -> None:
        """Request the end of a job; does nothing for a final one.

        Raises:
            SubmitException: the request did not reach the backend.
        """

    def offers(self) -> Mapping[str, Any]:
        """Return the facts that the probe found about the site; empty before the first probe."""
        return {}

    def problems(self, spec: JobSpec) -> list[str]:
        """Return why a valid spec cannot run on this backend as things are now; one sentence each."""
        return []

    def refused(self, spec: JobSpec) -> list[str]:
        """Return why a valid spec can never run on this backend; one sentence each.

        It must not use executable, arguments, environment and streams of a spec: it is called once for jobs
        which differ in nothing else.
        """
        return []

    def choose_queue(
        self, spec: JobSpec, queues: Callable[[], Sequence[Queue]]
    ) -> tuple[JobSpec, Sequence[str]]:
        """Return a valid spec with a queue in place of `auto`, or else the problems; `queues` returns all.

        Raises:
            SubmitException: the batch system does not answer.
        """
        return spec, ()

    def preview(self, submission: Submission) -> Preview | NotOffered:
        """Return what would be submitted; the batch system is not queried about the job's dependencies.

        Raises:
            ValueError: the batch system has no way to express what the spec asks for.
        """
        return NOT_OFFERED

    def submit_many(self, submissions: Sequence[Submission], report: Callable[[Outcomes], None]) -> None:
        """Start many jobs.

        An error of one job keeps no other from being started. `report` is called with the outcomes of some
        jobs, from any thread; once for each job. Jobs without a call, because the caller was interrupted,
        were not started, and nothing is left of them.

        Unless it is overridden, it starts one job after the other in the caller's thread, as if the caller
        called `submit` for each; what an interrupt leaves is then the matter of `submit`.
        """
        for submission in submissions:
            self.submit_and_report(submission, report)

    def submit_and_report(self, submission: Submission, report: Callable[[Outcomes], None]) -> None:
        """Start one job, and report the outcome; an interrupt of the caller is raised after that."""
        try:
            outcome: str | JpsiError = self.submit(submission)
        except JpsiError as e:
            outcome = e
        except InterruptedSubmission as e:
            report({submission.job_id: e.native_id})
            raise e.interrupt from None
        report({submission.job_id: outcome})

    def give_up(self, job_ids: Collection[str] | None) -> None:  # noqa: B027  without a quota, no job waits
        """Make submissions of these jobs that wait for the quota fail now; requests under way go on.

        None means all jobs, and later ones then do not wait either.
        """

    def track_many(self, job_ids: Sequence[str]) -> None:
        """Publish the statuses of many jobs, as `track` does."""
        for job_id in job_ids:
            self.track(job_id)

    def note_deadline(self, seconds: float) -> None:  # noqa: B027  not every engine polls
        """Note that a caller waits for so many seconds at most, and needs a recent status then."""

    def attach(self, job_id: str, native_id: str) -> str:
        """Attach `job_id` to the job with this native id, and return that id in the backend's spelling.

        The job is NEW until `track` has published the backend's report: QUEUED or a later state; or FAILED
        with the reason ATTACH_UNVERIFIED, if there is no such job or the text cannot be a native id.

        Raises:
            SubmitException: the engine does not offer it.
        """
        raise _not_offered(job_id, f"attached to {native_id}")

    def attach_many(self, native_ids: Mapping[str, str]) -> Outcomes:
        """Attach many jobs, as `attach` does; the keys are their jpsi ids."""
        return {job_id: _outcome(self.attach, job_id, it) for job_id, it in native_ids.items()}

    def recover(self) -> Sequence[Recovered]:
        """Return the jobs on disk that are not final and that this engine does not have yet."""
        return ()

    def recall(self, job_ids: Collection[str]) -> Sequence[Recovered] | NotOffered:
        """Return those of these jobs that are on disk, final or not, and that this engine does not have yet.

        Another process may have submitted them. Jobs that other processes are submitting now are left out.

        Raises:
            SubmitException: the jobs cannot be read.
        """
        return NOT_OFFERED

    def cancel_many(self, job_ids: Sequence[str], *, unmet: str = "") -> Mapping[str, JpsiError]:
        """Cancel many jobs; return the error of each whose request failed; `unmet` is for their statuses."""
        outcomes = {job_id: _outcome(self.cancel, job_id) for job_id in job_ids}
        return {job_id: it for job_id, it in outcomes.items() if isinstance(it, JpsiError)}

    def hold(self, job_id: str) -> None:
        """Keep a pending job from starting.

        Raises:
            SubmitException: the request did not reach the backend, or the backend does not offer holds.
        """
        raise _not_offered(job_id, "held")

    def release(self, job_id: str) -> None:
        """Let a held job start again; raises the errors of `hold`."""
        raise _not_offered(job_id, "released")

    def info(self, job_id: str) -> Observation | None:
        """Return the backend's current view of a job; None if the backend does not mention it.

        Raises:
            SubmitException: the backend did not answer.
        """
        return None

    def native_ids(self) -> list[str]:
        """Return the native ids of all jobs of this engine that are not final and can be attached."""
        return []

    def streams(self, job_id: str) -> Streams | None:
        """Return the paths of a job's output, or None if they are not known."""
        return None

    def record_site_policy(self) -> None:  # noqa: B027  not every engine records that
        """Record on disk how the site treats jobs, for readers of the job store, unless it is there.

        A site that does not answer is skipped.

        Raises:
            SubmitException: the answer cannot be recorded.
        """


def _outcome(call: Callable[..., _T], *arguments: object) -> _T | JpsiError:
    try:
        return call(*arguments)
    except JpsiError as e:
        return e


def _not_offered(job_id: str, what: str) -> SubmitException:
    return SubmitException(f"job {job_id} cannot be {what}: its engine does not offer that")


@attrs.frozen(slots=True, kw_only=True)
class EngineSetup:
    """The arguments of a plugin's `make_engine`."""

    #: The executor's name, which is the name of its plugin.
    executor: str
    #: The version of the distribution that the executor's plugin came from.
    version: str
    #: The name of a configured target, or a URL, which distinguishes the targets of one executor. Empty for
    #: the one on this machine.
    target: str = ""
    config: ExecutorConfig
    #: Runs the backend's commands.
    transport: Transport
    #: Called with a job id and a status for each new status; from any thread, never under a lock.
    publish: Callable[[str, JobStatus], None]
    #: Called with a job id and a native id if that id turns out to differ from the one that `submit` or
    #: `attach` returned; under the same conditions as `publish`.
    renamed: Callable[[str, str], None] = lambda *_: None
    #: Called with a job id and the progress of a file of the job that is staged from one machine to another;
    #: by the thread that transfers it.
    staged: Callable[[str, StagingProgress], None] = lambda *_: None
    #: Returns the submission of another attempt of a job, given its id, the attempt's number and the spec; it
    #: raises InvalidJobException if the job can never run like this.
    resubmission: Callable[[str, int, JobSpec], Submission] | None = None
    #: Makes the core's engine for processes of this machine, from this setup.
    process_engine: Callable[[EngineSetup], Engine]
