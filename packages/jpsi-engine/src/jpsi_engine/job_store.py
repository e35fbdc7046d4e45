"""Jobs as the disk remembers them: of every process, executor and target, without asking any batch system.

    import jpsi_engine.job_store

    for job in jpsi_engine.job_store.jobs():
        print(job.id, job.name, job.status.state)

What is told follows from the files alone, so that whoever looks at the same time is told the same. To act
upon jobs, open their executor: `job.origin.open().recall([job.id])`.
"""

from __future__ import annotations

import functools
import logging
import os
import platform
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import attrs

from jpsi import Configuration, JobStatus, Streams, configuration
from jpsi.plugin import JobSpec, JobState, JpsiError, SubmitException
from jpsi.plugin.engine import ShownJob, decode, problems
from jpsi_engine.host import parse_native_id
from jpsi_engine.runner import RERUN, streams_of
from jpsi_engine.spool import (
    DAMAGE,
    ArrayFiles,
    ElementIds,
    JobRecord,
    Past,
    SpoolFolder,
    WrittenJobs,
    array_problem,
    array_tag,
    fallback_intent,
    folder_name,
    folder_problems,
    place_name,
    read_codes,
    spools,
    tag,
    work_directory,
)

# To list jobs takes no executor: what is needed of one is imported once it is needed.
if TYPE_CHECKING:
    from jpsi import JobExecutor, JobFiles, Output
    from jpsi.plugin.engine import Stream
    from jpsi_engine.scheduler import Spelling

__all__ = ["Damaged", "Origin", "ShownJob", "SpooledJob", "damaged", "jobs", "shown"]

log = logging.getLogger(__name__)


@attrs.frozen
class Origin:
    """The executor that has a job, and the target that it was asked for by."""

    executor: str
    #: The name of a configured target, or a URL; empty for the executor that is here.
    target: str
    #: The directory that holds what is remembered of its jobs.
    path: Path
    #: The machine whose processes its jobs are; None for jobs of a batch system.
    machine: str | None = None

    @property
    def name(self) -> str:
        """What to ask for to get this executor, for people: `slurm`, a target, or `slurm@URL`."""
        return place_name(self.executor, self.target)

    @property
    def is_elsewhere(self) -> bool:
        """Whether its jobs are processes of another machine, which cannot be reached from here."""
        return self.machine is not None and self.machine != platform.node()

    @property
    def _is_url(self) -> bool:
        return "://" in self.target

    @property
    def asked_for(self) -> tuple[str, str | None]:
        """The name and the URL that `JobExecutor` takes for it."""
        return (self.executor, self.target) if self._is_url else (self.target or self.executor, None)

    @property
    def _url(self) -> str | None:
        """What leads to where its jobs run; None is here."""
        if self._is_url or not self.target:
            return self.target or None
        configured = configuration()
        sections = (configured.targets.get(self.target), configured.executors.get(self.executor))
        return next((it.url for it in sections if it is not None and it.url is not None), None)

    def files(self) -> JobFiles:
        """The files of the machine where its jobs run. Whoever holds on to them holds the connection.

        Raises:
            JpsiError: that machine cannot be reached by what is configured and installed.
        """
        from jpsi_engine.host import LocalTransport  # noqa: PLC0415
        from jpsi_engine.transfer import open_job_files  # noqa: PLC0415

        here, url = LocalTransport(), self._url
        if url is None:
            return open_job_files(here)
        from jpsi.plugin.engine import assemble, open_transport  # noqa: PLC0415

        name, _ = self.asked_for
        assembly = assemble(name, None, url, None)
        return open_job_files(open_transport(assembly.plugins, url, assembly.config, here))

    def open(self) -> JobExecutor:
        """The executor.

        Raises:
            JpsiError: it cannot be had here, or any more.
        """
        if self.is_elsewhere:
            msg = f"the jobs are processes of {self.machine}, and can be reached only there"
            raise SubmitException(msg)
        from jpsi import JobExecutor  # noqa: PLC0415

        name, url = self.asked_for
        return JobExecutor(name, url=url)


class SpooledJob:
    """One job as it is on disk: a picture of one moment, which does not change."""

    def __init__(self, origin: Origin, past: Past) -> None:
        self._past = past
        #: Whose job it is.
        self.origin = origin
        #: The id that jpsi gave the job.
        self.id: str = past.written.job_id
        #: The id that the backend gave the job; None if that is not known.
        self.native_id: str | None = past.written.native_id
        #: The name that the job was given.
        self.name: str | None = past.written.intent["spec"].get("name")
        #: What is wrong with its files, a clause each; then what was asked for may be empty.
        self.damage: Sequence[str] = tuple(past.written.damage)
        #: When the job was submitted.
        self.submitted: datetime = past.submitted
        #: When the job began to run, as it told itself; None if it did not.
        self.started: datetime | None = past.started
        #: The last status that is certain.
        self.status: JobStatus = self._explained(past.status)
        self._directory: str = past.written.intent["directory"]
        if not isinstance(self.name, str | None) or not isinstance(self._directory, str):
            raise TypeError(self.name, self._directory)

    @property
    def attempt(self) -> int:
        """How often the job was written down to be submitted."""
        return self._past.written.attempt

    @property
    def array(self) -> tuple[str, int] | None:
        """The id of the array that the job was submitted in, and which element it is, from 1."""
        place = self._past.written.place
        return None if place is None else (place.array, place.index)

    @property
    def tag(self) -> str | None:
        """The tag of the batch system's job; elements of an array share it, and processes have none."""
        if self.origin.machine is not None:
            return None
        return tag(self.id, self.attempt) if self.array is None else array_tag(self.array[0])

    @functools.cached_property
    def spec(self) -> JobSpec:
        """What was asked for; nothing if that is damaged."""
        try:
            spec = decode(self._past.written.intent["spec"])
        except DAMAGE:
            return JobSpec()
        return JobSpec() if self.damage and problems(spec) else spec

    def _explained(self, status: JobStatus) -> JobStatus:
        if not status.final or not status.metadata or self._past.written.final is not None:
            return status
        from jpsi_engine.runner import explained  # noqa: PLC0415
        from jpsi_engine.spool import Spool  # noqa: PLC0415

        # whoever followed the job would have told the same
        return explained(Spool(self.origin.path), self.id, self.attempt, status)

    @functools.cached_property
    def history(self) -> Sequence[JobStatus]:
        """Every status that is certain, the oldest first; it begins with NEW and ends with `status`."""
        return (*self._past.history[:-1], self.status)

    @property
    def remark(self) -> str | None:
        """What else is known of a job that has not ended for certain, or is damaged: a sentence, or None."""
        return self._past.remark(is_gone=self._is_gone)

    @property
    def is_unsent(self) -> bool:
        """True if the job was not submitted and can run no more, unless it is submitted again.

        Of one that is NEW and for which this is false it is not known yet whether it was submitted.
        """
        return self.status.state is JobState.NEW and self._past.written.is_revoked

    @property
    def _is_gone(self) -> bool:
        if self.origin.machine is None or self.native_id is None or self.origin.is_elsewhere:
            return False
        process = parse_native_id(self.native_id)
        return process is None or not process.is_alive()

    @property
    def folder(self) -> Path:
        """The directory with the files of this job alone; one that waits in an array may have none yet."""
        return self.origin.path / "jobs" / self.id

    @property
    def directory(self) -> Path:
        """Where the job runs."""
        return Path(self._directory)

    @property
    def reruns(self) -> int:
        """How often the batch system has started the job again after it had ended, which did nothing."""
        try:
            return len((self.folder / f"{RERUN}.{self.attempt}").read_bytes().splitlines())
        except OSError:
            return 0

    @property
    def streams(self) -> Streams:
        """Where the output of the job goes, as far as that can be read."""
        try:
            return streams_of(self._past.written.intent, str(self.folder))
        except DAMAGE:
            return streams_of(fallback_intent(str(self.folder)), str(self.folder))

    def output(self, stream: Stream = "stdout", files: JobFiles | None = None) -> Output:
        """What the job writes to a stream, wherever that is; read anew each time, and no picture.

        Args:
            stream: which one.
            files: what `origin.files()` has returned; None asks for it.

        Raises:
            JpsiError: the machine where it runs cannot be reached by what is configured and installed.
        """
        from jpsi import Output  # noqa: PLC0415

        return Output.of(self.origin.files() if files is None else files, self.streams, stream)

    def __repr__(self) -> str:
        return f"<SpooledJob {self.id} {self.origin.name} {self.status.state}>"


def jobs(*, also: Iterable[Path] = ()) -> list[SpooledJob]:
    """All jobs that are on disk, the oldest first.

    They are looked for in the default work directory and in those that are configured.

    Args:
        also: further work directories, which executors were given by their configuration in a program.

    Raises:
        ConfigError: the configuration is wrong.
        SubmitException: a directory cannot be read.
    """
    configured = configuration()
    targets = list(configured.targets)
    found = [
        job
        for directory in dict.fromkeys([*_work_directories(configured), *map(work_directory, also)])
        for folder in spools(directory)
        for job in _in(folder, targets)
    ]
    return sorted(found, key=lambda job: (job.submitted, job.array or ("", 0), job.id))


@attrs.frozen
class Damaged:
    """A job, or an array of jobs, whose files are not as jpsi wrote them."""

    #: `job` or `array`, and its id.
    name: str
    #: Its files.
    folder: Path
    #: What is wrong with them, for people.
    problem: str
    #: What is known of the job all the same; None for an array.
    job: SpooledJob | None = None


def damaged(*, also: Iterable[Path] = ()) -> list[Damaged]:
    """All jobs whose files are damaged; each file is looked at closely, which takes longer than `jobs`.

    Args:
        also: as for `jobs`.

    Raises:
        ConfigError, SubmitException: as for `jobs`.
    """
    further = list(also)
    found = []
    for job in jobs(also=further):
        problems = job.damage or _close_look(job)
        if problems:
            found.append(Damaged(f"job {job.id}", job.folder, "; ".join(problems), job))
    directories = dict.fromkeys([*_work_directories(configuration()), *map(work_directory, further)])
    for folder in (it for directory in directories for it in spools(directory)):
        arrays = ArrayFiles(folder.root)
        for name in arrays.names():
            # one without its script was never made
            is_made = Path(arrays.folder(name), "run").exists()
            problem = array_problem(folder.root, name) if is_made else None
            if problem is not None:
                found.append(Damaged(f"array {name}", Path(arrays.folder(name)), f"intent.json {problem}"))
    return found


def shown(found: Iterable[SpooledJob]) -> Mapping[str, ShownJob | JpsiError | None]:
    """Ask for jobs, whatever is wrong with their files, whether they are in the queue or run as processes.

    Returns:
        By the ids of the jobs: the job; None if it does not show; or why that cannot be known.
    """
    by_origin: dict[Origin, list[SpooledJob]] = {}
    for job in found:
        by_origin.setdefault(job.origin, []).append(job)
    answers: dict[str, ShownJob | JpsiError | None] = {}
    for origin, jobs_there in by_origin.items():
        try:
            answers |= _shown(origin, jobs_there)
        except JpsiError as e:
            answers |= {job.id: e for job in jobs_there}
    return answers


def _shown(origin: Origin, asked: Sequence[SpooledJob]) -> Mapping[str, ShownJob | JpsiError | None]:
    if origin.machine is not None and not origin.is_elsewhere:
        return {job.id: _shown_process(job) for job in asked}
    # the tag of an element finds all of its array
    unnamed = {job.id for job in asked if job.array is not None and job.native_id is None}
    wanted = {job.id: (job.tag or "", job.native_id) for job in asked if job.id not in unnamed}
    with origin.open() as executor:
        found = executor.system.shown_jobs(wanted)
    unknown = SubmitException("its native id is not known")
    return {job.id: unknown if job.id in unnamed else found.get(job.id) for job in asked}


def _shown_process(job: SpooledJob) -> ShownJob | JpsiError | None:
    if job.native_id is None:
        return SubmitException(f"its process is not known; `pgrep -f {job.folder}` finds it if it runs")
    process = parse_native_id(job.native_id)
    if process is None or not process.is_alive():
        return None
    # the runner leads a group of that number
    command = f"kill -TERM -- -{process.pid}"
    return ShownJob(native_id=job.native_id, word="running", cancel_command=command)


def _close_look(job: SpooledJob) -> Sequence[str]:
    try:
        names = os.listdir(job.folder)  # noqa: PTH208  text, as in the spool
    except OSError:
        return ()
    return tuple(folder_problems(str(job.origin.path), job.id, names))


def _work_directories(configured: Configuration) -> list[Path]:
    sections = (*configured.executors.values(), *configured.targets.values())
    given = [section.config.get("work_directory") for section in sections]
    # one that is no text is a mistake that is told to whoever opens the executor
    paths = [work_directory(Path(it)) for it in given if isinstance(it, str)]
    return list(dict.fromkeys([work_directory(None), *paths]))


def _in(folder: SpoolFolder, targets: Sequence[str]) -> Iterator[SpooledJob]:
    executor, _, written_target = folder.name.partition("@")
    known = (name for name in targets if folder_name(executor, name) == folder.name)
    origin = Origin(executor, next(known, unquote(written_target)), Path(folder.root), folder.machine)
    files = WrittenJobs(
        folder.root,
        _element_ids(origin),
        are_processes=folder.machine is not None,
    )
    try:
        written = files.read()
    except OSError as e:
        msg = f"the jobs in {folder.root} cannot be read: {e}"
        raise SubmitException(msg, e) from e
    codes = read_codes(folder.root) if folder.machine is None else None
    for it in written:
        job = _understood(origin, it, codes)
        if job is None:
            # something else wrote it
            damaged = files.read_damaged(it.job_id, {marker.name: marker for marker in it.markers})
            job = None if damaged is None else _understood(origin, damaged, codes)
        if job is None:
            log.warning("job %s in %s cannot be understood", it.job_id, folder.root)
        else:
            yield job


def _understood(origin: Origin, written: JobRecord, codes: Collection[int] | None) -> SpooledJob | None:
    try:
        return SpooledJob(origin, Past(written, codes))
    except DAMAGE:
        return None


def _element_ids(origin: Origin) -> ElementIds:
    """Tells the native ids of elements; plugins are not looked for where there are no arrays."""

    @functools.cache
    def spelling() -> Spelling:
        from jpsi_engine.scheduler import Spelling  # noqa: PLC0415

        return Spelling(*origin.asked_for)

    return lambda native_id, indices: spelling().element_ids(native_id, indices)
