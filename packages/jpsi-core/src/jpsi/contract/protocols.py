"""The protocols of engines and transports, and the values that the executor passes to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import attrs

from jpsi.contract.command import BytesResult, Command, CommandResult
from jpsi.contract.config import ExecutorConfig
from jpsi.contract.job_files import Streams
from jpsi.contract.observation import Observation
from jpsi.contract.remote_directories import RemoteDirectories
from jpsi.contract.shell import ShellLine
from jpsi.model import JobSpec, JobStatus, JpsiError, StagingProgress


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
    """A job was submitted, but its caller was interrupted, as by Ctrl-C.

    Args:
        native_id: the native id of the job.
        interrupt: the exception to raise once the job is bound.
    """

    def __init__(self, native_id: str, interrupt: BaseException) -> None:
        super().__init__(native_id, interrupt)
        self.native_id = native_id
        self.interrupt = interrupt


class Engine(Protocol):
    """The part that runs the jobs of one executor instance.

    Any thread may call its methods. Jobs are named by their jpsi ids. After `submit`, `attach` or `recover`
    the engine publishes nothing about a job until `track` is called for it.
    """

    def offers(self) -> Mapping[str, Any]:
        """Return the facts that the probe found about the site; empty before the first probe."""

    def problems(self, spec: JobSpec) -> list[str]:
        """Return why a valid spec cannot run on this backend as things are now; one sentence each."""

    def submit(self, submission: Submission) -> str:
        """Start one job and return its native id.

        Raises:
            SubmitException: the job was not started, and nothing of it is left.
            InterruptedSubmission: the job was started, but the caller was interrupted.
        """

    def track(self, job_id: str) -> None:
        """Publish the statuses of a job from now on, until a final one."""

    def attach(self, job_id: str, native_id: str) -> str:
        """Attach `job_id` to the job with this native id, and return that id in the backend's spelling.

        The job is NEW until `track` has published the backend's report: QUEUED or a later state; or FAILED
        with the reason ATTACH_UNVERIFIED, if there is no such job or the text cannot be a native id.
        """

    def recover(self) -> Sequence[Recovered]:
        """Return the jobs on disk that are not final and that this engine does not have yet."""

    def cancel(self, job_id: str) -> None:
        """Request the end of a job; does nothing for a final one.

        Raises:
            SubmitException: the request did not reach the backend.
        """

    def hold(self, job_id: str) -> None:
        """Keep a pending job from starting.

        Raises:
            SubmitException: the request did not reach the backend, or the backend does not offer holds.
        """

    def release(self, job_id: str) -> None:
        """Let a held job start again; raises the errors of `hold`."""

    def info(self, job_id: str) -> Observation | None:
        """Return the backend's current view of a job; None if the backend does not mention it.

        Raises:
            SubmitException: the backend did not answer.
        """

    def native_ids(self) -> list[str]:
        """Return the native ids of all jobs of this engine that are not final and can be attached."""

    def streams(self, job_id: str) -> Streams | None:
        """Return the paths of a job's output, or None if they are not known."""


#: The outcome of a request about many jobs: by job id, the native id, or the error of a job that failed.
Outcomes = Mapping[str, str | JpsiError]


@runtime_checkable
class BulkEngine(Engine, Protocol):
    """An engine that handles many jobs with one request.

    Its `problems` must not use executable, arguments, environment and streams of a spec: it is called once
    for jobs which differ in nothing else.
    """

    def submit_many(self, submissions: Sequence[Submission], told: Callable[[Outcomes], None]) -> None:
        """Start many jobs.

        An error of one job keeps no other from being started.

        Args:
            submissions: the jobs.
            told: called with the outcomes of some jobs, from any thread; once for each job. Jobs without a
                call, because the caller was interrupted, were not started, and nothing is left of them.
        """

    def track_many(self, job_ids: Sequence[str]) -> None:
        """Publish the statuses of many jobs, as `track` does."""

    def attach_many(self, native_ids: Mapping[str, str]) -> Outcomes:
        """Attach many jobs, as `attach` does; the keys are their jpsi ids."""

    def cancel_many(self, job_ids: Sequence[str]) -> Mapping[str, JpsiError]:
        """Cancel many jobs, as `cancel` does; return the error of each whose request failed."""


@runtime_checkable
class RefusingEngine(Engine, Protocol):
    """An engine with reasons of its own why some jobs can never run."""

    def refused(self, spec: JobSpec) -> list[str]:
        """Return why a valid spec can never run on this backend; one sentence each.

        It must not use executable, arguments, environment and streams of a spec: it is called once for jobs
        which differ in nothing else.
        """


@runtime_checkable
class RecallingEngine(Engine, Protocol):
    """An engine that finds jobs by id which another process submitted."""

    def recall(self, job_ids: Collection[str]) -> Sequence[Recovered]:
        """Return those of these jobs that are on disk, final or not, and that this engine does not have yet.

        Jobs that other processes are submitting at this moment are left out.

        Raises:
            SubmitException: the jobs cannot be read.
        """


@runtime_checkable
class PreviewingEngine(Engine, Protocol):
    """An engine that can show what a submission would send."""

    def preview(self, submission: Submission) -> Preview:
        """Return what would be submitted; the batch system is not asked about the job's dependencies.

        Raises:
            ValueError: the batch system has no way to express what the spec asks for.
        """


@runtime_checkable
class PatientEngine(Engine, Protocol):
    """An engine whose submissions may wait for a quota."""

    def give_up(self, job_ids: Collection[str] | None) -> None:
        """Make submissions of these jobs that wait for the quota fail now; requests under way go on.

        Args:
            job_ids: the jobs; None means all jobs, and later ones then do not wait either.
        """


@runtime_checkable
class InquiringEngine(Engine, Protocol):
    """An engine that records on disk how a site treats jobs, for readers of the job store."""

    def find_out(self) -> None:
        """Ask the site for that, unless it is on disk; a site that does not answer is skipped.

        Raises:
            SubmitException: the answer cannot be recorded.
        """


class Transport(Protocol):
    """The connection to the machine on which a backend's commands run. Any thread may call its methods."""

    @property
    def is_local(self) -> bool:
        """True if commands run on the machine of this process and see its files."""

    def run(
        self, command: Command, keep: int | None = None, ready: Callable[[], None] | None = None
    ) -> CommandResult:
        """Run a command until it ends or its timeout expires.

        Args:
            command: the command; its `timeout` is set.
            keep: a file descriptor of this process that the command, if it is a process of this machine,
                keeps open until it ends, even if this process ends first.
            ready: called before the command receives any input, or before it is run: work that can be done
                while the program starts. An exception of it is raised, and the command then has received no
                input.

        Raises:
            TransportError: the command could not be run, or it is unknown how it ended.
        """

    def close(self) -> None:
        """Release the resources of the transport; running commands are left alone."""


class Lines(Protocol):
    """The output lines of a running command; one thread iterates over them, once."""

    def __iter__(self) -> Iterator[str]:
        """Yield the lines, without their line ends, until the command has ended."""

    def close(self) -> None:
        """End the command; any thread may call this."""


@runtime_checkable
class LineTransport(Transport, Protocol):
    """A transport that also runs long-lived commands and delivers their output line by line."""

    def open(self, command: Command) -> Lines:
        """Start a command; its `timeout` is ignored.

        Raises:
            TransportError: the command could not be started.
        """


@runtime_checkable
class BytesTransport(Transport, Protocol):
    """A transport to a machine with files of its own that can also run commands on binary data.

    Files are transferred in both directions by these commands.
    """

    def exchange(self, command: Command, data: bytes = b"") -> BytesResult:
        """Run a command as `run` does, with these bytes as its input; its output may be any bytes.

        Args:
            command: the command; its `timeout` is set, and its `stdin` is ignored.
            data: the input. If the connection breaks, the command may run with a part of it.

        Raises:
            TransportError: the command could not be run, or it is unknown how it ended.
        """


@runtime_checkable
class FileTransport(Transport, Protocol):
    """A transport to a remote host with its own files: its jobs see no files of this machine.

    The files that jobs need are then sent along, in shell text that `run` passes as input. If the transport
    is a `LineTransport` as well, it reports changes of jobs at once; otherwise the engine polls it every few
    seconds.
    """

    def directories(self) -> RemoteDirectories:
        """Return the user's directories on the remote host; called once, when they are needed.

        Raises:
            TransportError: they cannot be determined now.
        """


def _to_nobody(*_: object) -> None:
    """Ignore the report; the default for callbacks that a setup leaves out."""


@attrs.frozen(slots=True, kw_only=True)
class EngineSetup:
    """The arguments of a plugin's `make_engine`."""

    #: The executor's name, which is the name of its plugin.
    executor: str
    #: The version of the distribution that the executor's plugin came from.
    version: str
    #: The name of a configured target, or a URL, which tells apart several targets of one executor. Empty for
    #: the one on this machine.
    target: str = ""
    config: ExecutorConfig
    #: Runs the backend's commands.
    transport: Transport
    #: Called with a job id and a status for each new status; from any thread, never under a lock.
    publish: Callable[[str, JobStatus], None]
    #: Called with a job id and a native id if that id turns out to differ from the one that `submit` or
    #: `attach` returned; under the same conditions as `publish`.
    renamed: Callable[[str, str], None] = _to_nobody
    #: Called with a job id and the progress of a file of the job that is staged from one machine to another;
    #: by the thread that transfers it.
    staged: Callable[[str, StagingProgress], None] = _to_nobody
    #: Makes the core's engine for processes of this machine, from this setup.
    process_engine: Callable[[EngineSetup], Engine]
