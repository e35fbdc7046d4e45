"""Deferred submissions: jobs that are on disk, and that a process submits once other jobs have ended.

Some systems cannot have a job wait for the end of another one: `local`, and any batch system for a job of
another. Nor can `local` start the elements of an array a few at a time. Such a job is written to the spool in
the form of a job whose submission has failed. So every program lists it, none takes it for submitted, and
`recall` and `submit` submit it once. A file beside it names the deferral that it belongs to. If its
submission fails and may succeed later, it stays deferred. The process that waits for the other jobs holds the
lock on the file of the deferral; if it is killed, another process can take its place.

Only the process that has the lock decides whether a job is submitted. Other processes leave a request to
cancel or to hold a job beside it, announce that beside the file of the deferral, and wait until that process
has seen the request.
"""

from __future__ import annotations

import abc
import contextlib
import errno
import json
import os
import platform
import subprocess
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from jpsi import Evidence, JobState, JobStatus, Reason
from jpsi.plugin import Dependency, JobSpec, JpsiError, SubmitException, line
from jpsi.plugin.engine import one_line, serialization
from jpsi_engine import host
from jpsi_engine.spool import (
    DAMAGE,
    DEFERRED_FILE,
    GIVEN_UP_FILE,
    RETRY_KEY,
    SHARED,
    Spool,
    encode_status,
    share_dependencies,
    store_dependencies,
)
from jpsi_engine.verdict import CANCEL, Stop, never_ran_status

# Listing jobs takes no executor, so its modules are imported only where they are needed.
if TYPE_CHECKING:
    from jpsi import Job, JobExecutor
    from jpsi.plugin.engine import Preview

# The attempt that is recorded; each attempt to submit the job is a further one.
_ATTEMPT = 1
# The seconds for which a request waits for the process that may be submitting the job. On a network file
# system, that process sees the request up to a minute late.
_PATIENCE_SECONDS = 90.0
_POLL_SECONDS = 0.05
# Longer than a process that does not wait for other jobs has the lock.
_LOCK_SECONDS = 0.1
# Who cancels or holds many jobs takes the lock for so many seconds at a time, and leaves it for so many.
_TURN_SECONDS = 0.04
_GAP_SECONDS = 0.02
# The names of files in the folder of a job: another process asks that it be held; it is held.
_HOLD, _HELD = "hold", "held"


@attrs.frozen(slots=True)
class Deferral:
    """The deferred submission of jobs that were submitted together."""

    root: Path
    name: str
    #: The machine whose processes the jobs are to be; None for jobs of a batch system.
    machine: str | None = None

    @property
    def process(self) -> str:
        """The process that waits, or waited last: `process 4711 on login1`."""
        content = None
        with contextlib.suppress(OSError):
            content = host.read_json(f"{self._path}.process")
        return "a process" if content is None else str(content.get("process"))

    @property
    def log(self) -> Path:
        """The file to which the process that waits writes its errors."""
        return Path(f"{self._path}.log")

    @property
    def _spool(self) -> Spool:
        return Spool(self.root)

    @property
    def _path(self) -> str:
        return _path(self.root, self.name)

    @property
    def is_attended(self) -> bool:
        """True if a process waits for the other jobs, and submits the jobs then."""
        return host.is_locked(self._path)

    def start(
        self,
        command: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> subprocess.Popen[bytes] | None:
        """Start a process that waits and submits the jobs, and return it; None if there is one already.

        It runs in the directory of the program that deferred the jobs, and gets a copy of the lock, which it
        holds until it ends; the last argument is the number of its file descriptor.

        Raises:
            OSError: it cannot be started.
            SubmitException: it would have to run on another machine, or in a directory that does not exist.
        """
        directory = self._read_directory()
        lock = host.open_private(self._path, os.O_RDWR)
        try:
            if not host.take_lock(lock, _LOCK_SECONDS, clock, sleep):
                return None
            if self.machine not in {None, platform.node()}:
                msg = f"only {self.machine}, whose processes they are to be, can submit the deferred jobs"
                raise SubmitException(msg)
            if not directory.is_dir():
                why = f"there is no directory {str(directory)!r} any more, in which jpsi submits the deferred"
                raise SubmitException(f"{why} jobs; make it again: {line('mkdir', '-p', str(directory))}")
            log = host.open_private(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                process = subprocess.Popen(  # noqa: S603  no shell
                    [*command, str(lock)],
                    cwd=directory,
                    env=host.child_environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=[lock],
                )
            finally:
                os.close(log)
            content = {"process": f"process {process.pid} on {platform.node()}"}
            # the process runs, whether or not its name can be written
            with contextlib.suppress(OSError):
                host.write(f"{self._path}.process", json.dumps(content).encode("ascii"))
        finally:
            os.close(lock)
        return process

    @property
    def missing_directory(self) -> Path | None:
        """The directory in which a process of this machine is to wait, if it does not exist; else None."""
        if self.machine not in {None, platform.node()}:
            return None
        with contextlib.suppress(OSError):
            directory = self._read_directory()
            return None if directory.is_dir() else directory
        return None

    def _read_directory(self) -> Path:
        try:
            return Path(json.loads(host.read_text(self._path))["directory"])
        except DAMAGE as e:
            raise OSError(errno.EINVAL, "it is damaged", self._path) from e

    @property
    def last_request(self) -> str:
        """A text that differs after each request to cancel, hold or release jobs."""
        with contextlib.suppress(OSError, ValueError):
            return host.read_text(f"{self._path}.request")
        return ""

    def announce(self) -> None:
        """Have the process that may be submitting the jobs look for requests."""
        # without it, that process sees them later
        with contextlib.suppress(OSError):
            host.write(f"{self._path}.request", str(uuid.uuid4()).encode("ascii"))

    def is_held(self, job_id: str) -> bool:
        """Return True if a job is not submitted before it is released."""
        return host.exists(_file(self._spool, job_id, _HELD))

    def release(self, job_ids: Iterable[str]) -> None:
        """Let held jobs be submitted; the caller then starts a process that does.

        Raises:
            SubmitException: that cannot be recorded.
        """
        with _convert_errors(self.root):
            for job_id in job_ids:
                for name in (_HOLD, _HELD):
                    _remove(_file(self._spool, job_id, name))
        self.announce()

    def was_cancelled(self, job_id: str) -> bool:
        """Return True if a process has requested the end of a job, whether or not it is deferred any more."""
        with _convert_errors(self.root):
            return self._spool.was_stopped(job_id)

    def has_request(self, job_ids: Iterable[str]) -> bool:
        """Return True if a process has requested that any of these jobs end, or be held."""
        with _convert_errors(self.root):
            return any(
                self._spool.was_stopped(it) or host.exists(_file(self._spool, it, _HOLD)) for it in job_ids
            )

    def acknowledge(self, job_ids: Iterable[str]) -> list[str]:
        """Record that jobs were cancelled or held, as requested; return those that are to be submitted now.

        Only a process that has the lock calls this. It submits no job that this method has left out since.

        Raises:
            SubmitException: the jobs cannot be read or changed.
        """
        pending = []
        with _convert_errors(self.root):
            for job_id in job_ids:
                attempt = self._spool.deferred_attempt(job_id)
                if attempt is None:
                    continue
                if self._spool.was_stopped(job_id):
                    self._finish(job_id, never_ran_status())
                elif not self._accept_hold(job_id, attempt):
                    pending.append(job_id)
        return pending

    def _accept_hold(self, job_id: str, attempt: int) -> bool:
        """Hold a job if that was requested; return True if it is held."""
        if host.exists(_file(self._spool, job_id, _HOLD)):
            # an attempt whose submission was cut short is not recovered, and so submitted, by other programs
            self._spool.give_up(job_id, attempt, "")
            # the request may be withdrawn meanwhile
            with contextlib.suppress(FileNotFoundError):
                os.rename(_file(self._spool, job_id, _HOLD), _file(self._spool, job_id, _HELD))  # noqa: PTH104
        return self.is_held(job_id)

    def end(self, job_ids: Iterable[str], why: str) -> None:
        """Record that jobs can never start, as a job that they wait for did not end as required.

        Raises:
            SubmitException: that cannot be recorded.
        """
        status = JobStatus(
            JobState.CANCELED,
            time=datetime.now(UTC),
            message=why,
            reason=Reason.DEPENDENCY,
            evidence=Evidence.ABSENCE,
        )
        with _convert_errors(self.root):
            for job_id in job_ids:
                self._finish(job_id, status)

    def _finish(self, job_id: str, status: JobStatus) -> None:
        attempt = self._spool.deferred_attempt(job_id)
        if attempt is not None:
            self._spool.stop(job_id, attempt, Stop(CANCEL, status.time))
            self._spool.finish(job_id, attempt, encode_status(status))

    def give_up(self, job_id: str, why: str) -> None:
        """Record that the submission of a job has failed, and is not deferred any more.

        Raises:
            SubmitException: that cannot be recorded.
        """
        with _convert_errors(self.root):
            attempt = self._spool.deferred_attempt(job_id)
            if attempt is not None:
                reason = json.dumps(one_line(why)).encode("ascii")
                host.write(_file(self._spool, job_id, f"unsent.{attempt}"), reason)
                with contextlib.suppress(FileNotFoundError):
                    os.rename(  # noqa: PTH104  text, as in the spool
                        _file(self._spool, job_id, DEFERRED_FILE), _file(self._spool, job_id, GIVEN_UP_FILE)
                    )


def _convert_errors(root: Path) -> contextlib.AbstractContextManager[None]:
    return host.convert_os_errors("the deferred jobs cannot be read or changed", str(root))


def _file(spool: Spool, job_id: str, name: str) -> str:
    return f"{spool.folder(job_id)}/{name}"


@attrs.frozen(slots=True)
class ControlledJobs:
    """Deferred jobs after a request to cancel or hold them; those in neither field were submitted before."""

    #: The ids of those that were cancelled or held.
    done: Collection[str]
    #: The errors of those whose files cannot be changed, or whose process does not react, by job id.
    failures: Mapping[str, JpsiError]


def cancel_deferred(
    jobs: Mapping[str, Deferral],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> ControlledJobs:
    """Have jobs never be submitted, given their deferrals by job id."""
    return _Cancellations(jobs).make(clock, sleep)


def hold_deferred(
    jobs: Mapping[str, Deferral],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> ControlledJobs:
    """Keep jobs from being submitted until they are released, given their deferrals by job id."""
    holds = _Holds(jobs)
    try:
        return holds.make(clock, sleep)
    finally:
        holds.withdraw()


@attrs.frozen(slots=True)
class _Requests(abc.ABC):
    """Requests about deferred jobs: all of them are written before the first answer is awaited."""

    _jobs: Mapping[str, Deferral]
    _done: set[str] = attrs.field(factory=set, init=False)
    _failures: dict[str, JpsiError] = attrs.field(factory=dict, init=False)
    #: The attempts for which requests were written, by job id.
    _attempts: dict[str, int] = attrs.field(factory=dict, init=False)

    @abc.abstractmethod
    def _write(self, spool: Spool, job_id: str, attempt: int) -> None:
        """Write the request about a job, given its last attempt."""

    @abc.abstractmethod
    def _is_written(self, spool: Spool, job_id: str) -> bool:
        """Return True unless another process has withdrawn the request about a job."""

    @abc.abstractmethod
    def _is_met(self, spool: Spool, job_id: str) -> bool:
        """Return True once the request about a job is met."""

    def make(self, clock: Callable[[], float], sleep: Callable[[float], None]) -> ControlledJobs:
        """Write the requests, and wait until each is met, or its job was submitted instead."""
        deadline = clock() + _PATIENCE_SECONDS
        left: dict[Deferral, list[str]] = {}
        for job_id, deferral in self._jobs.items():
            left.setdefault(deferral, []).append(job_id)
        count = len(self._jobs)
        while left := {it: ids for it, job_ids in left.items() if (ids := self._look(it, job_ids))}:
            # a process that works through many of them reacts
            if (now_left := sum(map(len, left.values()))) < count:
                count, deadline = now_left, clock() + _PATIENCE_SECONDS
            if clock() > deadline:
                for deferral, job_ids in left.items():
                    error = SubmitException(f"{deferral.process}, which submits it, does not react")
                    self._failures.update(dict.fromkeys(job_ids, error))
                break
            sleep(_POLL_SECONDS)
        return ControlledJobs(self._done, self._failures)

    def _look(self, deferral: Deferral, job_ids: Iterable[str]) -> list[str]:
        """Return the jobs of a deferral that have no answer yet; each has a request."""
        before = dict(self._attempts)
        left = [it for it in job_ids if self._is_open(deferral, it)]
        if self._attempts != before:
            deferral.announce()
        path = _path(deferral.root, deferral.name)
        # who finds the lock taken for long leaves the jobs to the one that has it
        begun = time.monotonic()
        for job_id in left:
            if time.monotonic() - begun > _TURN_SECONDS:
                time.sleep(_GAP_SECONDS)
                begun = time.monotonic()
            with self._fence(deferral, [job_id]), host.hold_lock(path, 0.0) as is_locked:
                if is_locked is False:
                    # a process submits them
                    break
                deferral.acknowledge([job_id])
        left = [it for it in left if it not in self._failures and self._is_open(deferral, it)]
        return [it for it in left if it not in self._failures]

    def _is_open(self, deferral: Deferral, job_id: str) -> bool:
        """Return True if a job has no answer yet; its request is written then."""
        spool = Spool(deferral.root)
        with self._fence(deferral, [job_id]):
            attempt = spool.deferred_attempt(job_id)
            if self._is_met(spool, job_id):
                self._done.add(job_id)
            elif attempt is not None:
                # a submission that fails meanwhile leaves a further attempt, of a job that is deferred again
                if self._attempts.get(job_id) != attempt or not self._is_written(spool, job_id):
                    self._write(spool, job_id, attempt)
                    self._attempts[job_id] = attempt
                return True
        return False

    @contextlib.contextmanager
    def _fence(self, deferral: Deferral, job_ids: Iterable[str]) -> Iterator[None]:
        """Record an error of some jobs, so that the others have their requests all the same."""
        try:
            with _convert_errors(deferral.root):
                yield
        except SubmitException as e:
            self._failures.update(dict.fromkeys(job_ids, e))


@attrs.frozen(slots=True)
class _Cancellations(_Requests):
    """Requests that jobs never be submitted."""

    def _write(self, spool: Spool, job_id: str, attempt: int) -> None:
        spool.stop(job_id, attempt, Stop(CANCEL, datetime.now(UTC)))

    def _is_written(self, spool: Spool, job_id: str) -> bool:
        return spool.was_stopped(job_id)

    def _is_met(self, spool: Spool, job_id: str) -> bool:
        content = spool.read_final(job_id, spool.last_attempt(job_id))
        return content is not None and not content.get(RETRY_KEY)


@attrs.frozen(slots=True)
class _Holds(_Requests):
    """Requests that jobs be submitted only once they are released."""

    def _write(self, spool: Spool, job_id: str, _: int) -> None:
        host.write(_file(spool, job_id, _HOLD), b"")

    def _is_written(self, spool: Spool, job_id: str) -> bool:
        return host.exists(_file(spool, job_id, _HOLD))

    def _is_met(self, spool: Spool, job_id: str) -> bool:
        return host.exists(_file(spool, job_id, _HELD))

    def withdraw(self) -> None:
        """Remove the requests that were not met, but not what another process has held meanwhile."""
        for job_id in self._attempts.keys() - self._done:
            deferral = self._jobs[job_id]
            with self._fence(deferral, [job_id]):
                _remove(_file(Spool(deferral.root), job_id, _HOLD))


def read_deferral(root: Path, job_id: str, machine: str | None) -> Deferral | None:
    """Return the deferral that a job of a machine or a batch system belongs to; None if there is none."""
    try:
        # it becomes part of a path
        return Deferral(root, str(uuid.UUID(Spool(root).read_deferral_name(job_id))), machine)
    except (OSError, *DAMAGE):
        return None


def _remove(path: str) -> None:
    """Remove a file that may be gone already."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108  text, as in the spool


def defer(
    executor: JobExecutor, jobs: Collection[Job], after: Sequence[Dependency] = (), *, is_held: bool = False
) -> Deferral:
    """Record jobs whose submission waits for other jobs, or until they are released; nothing is sent.

    The caller then starts a process that waits, unless the jobs are held.

    Args:
        executor: the executor to which the jobs are to be submitted.
        jobs: NEW jobs; their specs name only dependencies that its batch system can have.
        after: what they wait for besides, by the ids that jpsi gave the jobs.
        is_held: True if they are not submitted before they are released.

    Raises:
        InvalidJobException: a job can never run there as it is; nothing was written.
        SubmitException: the jobs cannot be recorded here; none of them is.
        ValueError: there are no jobs.
    """
    if not jobs:
        raise ValueError("there are no jobs to defer")
    if executor.system.is_remote:
        instead = (
            "leave out --hold"
            if is_held
            else "wait for the other jobs first: jpsi wait JOB && jpsi submit ..."
        )
        msg = f"{executor.name} is on a remote host, where jpsi cannot submit jobs later; {instead}"
        raise SubmitException(msg)
    previews = [(job.id, *_preview(executor, job)) for job in jobs]
    root = previews[0][2].path.parents[2]
    spool, here = Spool(root), Path.cwd()
    deferral = Deferral(root, str(uuid.uuid4()))
    shared = f"{_path(root, deferral.name)}.{SHARED}"
    with host.convert_os_errors("the jobs could not be recorded"), contextlib.ExitStack() as undo:
        spool.open()
        host.make_directories(os.path.dirname(_path(root, "")))  # noqa: PTH120  text, as in the spool
        undo.callback(host.forget, _path(root, deferral.name))
        # written once, as a new file would not have the lock that a process holds on this one
        host.write(_path(root, deferral.name), json.dumps({"directory": str(here)}).encode("ascii"))
        if after:
            undo.callback(host.forget, shared)
            store_dependencies(shared, after)
        for job_id, given, preview in previews:
            spec = attrs.evolve(given, directory=given.directory or here)
            intent = {
                "id": job_id,
                "attempt": _ATTEMPT,
                "executor": executor.name,
                "version": str(executor.version),
                "time": datetime.now(UTC).isoformat(),
                "boot": host.boot_id(),
                "directory": str(spec.directory),
                "spec": serialization.encode(spec),
                SHARED: bool(after),
            }
            lock = spool.reserve(job_id, _ATTEMPT)
            undo.callback(spool.discard, job_id, _ATTEMPT)
            try:
                # the request last: if this process is killed before, no program takes it for one to submit
                spool.give_up(job_id, _ATTEMPT, "")
                if is_held:
                    host.write(f"{spool.folder(job_id)}/{_HELD}", b"")
                if after:
                    share_dependencies(shared, spool.folder(job_id))
                host.write(f"{spool.folder(job_id)}/{DEFERRED_FILE}", deferral.name.encode("ascii"))
                spool.write_attempt(lock, job_id, _ATTEMPT, intent, preview.run)
                spool.revoke(job_id, _ATTEMPT)
                spool.sync(lock)
            finally:
                os.close(lock)
        undo.pop_all()
    return deferral


def _preview(executor: JobExecutor, job: Job) -> tuple[JobSpec, Preview]:
    """Return the spec of a job, and what would be submitted now."""
    spec = job.spec or JobSpec()
    # the jobs that it waits for may make the files that it stages in
    job.spec = attrs.evolve(spec, stage_in=None)
    try:
        return spec, executor.preview(job)
    finally:
        job.spec = spec


def _path(root: Path, name: str) -> str:
    return f"{root}/deferred/{name}"
