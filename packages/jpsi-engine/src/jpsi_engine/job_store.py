"""Jobs as recorded on disk: of every process, executor and target, without a request to any batch system.

    import jpsi_engine.job_store

    for job in jpsi_engine.job_store.jobs():
        print(job.id, job.name, job.status.state)

The result depends on the files alone, so all processes that read at the same time see the same. To act
upon jobs, open their executor: `job.origin.open().recall([job.id])`.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import platform
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import attrs

# Listing jobs takes no executor: what that needs is named by its room, which imports it on first use.
import jpsi
from jpsi import JobStatus, configuration, plugin
from jpsi.plugin import (
    Dependency,
    DependencyKind,
    JobSpec,
    JobState,
    JpsiError,
    SubmitException,
    engine,
    line,
)
from jpsi.plugin.engine import problems
from jpsi_engine import host, runner, scheduler, transfer
from jpsi_engine.array_expansion import (
    ALLOCATION,
    ARRAY_ID,
    MET,
    REPEATS,
    array_id,
    array_index,
    at_a_time,
    encoded_attribute,
    repeated_specs,
    single_spec,
)
from jpsi_engine.deferral import (
    ControlledJobs,
    Deferral,
    cancel_deferred,
    defer,
    hold_deferred,
    read_deferral,
)
from jpsi_engine.host import (
    convert_os_errors,
    hold_lock,
    is_transient,
    parse_native_id,
    read_text,
    write_once,
)
from jpsi_engine.shown_jobs import FIGURES, EndedJob, ShownJob, query_shown_jobs, query_usage
from jpsi_engine.spool import (
    DAMAGE,
    GIVEN_UP_FILE,
    RETRY_KEY,
    ArrayFiles,
    ArrayMember,
    ElementIds,
    JobHistory,
    JobRecord,
    JobRecords,
    Spool,
    SpoolFolder,
    array_problem,
    array_tag,
    decode_request,
    decode_status,
    encode_status,
    fallback_intent,
    find_spools,
    folder_name,
    folder_problems,
    read_requeue_codes,
    tag,
    target_name,
    work_directory,
)
from jpsi_engine.verdict import CANCEL, Stop, failed_staging_phase, never_ran_status

__all__ = [
    "ALLOCATION",
    "MET",
    "ControlledJobs",
    "DamagedJob",
    "Deferral",
    "Origin",
    "ShownJob",
    "StoredJob",
    "account",
    "array_id",
    "array_index",
    "at_a_time",
    "by_origin",
    "cancel_deferred",
    "cancel_unsent",
    "damaged",
    "defer",
    "hold_deferred",
    "jobs",
    "lock_repetitions",
    "repeated_specs",
    "reread",
    "shown",
    "single_spec",
]

log = logging.getLogger(__name__)

# The file in a spool whose lock is held by the process that repeats jobs, and the seconds to wait for it.
_REPETITIONS = "repetitions"
_PATIENCE_SECONDS = 60.0
# How many jobs a remark names.
_MAX_NAMED = 3
# The clocks of a client and of the file system that dates markers are not the same.
_CLOCK_TOLERANCE = timedelta(seconds=1)
# How much of an id a remark shows.
_SHORT = 8


@attrs.frozen
class Origin:
    """The executor of a job, and the target that the user named for it."""

    executor: str
    #: The name of a configured target, or a URL; empty for an executor of this machine.
    target: str
    #: The spool of its jobs.
    path: Path
    #: The name of the machine if its jobs are processes; None for jobs of a batch system.
    machine: str | None = None

    @property
    def name(self) -> str:
        """The executor's name for users: `slurm`, a target, or `slurm@URL`."""
        return target_name(self.executor, self.target)

    @property
    def is_remote(self) -> bool:
        """True if its jobs are processes of another machine, which this machine cannot reach."""
        return self.machine is not None and self.machine != platform.node()

    @property
    def _is_url(self) -> bool:
        return "://" in self.target

    @property
    def asked_for(self) -> tuple[str, str | None]:
        """The name and the URL with which `JobExecutor` opens it."""
        return (self.executor, self.target) if self._is_url else (self.target or self.executor, None)

    @property
    def _url(self) -> str | None:
        """The URL of the remote host where its jobs run; None for this machine."""
        if self._is_url or not self.target:
            return self.target or None
        configured = configuration()
        sections = (configured.targets.get(self.target), configured.executors.get(self.executor))
        return next((it.url for it in sections if it is not None and it.url is not None), None)

    def files(self) -> jpsi.JobFiles:
        """Open the files of the machine where its jobs run; the connection lasts as long as the result does.

        Raises:
            JpsiError: the configuration and the installed plugins do not lead to that machine.
        """
        local, url = host.LocalTransport(), self._url
        if url is None:
            return transfer.open_job_files(local)
        name, _ = self.asked_for
        assembly = engine.assemble(name, None, url, None)
        return transfer.open_job_files(engine.open_transport(assembly.plugins, url, assembly.config, local))

    @property
    def walltime_unit(self) -> timedelta:
        """The unit to which the executor rounds time limits up; a second if its plugin is not available."""
        name, url = self.asked_for
        try:
            assembly = engine.assemble(name, None, url, None)
            return assembly.hooks.capabilities(site=plugin.Site(config=assembly.config)).walltime_unit
        except JpsiError:
            return timedelta(seconds=1)

    def open(self) -> jpsi.JobExecutor:
        """Open the executor.

        Raises:
            JpsiError: the executor cannot be opened on this machine, or does not exist any more.
        """
        if self.is_remote:
            raise SubmitException(f"the jobs are processes of {self.machine}, and can be reached only there")
        name, url = self.asked_for
        return jpsi.JobExecutor(name, url=url)


class StoredJob:
    """A job as it is on disk: a snapshot that does not change."""

    def __init__(self, origin: Origin, history: JobHistory) -> None:
        self._history = history
        #: The executor that the job belongs to.
        self.origin = origin
        #: The id that jpsi gave the job.
        self.id: str = history.record.job_id
        #: The name in the job's spec.
        self.name: str | None = history.record.intent["spec"].get("name")
        #: The problems with its files, a clause each; if there are any, the spec may be empty.
        self.damage: Sequence[str] = tuple(history.record.damage)
        #: When the job was submitted, in its last attempt.
        self.submitted: datetime = history.submitted
        #: When the job began to run, by its own marker; None if there is no such marker.
        self.started: datetime | None = history.started
        #: The last status that is certain.
        self.status: JobStatus = self._explain(history.status)
        #: The id that jpsi gave the array that the job was submitted in; None for a single job. If the batch
        #: system takes smaller arrays only, or none, the jobs of one array are in several, or none.
        self.array_id: str | None = encoded_attribute(history.record.intent["spec"], ARRAY_ID) or (
            history.first_array or (None if history.record.place is None else history.record.place.array)
        )
        self._directory: str = history.record.intent["directory"]
        if not isinstance(self.name, str | None) or not isinstance(self._directory, str):
            raise TypeError(self.name, self._directory)

    @property
    def created(self) -> datetime:
        """The time when the job was first recorded for submission: a deferred job is submitted later."""
        return self.submitted if self._history.record.attempt == 1 else self._first_recorded

    @functools.cached_property
    def _first_recorded(self) -> datetime:
        with contextlib.suppress(OSError, *DAMAGE):
            first = json.loads(read_text(str(self.folder / "intent.1.json")).partition("\n")[0])
            return min(self.submitted, datetime.fromisoformat(first["time"]).astimezone(UTC))
        return self.submitted

    @property
    def native_id(self) -> str | None:
        """The id that the backend gave the job; None if it is not known."""
        return self._history.record.native_id

    @property
    def attempt(self) -> int:
        """The number of times that the job was recorded for submission; see also `counted_attempt`."""
        return self._history.record.attempt

    @property
    def array(self) -> tuple[str, int] | None:
        """The id of the job's array and the job's index in it, from 1; None for a single job."""
        place = self._history.record.place
        return None if place is None else (place.array, place.index)

    @property
    def array_native_id(self) -> str | None:
        """The id that the backend gave the job's array; None for a single job, or if it is not known."""
        return self._history.record.array_native_id

    @property
    def array_index(self) -> int | None:
        """The index that the user gave the job in its array; None for a job without one.

        It is not the index by which the batch system knows the job, which counts from 1.
        """
        environment = self._history.record.intent["spec"].get("environment")
        return array_index(environment) if isinstance(environment, Mapping) else None

    @property
    def repeats(self) -> str | None:
        """The id of the job that this one repeats, as `repeated_specs` made it; None for any other job."""
        return encoded_attribute(self._history.record.intent["spec"], REPEATS)

    @property
    def allocation(self) -> str | None:
        """The id of the job in whose allocation this one runs, as a task of a workflow; else None."""
        return encoded_attribute(self._history.record.intent["spec"], ALLOCATION)

    @property
    def tag(self) -> str | None:
        """The tag of the batch system's job; elements of an array share it, and processes have none."""
        if self.origin.machine is not None:
            return None
        return tag(self.id, self.attempt) if self.array is None else array_tag(self.array[0])

    @property
    def user_attributes(self) -> Mapping[str, Any]:
        """The user's own attributes in the job's spec, which need not be decoded for that."""
        attributes = self._history.record.intent["spec"].get("attributes")
        found = attributes.get("user") if isinstance(attributes, dict) else None
        return found if isinstance(found, dict) else {}

    @functools.cached_property
    def spec(self) -> JobSpec:
        """The job's spec; an empty one if its record is damaged."""
        try:
            spec = self.read_spec()
        except SubmitException:
            return JobSpec()
        return JobSpec() if self.damage and problems(spec) else spec

    def read_spec(self) -> JobSpec:
        """Return the job's spec.

        Raises:
            SubmitException: it is damaged, or cannot be read now.
        """
        intent = self._history.record.intent
        try:
            if not intent["spec"]:
                # what stands in for an intent that cannot be read
                raise ValueError(self.damage)
            return decode_request(str(self.folder), intent)
        except (OSError, *DAMAGE) as e:
            raise SubmitException(f"what the job asks for cannot be read: {e}", e) from e

    @property
    def native_dependencies(self) -> Sequence[Dependency]:
        """The jobs for which the batch system has this one wait, by their native ids."""
        # most jobs have none, and to decode the specs of thousands takes a while
        attributes = self._history.record.intent["spec"].get("attributes")
        has_some = isinstance(attributes, dict) and bool(attributes.get("after"))
        found = engine.dependencies(self.spec) if has_some and not self.damage else ()
        # a newer version of jpsi may know other kinds
        return [it for it in found if it.kind in tuple(DependencyKind)]

    def read_dependencies(self) -> Sequence[Dependency]:
        """Return the jobs that this one was to wait for, also those that had ended before it was submitted.

        They are named by the ids that jpsi gave jobs, by the ids of arrays with users' indices, such as
        `ID[3-5,8]`, or by native ids of the same batch system.

        Raises:
            SubmitException: they are damaged, or cannot be read now.
        """
        words = (encoded_attribute(self._history.record.intent["spec"], MET) or "").split()
        pairs = [it.partition(":")[::2] for it in words]
        try:
            met = [Dependency(others, DependencyKind(kind)) for kind, others in pairs]
        except ValueError as e:
            raise SubmitException(f"the attribute {MET} cannot be read: {e}", e) from e
        return tuple(
            dict.fromkeys([*met, *engine.dependencies(self.read_spec()), *self._first_dependencies()])
        )

    def _first_dependencies(self) -> Sequence[Dependency]:
        """Return what a deferred job was to wait for: what has ended since is in its first attempt alone."""
        if self.attempt == 1:
            return ()
        try:
            intent = json.loads(read_text(str(self.folder / "intent.1.json")).partition("\n")[0])
            return engine.dependencies(decode_request(str(self.folder), intent))
        except FileNotFoundError:
            # the first attempt was one of an array
            return ()
        except (OSError, *DAMAGE) as e:
            raise SubmitException(f"what the job was to wait for cannot be read: {e}", e) from e

    def _explain(self, status: JobStatus) -> JobStatus:
        if not status.final or not status.metadata or self._history.record.final is not None:
            return status
        if status.state is JobState.COMPLETED and not failed_staging_phase(status):
            return status
        # the client that followed the job would have published the same message
        return runner.add_failure_details(Spool(self.origin.path), self.id, self.attempt, status)

    @property
    def awaits_retry(self) -> bool:
        """True if an attempt has ended and another follows, which was not made yet."""
        return self._history.record.retry is not None

    @property
    def earlier_ends(self) -> Sequence[JobStatus]:
        """The ends of the attempts after which the job was, or is, submitted again, in order."""
        if not self._history.record.may_be_retried:
            return ()
        spool = Spool(self.origin.path)
        ends = (spool.read_final(self.id, attempt) for attempt in range(1, self.attempt + 1))
        return [decode_status(it) for it in ends if it is not None and it.get(RETRY_KEY)]

    @property
    def counted_attempt(self) -> int:
        """The number of the last attempt, from 1; those that could never run do not count, as in metadata."""
        ended = len(self.earlier_ends)
        return max(ended, 1) if self.awaits_retry or self._history.record.is_revoked else ended + 1

    @functools.cached_property
    def history(self) -> Sequence[JobStatus]:
        """Every status that is certain, the oldest first; it begins with NEW and ends with `status`."""
        return (*self._history.history[:-1], self.status)

    @property
    def remark(self) -> str | None:
        """A sentence about a job that is damaged or has not certainly ended; None if nothing is known."""
        return self.remark_about(self.id)

    def remark_about(self, shown_id: str) -> str | None:
        """Return `remark`, with commands that name `shown_id`, such as the id of the whole array."""
        # most jobs were sent, and a cached property takes a while
        deferral = self.deferral if self.is_unsent else None
        if deferral is None or self._history.record.stop is not None:
            return self._history.remark(is_gone=self._has_ended)
        if deferral.is_held(self.id):
            return f"it is held, and not submitted yet: jpsi release {shown_id}"
        after = [(it.native_id or "")[:_SHORT] for it in engine.dependencies(self.spec)]
        more = f" and {len(after) - _MAX_NAMED} more" if len(after) > _MAX_NAMED else ""
        waits, does = f"it is submitted after {', '.join(after[:_MAX_NAMED])}{more}", "waits for that"
        if not after:
            # the jobs that it had to wait for have ended
            waits, does = "it is yet to be submitted", "does that"
        if deferral.is_attended:
            return f"{waits}; {deferral.process} {does}"
        missing = deferral.missing_directory
        make = "" if missing is None else f"{line('mkdir', '-p', str(missing))} && "
        return f"{waits}, but no process {does}; start one: {make}jpsi wait {shown_id}"

    @functools.cached_property
    def deferral(self) -> Deferral | None:
        """The deferred submission of a job that waits for jobs of other systems; None for any other job."""
        return self._read_deferral() if self.is_unsent else None

    @functools.cached_property
    def unclear_deferral(self) -> Deferral | None:
        """The deferral whose process has begun to submit the job, if it is not known whether it did.

        If no process attends to the deferral, `recall` finds that out; the job may be deferred again then.
        """
        is_unclear = self.status.state is JobState.NEW and not self.is_unsent
        return self._read_deferral() if is_unclear else None

    def _read_deferral(self) -> Deferral | None:
        return read_deferral(self.origin.path, self.id, self.origin.machine)

    @property
    def is_unsent(self) -> bool:
        """True if the job was not submitted and cannot run unless it is submitted again.

        If this is False for a job in state NEW, it is not known yet whether the job was submitted.
        """
        return self.status.state is JobState.NEW and self._history.record.is_revoked

    @property
    def may_have_ended(self) -> bool:
        """True if its end was requested, or its program has left an exit code, and its end is not certain."""
        return self._history.may_have_ended

    @property
    def program_ended(self) -> datetime | None:
        """The time when the program of the last run left its exit code, which may not be the job's end yet.

        None if it has left none.
        """
        return self._history.program_ended

    @property
    def was_cancelled_by_jpsi(self) -> bool:
        """True if jpsi was to cancel the job before it ended; others may cancel a job without it."""
        content = self._history.record.stop
        if content is None or self.damage:
            return False
        stop = Stop.from_content(content)
        return stop.why == CANCEL and not stop.is_late and stop.time - self.status.time < _CLOCK_TOLERANCE

    def end_unsent(self) -> bool:
        """Record the end of a job that `is_unsent`; return False if it was submitted again meanwhile.

        Raises:
            SubmitException: another machine may have it on its list, and submit it.
            OSError: that cannot be recorded.
        """
        record, spool = self._history.record, Spool(self.origin.path)
        if "remote" in record.intent:
            # their clients keep their own records
            how = f"submit it again: jpsi show --document {self.id} | jpsi submit -f -"
            raise SubmitException(f"job {self.id}: {self.remark}; {how}")
        if record.place is not None:
            spool.adopt(self.id, self.attempt, record.place)
        # another process that submits it makes an attempt before it looks for this request
        spool.stop(self.id, self.attempt, Stop(CANCEL, datetime.now(UTC)))
        if spool.last_attempt(self.id) != self.attempt:
            return False
        spool.finish(self.id, self.attempt, encode_status(never_ran_status()))
        return True

    @property
    def was_given_up(self) -> bool:
        """True if the job was deferred, and never submitted since its batch system refused it for good."""
        return self.is_unsent and (self.folder / GIVEN_UP_FILE).exists()

    @property
    def _has_ended(self) -> bool:
        if self.origin.machine is None or self.native_id is None or self.origin.is_remote:
            return False
        process = parse_native_id(self.native_id)
        return process is None or not process.is_alive()

    @property
    def folder(self) -> Path:
        """The directory with the files of this job alone; an array element may have none before it runs."""
        return self.origin.path / "jobs" / self.id

    @property
    def accounted(self) -> Mapping[str, float] | None:
        """The figures that `account` has learnt, by their names in `metadata`; None if it has learnt none."""
        try:
            found = json.loads(_accounting_file(self).read_text(encoding="ascii"))
            return {name: found[name] for name in FIGURES if isinstance(found.get(name), int | float)}
        except (OSError, *DAMAGE):
            return None

    @property
    def directory(self) -> Path:
        """The directory in which the job runs."""
        return Path(self._directory)

    @property
    def reruns(self) -> int:
        """The number of times that the job was started again after its end; those runs did nothing."""
        try:
            return len((self.folder / f"{runner.RERUN}.{self.attempt}").read_bytes().splitlines())
        except OSError:
            return 0

    @property
    def streams(self) -> jpsi.Streams:
        """The paths of the job's output, as far as the record can be read."""
        try:
            return runner.resolve_streams(self._history.record.intent, str(self.folder))
        except DAMAGE:
            return runner.resolve_streams(fallback_intent(str(self.folder)), str(self.folder))

    def output(self, stream: engine.Stream = "stdout", files: jpsi.JobFiles | None = None) -> jpsi.Output:
        """Return what the job writes to a stream, on whichever machine; each read gives the current content.

        Args:
            stream: the name of the stream.
            files: a result of `origin.files()`; if None, this method calls it.

        Raises:
            JpsiError: the configuration and the installed plugins do not lead to the job's machine.
        """
        return jpsi.Output.of(self.origin.files() if files is None else files, self.streams, stream)

    def __repr__(self) -> str:
        return f"<StoredJob {self.id} {self.origin.name} {self.status.state}>"


def jobs(*, also: Iterable[Path] = ()) -> list[StoredJob]:
    """Return all jobs that are on disk, the oldest first, and those of an array by their indices.

    The default work directory and the configured ones are searched.

    Args:
        also: further work directories, which a program has set in the configuration of an executor.

    Raises:
        ConfigError: the configuration is wrong.
        SubmitException: a directory cannot be read.
    """
    targets = list(configuration().targets)
    found = [job for folder in _spools(also) for job in _read_folder(folder, targets)]
    began: dict[str, datetime] = {}
    for job in found:
        if job.array is None and job.array_id is not None:
            began[job.array_id] = min(job.created, began.get(job.array_id, job.created))

    def place(job: StoredJob) -> tuple[datetime, str, int, str]:
        # the elements of an array that are processes are started side by side
        position = None if job.array is None else job.array[1]
        # those that are submitted again have other positions in another array
        index = job.array_index if position is None or job.attempt > 1 else position
        return began.get(job.array_id or "", job.created), job.array_id or "", index or position or 0, job.id

    return sorted(found, key=place)


def reread(found: Iterable[StoredJob]) -> list[StoredJob]:
    """Return jobs as they are on disk now, without those that are gone; files of other jobs are not opened.

    Raises:
        SubmitException: a directory cannot be read.
    """
    again: list[StoredJob] = []
    for origin, jobs in by_origin(found).items():
        members = {it.id: None if it.array is None else ArrayMember(*it.array) for it in jobs}
        again += _read_origin(origin, members)
    return again


def by_origin(found: Iterable[StoredJob]) -> Mapping[Origin, list[StoredJob]]:
    """Return jobs by their executors and targets, in the order of the first job of each."""
    origins: dict[Origin, list[StoredJob]] = {}
    for job in found:
        origins.setdefault(job.origin, []).append(job)
    return origins


@contextlib.contextmanager
def lock_repetitions(found: Iterable[StoredJob]) -> Iterator[None]:
    """Keep other processes from repeating jobs of the same executors, while this one looks and submits.

    The jobs that repeat others say so on disk, so nothing is left to clear if this process is killed.

    Raises:
        SubmitException: another process has been repeating jobs for a minute, or the lock cannot be taken.
    """
    with contextlib.ExitStack() as locks:
        # in one order, so that no two processes wait for each other
        for origin in sorted({job.origin for job in found}, key=lambda it: it.path):
            path = str(origin.path / _REPETITIONS)
            with convert_os_errors(f"the jobs in {origin.path} cannot be locked"):
                is_held = locks.enter_context(hold_lock(path, _PATIENCE_SECONDS, create=True))
            if not is_held:
                msg = f"another process is repeating jobs of {origin.name}; try again when it has ended"
                raise SubmitException(msg, transient=True)
        yield


def cancel_unsent(found: Iterable[StoredJob]) -> ControlledJobs:
    """End jobs that were not submitted and are not deferred (`StoredJob.is_unsent`), so that none ever is.

    A job that is in neither field of the result was submitted again meanwhile.
    """
    done, failures = set[str](), dict[str, JpsiError]()
    for job in found:
        try:
            with convert_os_errors(f"the end of job {job.id} cannot be recorded", str(job.folder)):
                if job.end_unsent():
                    done.add(job.id)
        except SubmitException as e:
            failures[job.id] = e
    return ControlledJobs(done, failures)


@attrs.frozen
class DamagedJob:
    """A job, or an array of jobs, whose files are not as jpsi wrote them."""

    #: `job` or `array`, and its id.
    name: str
    #: The folder with its files.
    folder: Path
    #: The problems with them, as a text for users.
    problem: str
    #: The job, as far as its files can be read; None for an array.
    job: StoredJob | None = None


def damaged(*, also: Iterable[Path] = ()) -> list[DamagedJob]:
    """Return all jobs and arrays whose files are damaged; it reads each file, so it is slower than `jobs`.

    Args:
        also: as for `jobs`.

    Raises:
        ConfigError, SubmitException: as for `jobs`.
    """
    further = list(also)
    found = []
    for job in jobs(also=further):
        problems = job.damage or _check_files(job)
        if problems:
            found.append(DamagedJob(f"job {job.id}", job.folder, "; ".join(problems), job))
    for folder in _spools(further):
        arrays = ArrayFiles(folder.root)
        for name in arrays.names():
            # an array without its script was never complete, so it was never submitted
            is_complete = Path(arrays.folder(name), "run").exists()
            problem = array_problem(folder.root, name) if is_complete else None
            if problem is not None:
                found.append(DamagedJob(f"array {name}", Path(arrays.folder(name)), f"intent.json {problem}"))
    return found


def shown(found: Iterable[StoredJob]) -> Mapping[str, ShownJob | JpsiError | None]:
    """Ask the queues, or the process tables, for jobs, even if the files of the jobs are damaged.

    Returns:
        By job id: the job as it shows; None if it does not show; or the error that prevented an answer.
    """
    results: dict[str, ShownJob | JpsiError | None] = {}
    for origin, origin_jobs in by_origin(found).items():
        try:
            results |= _query_origin(origin, origin_jobs)
        except JpsiError as e:
            results |= {job.id: e for job in origin_jobs}
    return results


def account(found: Iterable[StoredJob]) -> Mapping[str, Mapping[str, float] | JpsiError]:
    """Ask the accounting of batch systems what jobs have used, where that is not known; record the answers.

    Of a job that has left its own exit code nothing was asked before: how it ended was certain. Each batch
    system gets one query for all jobs, and none for those whose memory it has told before.

    Returns:
        By job id: the figures as in `StoredJob.accounted`; or the error that prevented an answer. A job of
        which the accounting does not say that it has ended is left out.
    """
    results: dict[str, Mapping[str, float] | JpsiError] = {}
    for origin, jobs in by_origin(filter(_is_unaccounted, found)).items():
        wanted = {it.id: EndedJob(it.native_id or "", it.tag, it.started) for it in jobs}
        try:
            with origin.open() as executor:
                figures = query_usage(executor.system, wanted)
            if figures is None:
                raise SubmitException("it keeps no accounting that jpsi can ask")
        except JpsiError as e:
            results |= {job.id: e for job in jobs}
            continue
        results |= figures
        for job in jobs:
            found_figures = figures.get(job.id, {})
            # the accounting may have the rest later
            if not found_figures.keys().isdisjoint(FIGURES[1:]):
                content = json.dumps(dict(found_figures)).encode("ascii")
                # its folder may have been removed, or be another user's
                with contextlib.suppress(OSError):
                    write_once(str(_accounting_file(job)), content)
    return results


def _is_unaccounted(job: StoredJob) -> bool:
    known = {*job.status.metadata, *(job.accounted or ())}
    is_known = "used.cpu" in known and known.intersection(FIGURES[1:])
    return bool(job.status.final and job.tag and job.native_id and job.accounted is None and not is_known)


def _accounting_file(job: StoredJob) -> Path:
    return job.folder / f"used.{job.attempt}.json"


def _query_origin(origin: Origin, jobs: Sequence[StoredJob]) -> Mapping[str, ShownJob | JpsiError | None]:
    if origin.machine is not None and not origin.is_remote:
        return {job.id: _query_process(job) for job in jobs}
    # the elements of an array share a tag, so a tag does not lead to a single element
    unnamed = {job.id for job in jobs if job.array is not None and job.native_id is None}
    wanted = {job.id: (job.tag or "", job.native_id) for job in jobs if job.id not in unnamed}
    with origin.open() as executor:
        found = query_shown_jobs(executor.system, wanted)
    unknown = SubmitException("its native id is not known")
    return {job.id: unknown if job.id in unnamed else found.get(job.id) for job in jobs}


def _query_process(job: StoredJob) -> ShownJob | JpsiError | None:
    if job.native_id is None:
        return SubmitException(f"its process is not known; `pgrep -f {job.folder}` finds it if it runs")
    process = parse_native_id(job.native_id)
    if process is None or not process.is_alive():
        return None
    # the runner leads the process group with its pid as number
    command = f"kill -TERM -- -{process.pid}"
    return ShownJob(native_id=job.native_id, native_state="running", cancel_command=command)


def _check_files(job: StoredJob) -> Sequence[str]:
    try:
        names = os.listdir(job.folder)  # noqa: PTH208  text, as in the spool
    except OSError:
        return ()
    return tuple(folder_problems(str(job.origin.path), job.id, names))


def _spools(also: Iterable[Path]) -> Iterator[SpoolFolder]:
    """Yield the spools in the default work directory, in the configured ones and in these."""
    configured = configuration()
    sections = (*configured.executors.values(), *configured.targets.values())
    configured_paths = [section.config.get("work_directory") for section in sections]
    # opening the executor refuses a value that is not a string
    paths = [None, *(Path(it) for it in configured_paths if isinstance(it, str)), *also]
    for directory in dict.fromkeys(map(work_directory, paths)):
        yield from find_spools(directory)


def _read_folder(folder: SpoolFolder, targets: Sequence[str]) -> Iterator[StoredJob]:
    executor, _, written_target = folder.name.partition("@")
    known = (name for name in targets if folder_name(executor, name) == folder.name)
    origin = Origin(executor, next(known, unquote(written_target)), Path(folder.root), folder.machine)
    return _read_origin(origin)


def _read_origin(
    origin: Origin, members: Mapping[str, ArrayMember | None] | None = None
) -> Iterator[StoredJob]:
    """Yield the jobs of an executor; see `JobRecords.read`."""
    root, is_machine = str(origin.path), origin.machine is not None
    files = JobRecords(root, _element_ids(origin), are_processes=is_machine)
    try:
        written = files.read(members)
    except OSError as e:
        raise SubmitException(f"the jobs in {root} cannot be read: {e}", e, transient=is_transient(e)) from e
    codes = None if is_machine else read_requeue_codes(root)
    for it in written:
        job = _make_job(origin, it, codes)
        if job is None:
            # its files are not as jpsi wrote them
            damaged = files.read_damaged(it.job_id, {marker.name: marker for marker in it.markers})
            job = None if damaged is None else _make_job(origin, damaged, codes)
        if job is None:
            log.warning("job %s in %s cannot be parsed", it.job_id, root)
        else:
            yield job


def _make_job(origin: Origin, written: JobRecord, codes: Collection[int] | None) -> StoredJob | None:
    try:
        return StoredJob(origin, JobHistory(written, codes))
    except DAMAGE:
        return None


def _element_ids(origin: Origin) -> ElementIds:
    """Return a function that spells native ids of array elements; it loads plugins at its first call."""

    @functools.cache
    def speller() -> ElementIds:
        return scheduler.element_id_speller(*origin.asked_for)

    def spell(native_id: str, indices: Sequence[int]) -> Sequence[str]:
        return speller()(native_id, indices)

    return spell
