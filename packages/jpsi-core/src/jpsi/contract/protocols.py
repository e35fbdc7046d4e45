"""The seams of the house: what carries out the jobs of an executor, and what it is given to do so."""

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
from jpsi.contract.remote_directories import FarDirectories
from jpsi.contract.shell import ShellLine
from jpsi.model import JobSpec, JobStatus, JpsiError, StagingProgress


@attrs.frozen(slots=True, kw_only=True)
class Submission:
    """One job on its way to the engine: valid, and nobody else's to change."""

    job_id: str
    #: Counts the attempts to submit this job, from 1.
    attempt: int
    spec: JobSpec
    #: What the launcher answered; empty for a job of one process where no launcher is installed for it.
    launch: Sequence[ShellLine]
    #: Patterns of the variables that the launcher gives each process.
    rank_variables: Sequence[str] = ()
    #: Whether the launcher's lines source pre_launch and post_launch and open the streams.
    sources_scripts: bool = False
    #: What prints the name of the node of each process.
    nodes: Sequence[ShellLine] = ()
    #: The spec as plain values; None where nobody has needed them yet.
    plain: Mapping[str, Any] | None = None


@attrs.frozen(slots=True, kw_only=True)
class Recovered:
    """A job that was found on disk and is not final."""

    job_id: str
    #: The last attempt that was made.
    attempt: int
    spec: JobSpec
    #: None if the job never reached the backend; it can be submitted again.
    native_id: str | None
    #: When it was submitted.
    time: datetime


@attrs.frozen(slots=True, kw_only=True)
class Preview:
    """What a submission would come to; nothing of it is on disk, and nothing was sent."""

    #: The words of the command that would submit the job, or start it.
    command: Sequence[str]
    #: What the batch system would be given to read; None where there is none.
    script: str | None
    #: The shell script that carries the job out.
    run: str
    #: Where that would be.
    path: Path


class InterruptedSubmission(BaseException):
    """A job was submitted, and whoever submitted it was interrupted, as by Ctrl-C.

    Args:
        native_id: that of the job.
        interrupt: what is to be raised once the job is bound.
    """

    def __init__(self, native_id: str, interrupt: BaseException) -> None:
        super().__init__(native_id, interrupt)
        self.native_id = native_id
        self.interrupt = interrupt


class Engine(Protocol):
    """What carries out the jobs of one executor instance.

    Methods may be called from any thread. A job is known by its jpsi id. After `submit`, `attach` or
    `recover` nothing is published about a job until `track` is called for it.
    """

    def offers(self) -> Mapping[str, Any]:
        """What was found out about the place where jobs run; empty if nothing was asked yet."""

    def problems(self, spec: JobSpec) -> list[str]:
        """Why a valid spec cannot run here as things are now; one sentence each."""

    def submit(self, submission: Submission) -> str:
        """Start one job and return its native id.

        Raises:
            SubmitException: it was not started, and nothing of it is left.
            InterruptedSubmission: it was started.
        """

    def track(self, job_id: str) -> None:
        """Publish the statuses of a job from now on, until a final one."""

    def attach(self, job_id: str, native_id: str) -> str:
        """Let `job_id` stand for the job with this native id, which is returned as the backend spells it.

        The job is NEW until `track` has published what the backend says of it: that it is QUEUED, or further;
        or that it is FAILED with the reason ATTACH_UNVERIFIED, if there is no such job or the text cannot be
        a native id.
        """

    def recover(self) -> Sequence[Recovered]:
        """The jobs on disk that are not final and that this engine does not have yet."""

    def cancel(self, job_id: str) -> None:
        """Ask for the end of a job; does nothing for one that is final.

        Raises:
            SubmitException: the request did not reach the backend.
        """

    def hold(self, job_id: str) -> None:
        """Keep a pending job from starting.

        Raises:
            SubmitException: the request did not reach the backend, or it does not offer that.
        """

    def release(self, job_id: str) -> None:
        """Let a held job start again; raises as `hold` does."""

    def info(self, job_id: str) -> Observation | None:
        """What the backend says about a job now; None if it does not mention it.

        Raises:
            SubmitException: the backend did not answer.
        """

    def native_ids(self) -> list[str]:
        """The native ids of all jobs of this engine that are not final, and that can be attached to."""

    def streams(self, job_id: str) -> Streams | None:
        """Where the output of a job goes, or None if that is not known."""


#: What came of a request about many jobs: by job id, the native id, or why it was not done.
Outcomes = Mapping[str, str | JpsiError]


@runtime_checkable
class BulkEngine(Engine, Protocol):
    """An engine that does with one request what concerns many jobs.

    Its `problems` does not look at executable, arguments, environment and streams of a spec, so that it is
    asked once for jobs which differ in nothing else.
    """

    def submit_many(self, submissions: Sequence[Submission], told: Callable[[Outcomes], None]) -> None:
        """Start many jobs.

        What is wrong with one of them keeps no other from being started.

        Args:
            submissions: the jobs.
            told: called with what came of some of them, from any thread; of each job it is told once. Jobs
                of which it is not told, as the caller was interrupted, were not started, and nothing is left
                of them.
        """

    def track_many(self, job_ids: Sequence[str]) -> None:
        """As `track`, for many jobs."""

    def attach_many(self, native_ids: Mapping[str, str]) -> Outcomes:
        """As `attach`, for many jobs, which are named by their jpsi ids."""

    def cancel_many(self, job_ids: Sequence[str]) -> Mapping[str, JpsiError]:
        """As `cancel`, for many jobs; returns why it could not be asked for which of them."""


@runtime_checkable
class RefusingEngine(Engine, Protocol):
    """An engine that has reasons of its own why some jobs can never run."""

    def refused(self, spec: JobSpec) -> list[str]:
        """Why a valid spec can never run here; one sentence each.

        It does not look at executable, arguments, environment and streams of a spec, so that it is asked once
        for jobs which differ in nothing else.
        """


@runtime_checkable
class RecallingEngine(Engine, Protocol):
    """An engine that finds single jobs which another process submitted."""

    def recall(self, job_ids: Collection[str]) -> Sequence[Recovered]:
        """Those of these jobs that are on disk, final or not, and that this engine does not have yet.

        Jobs that other processes are submitting at this moment are left out.

        Raises:
            SubmitException: the jobs cannot be read.
        """


@runtime_checkable
class PreviewingEngine(Engine, Protocol):
    """An engine that can tell what a submission would come to."""

    def preview(self, submission: Submission) -> Preview:
        """What would be submitted; nobody is asked about jobs that this one waits for.

        Raises:
            ValueError: the batch system has no way to say what the spec asks for.
        """


@runtime_checkable
class PatientEngine(Engine, Protocol):
    """An engine whose submissions may wait until there is room for their jobs."""

    def give_up(self, job_ids: Collection[str] | None) -> None:
        """Have submissions of these jobs that wait for room fail now; what is under way goes on.

        Args:
            job_ids: the jobs; None means all, and that no later one waits either.
        """


@runtime_checkable
class InquiringEngine(Engine, Protocol):
    """An engine that keeps on disk what a site does with jobs, for whoever looks at them."""

    def find_out(self) -> None:
        """Ask the site for that, unless it is on disk; one that does not answer is left alone.

        Raises:
            SubmitException: nothing can be kept here.
        """


class Transport(Protocol):
    """How the machine is reached on which a backend's commands run. Any thread may call its methods."""

    @property
    def is_local(self) -> bool:
        """Whether commands run on the machine that this process runs on, and see its files."""

    def run(
        self, command: Command, keep: int | None = None, ready: Callable[[], None] | None = None
    ) -> CommandResult:
        """Run a command to its end, or until it has taken too long.

        Args:
            command: what to run; its `timeout` is set.
            keep: a descriptor of this process that the command, if it is a process of this machine, holds
                open until it ends, whatever becomes of this process.
            ready: called before the command is given anything to read, or before it is run. A program takes a
                while to start, in which this can be done. What it raises is raised, and the command then has
                been given nothing.

        Raises:
            TransportError: the command could not be run, or it is unknown how it ended.
        """

    def close(self) -> None:
        """Give up what the transport holds; commands that run are left to themselves."""


class Lines(Protocol):
    """What a command prints as it goes on; to be iterated over once, by one thread."""

    def __iter__(self) -> Iterator[str]:
        """The lines, without their ends, until the command has ended."""

    def close(self) -> None:
        """End the command; any thread may do that."""


@runtime_checkable
class LineTransport(Transport, Protocol):
    """A transport that also runs commands which go on for long, and are listened to meanwhile."""

    def open(self, command: Command) -> Lines:
        """Start a command; its `timeout` means nothing.

        Raises:
            TransportError: it could not be started.
        """


@runtime_checkable
class BytesTransport(Transport, Protocol):
    """A transport to a machine with files of its own: it also runs commands that read and print any bytes.

    By those files are moved there and back.
    """

    def exchange(self, command: Command, data: bytes = b"") -> BytesResult:
        """Run a command as `run` does, which reads these bytes and may print any.

        Args:
            command: what to run; its `timeout` is set, and its `stdin` means nothing.
            data: what it reads. If not all of it arrives it may be run with what did.

        Raises:
            TransportError: the command could not be run, or it is unknown how it ended.
        """


@runtime_checkable
class FileTransport(Transport, Protocol):
    """A transport to a machine with files of its own: its jobs see none of this machine's.

    What jobs need is then sent along, in shell text that `run` is given to read. Where the transport is a
    `LineTransport` as well, jobs are heard of at once; elsewhere it is asked for news every few seconds.
    """

    def directories(self) -> FarDirectories:
        """Where the user's directories are over there; asked for once, when they are needed.

        Raises:
            TransportError: they are not to be known now.
        """


def _to_nobody(*_: object) -> None:
    """Whoever made the setup does not want to know."""


@attrs.frozen(slots=True, kw_only=True)
class EngineSetup:
    """What a plugin's `make_engine` is given."""

    #: The executor's name, as its plugin is called.
    executor: str
    #: The version of the distribution that the executor's plugin came from.
    version: str
    #: Which of several places with this executor it is: the name of a configured target, or a URL. Empty for
    #: the one that is here.
    target: str = ""
    config: ExecutorConfig
    #: How the backend's commands are run.
    transport: Transport
    #: Called with a job id and a status for each piece of news; from any thread, never under a lock.
    publish: Callable[[str, JobStatus], None]
    #: Called with a job id and a native id when a job turns out to have another than `submit` or `attach`
    #: returned; as `publish` is.
    renamed: Callable[[str, str], None] = _to_nobody
    #: Called with a job id and how far a file of the job is that is staged from one machine to the other; by
    #: the thread that moves it.
    staged: Callable[[str, StagingProgress], None] = _to_nobody
    #: Makes the core's engine for processes of this machine, from this setup.
    process_engine: Callable[[EngineSetup], Engine]
