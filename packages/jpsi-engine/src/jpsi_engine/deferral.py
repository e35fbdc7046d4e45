"""Deferred submissions: jobs that are on disk, and that a process submits once other jobs have ended.

Some systems cannot have a job wait for the end of another one: `local`, and any batch system for a job of
another. Such a job is written to the spool in the form of a job whose submission has failed. So every program
lists it, none takes it for submitted, and `recall` and `submit` submit it once. A file beside it names the
deferral that it belongs to. If its submission fails and may succeed later, it stays deferred. The process
that waits for the other jobs holds the lock on the file of the deferral; if it is killed, another process can
take its place.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import subprocess
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from jpsi import Evidence, JobState, JobStatus, Reason
from jpsi.plugin import Dependency, JobSpec, SubmitException
from jpsi.plugin.engine import one_line, serialization
from jpsi_engine import host
from jpsi_engine.spool import DAMAGE, DEFERRED_FILE, Spool, encode_status
from jpsi_engine.verdict import CANCEL, Stop, never_ran_status

# Listing jobs takes no executor, so its modules are imported only where they are needed.
if TYPE_CHECKING:
    from jpsi import Job, JobExecutor
    from jpsi.plugin.engine import Preview

# The attempt that is recorded; each attempt to submit the job is a further one.
_ATTEMPT = 1
# The seconds for which a cancel waits for the process that may be submitting the job.
_PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.05
# Longer than a process that does not wait for other jobs has the lock.
_LOCK_SECONDS = 0.1


@attrs.frozen(slots=True)
class Deferral:
    """The deferred submission of jobs that were submitted together."""

    _root: Path
    name: str

    @property
    def process(self) -> str:
        """The process that waits, or waited last: `process 4711 on login1`."""
        content = None
        with contextlib.suppress(OSError):
            content = host.read_json(f"{self._path}.process")
        return "a process" if content is None else str(content.get("process"))

    @property
    def _spool(self) -> Spool:
        return Spool(self._root)

    @property
    def _path(self) -> str:
        return _path(self._root, self.name)

    @property
    def is_attended(self) -> bool:
        """True if a process waits for the other jobs, and submits the jobs then."""
        return host.is_locked(self._path)

    def start(
        self,
        command: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Deferral:
        """Start a process that waits and submits the jobs, unless there is one; return this deferral.

        It runs in the directory of the program that deferred the jobs, and gets a copy of the lock, which it
        holds until it ends; the last argument is the number of its file descriptor.

        Raises:
            OSError: it cannot be started.
        """
        try:
            directory = Path(json.loads(host.read_text(self._path))["directory"])
        except DAMAGE as e:
            raise OSError(errno.EINVAL, "it is damaged", self._path) from e
        lock = host.open_private(self._path, os.O_RDWR)
        try:
            if not host.take_lock(lock, _LOCK_SECONDS, clock, sleep):
                return self
            log = host.open_private(f"{self._path}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                process = subprocess.Popen(  # noqa: S603  no shell
                    [*command, str(lock)],
                    cwd=directory,
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
        return self

    def cancel(self, job_id: str) -> bool:
        """Have a job never be submitted; return False if it was submitted already.

        Raises:
            SubmitException: the process that may be submitting it does not react.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        # a submission that fails meanwhile leaves a further attempt, of a job that is deferred again
        while (attempt := self._spool.deferred_attempt(job_id)) is not None:
            self._spool.stop(job_id, attempt, Stop(CANCEL, datetime.now(UTC)).content)
            with host.hold_lock(self._path, 0.0) as is_held:
                # no process submits it now
                if is_held is not False:
                    self.acknowledge([job_id])
            if self._has_ended(job_id):
                break
            if time.monotonic() > deadline:
                msg = f"{self.process}, which submits it, does not react"
                raise SubmitException(msg)
            time.sleep(_POLL_SECONDS)
        return self._has_ended(job_id)

    def _has_ended(self, job_id: str) -> bool:
        return self._spool.read_final(job_id, self._spool.last_attempt(job_id)) is not None

    def is_held(self, job_id: str) -> bool:
        """Return True if a job is not submitted before it is released."""
        return host.exists(self._held_path(job_id))

    def hold(self, job_id: str) -> None:
        """Keep a job from being submitted until it is released.

        Raises:
            SubmitException: it is not deferred any more.
        """
        host.write(self._held_path(job_id), b"")
        if self._spool.deferred_attempt(job_id) is None:
            self.release(job_id)
            msg = f"job {job_id} cannot be held any more: it was submitted meanwhile, or has ended"
            raise SubmitException(msg)

    def release(self, job_id: str) -> None:
        """Let a held job be submitted; the caller then starts a process that does."""
        host.forget(self._held_path(job_id))

    def _held_path(self, job_id: str) -> str:
        return f"{self._spool.folder(job_id)}/held"

    def acknowledge(self, job_ids: Iterable[str]) -> list[str]:
        """Record the end of those jobs that were cancelled; return those that are to be submitted now.

        The process that waits calls this.
        """
        deferred_ids = [it for it in job_ids if self._spool.deferred_attempt(it) is not None]
        stopped_ids = {it for it in deferred_ids if self._spool.was_stopped(it)}
        for job_id in stopped_ids:
            self._finish(job_id, never_ran_status())
        return [it for it in deferred_ids if it not in stopped_ids and not self.is_held(it)]

    def end(self, job_ids: Iterable[str], why: str) -> None:
        """Record that jobs can never start, as a job that they wait for did not end as required."""
        status = JobStatus(
            JobState.CANCELED,
            time=datetime.now(UTC),
            message=why,
            reason=Reason.DEPENDENCY,
            evidence=Evidence.ABSENCE,
        )
        for job_id in job_ids:
            self._finish(job_id, status)

    def _finish(self, job_id: str, status: JobStatus) -> None:
        attempt = self._spool.deferred_attempt(job_id)
        if attempt is not None:
            self._spool.stop(job_id, attempt, Stop(CANCEL, status.time).content)
            self._spool.finish(job_id, attempt, encode_status(status))

    def give_up(self, job_id: str, why: str) -> None:
        """Record that the submission of a job has failed, and is not deferred any more."""
        folder, attempt = self._spool.folder(job_id), self._spool.deferred_attempt(job_id)
        if attempt is not None:
            host.write(f"{folder}/unsent.{attempt}", json.dumps(one_line(why)).encode("ascii"))
            host.forget(f"{folder}/{DEFERRED_FILE}")


def read_deferral(root: Path, job_id: str) -> Deferral | None:
    """Return the deferral of a job that was not submitted; None if its submission is not deferred."""
    try:
        # it becomes part of a path
        return Deferral(root, str(uuid.UUID(Spool(root).read_deferral_name(job_id))))
    except (OSError, *DAMAGE):
        return None


def defer(
    executor: JobExecutor,
    jobs: Collection[Job],
    after: Sequence[Dependency] = (),
    *,
    is_held: bool = False,
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
        msg = "there are no jobs to defer"
        raise ValueError(msg)
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
    with host.convert_os_errors("the jobs could not be recorded"), contextlib.ExitStack() as undo:
        spool.open()
        host.make_directories(os.path.dirname(_path(root, "")))  # noqa: PTH120  text, as in the spool
        undo.callback(host.forget, _path(root, deferral.name))
        # written once, as a new file would not have the lock that a process holds on this one
        host.write(_path(root, deferral.name), json.dumps({"directory": str(here)}).encode("ascii"))
        for job_id, given, preview in previews:
            spec = attrs.evolve(given, directory=given.directory or here)
            spec.attributes = attrs.evolve(spec.attributes, after=[*(spec.attributes.after or ()), *after])
            intent = {
                "id": job_id,
                "attempt": _ATTEMPT,
                "executor": executor.name,
                "version": str(executor.version),
                "time": datetime.now(UTC).isoformat(),
                "boot": host.boot_id(),
                "directory": str(spec.directory),
                "spec": serialization.encode(spec),
            }
            lock = spool.prepare(job_id, _ATTEMPT, intent, preview.run)
            undo.callback(spool.discard, job_id, _ATTEMPT)
            try:
                spool.revoke(job_id, _ATTEMPT)
                spool.give_up(job_id, _ATTEMPT, "")
                if is_held:
                    host.write(deferral._held_path(job_id), b"")  # noqa: SLF001  its own
                host.write(f"{spool.folder(job_id)}/{DEFERRED_FILE}", deferral.name.encode("ascii"))
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
