"""Jobs as the disk remembers them: of every process, executor and target, without asking any batch system.

    import jpsi.spooled

    for job in jpsi.spooled.jobs():
        print(job.id, job.name, job.status.state)

What is told follows from the files alone, so that whoever looks at the same time is told the same. To act
upon jobs, open their executor: `job.origin.open().recall([job.id])`.
"""

from __future__ import annotations

import functools
import logging
import platform
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote

import attrs

from jpsi.contract.hookspecs import ExecutorHooks, Site
from jpsi.contract.protocols import Streams
from jpsi.engine import defaults
from jpsi.engine.explaining import explained
from jpsi.engine.past import Past
from jpsi.engine.procfs import parse_native_id
from jpsi.engine.roots import folder_name
from jpsi.engine.site_codes import read_codes
from jpsi.engine.spool import Spool
from jpsi.engine.streams import streams_of
from jpsi.engine.work_directory import SpoolFolder, spools, work_directory
from jpsi.engine.written import WrittenJobs
from jpsi.executor import JobExecutor
from jpsi.model.errors import SubmitException
from jpsi.model.plain import decode
from jpsi.model.spec import JobSpec
from jpsi.model.states import JobStatus
from jpsi.registry.assembly import assemble
from jpsi.registry.configured import Configuration, configuration

__all__ = ["Origin", "SpooledJob", "jobs"]

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
        if self._is_url:
            return f"{self.executor}@{self.target}"
        return self.target or self.executor

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

    def open(self) -> JobExecutor:
        """The executor.

        Raises:
            JpsiError: it cannot be had here, or any more.
        """
        if self.is_elsewhere:
            msg = f"the jobs are processes of {self.machine}, and can be reached only there"
            raise SubmitException(msg)
        name, url = self.asked_for
        return JobExecutor(name, url=url)


class SpooledJob:
    """One job as it is on disk: a picture of one moment, which does not change."""

    def __init__(self, origin: Origin, past: Past) -> None:
        self._past = past
        #: Whose job it is.
        self.origin = origin

    @property
    def id(self) -> str:
        """The id that jpsi gave the job."""
        return self._past.written.job_id

    @property
    def native_id(self) -> str | None:
        """The id that the backend gave the job; None if that is not known."""
        return self._past.written.native_id

    @property
    def name(self) -> str | None:
        """The name that the job was given."""
        name: str | None = self._past.written.intent["spec"].get("name")
        return name

    @property
    def attempt(self) -> int:
        """How often the job was written down to be submitted."""
        return self._past.written.attempt

    @property
    def array(self) -> tuple[str, int] | None:
        """The id of the array that the job was submitted in, and which element it is, from 1."""
        place = self._past.written.place
        return None if place is None else (place.array, place.index)

    @functools.cached_property
    def spec(self) -> JobSpec:
        """What was asked for."""
        return decode(self._past.written.intent["spec"])

    @property
    def submitted(self) -> datetime:
        """When the job was submitted."""
        return self._past.submitted

    @functools.cached_property
    def started(self) -> datetime | None:
        """When the job began to run, as it told itself; None if it did not."""
        return self._past.started

    @functools.cached_property
    def status(self) -> JobStatus:
        """The last status that is certain."""
        status = self._past.status
        if not status.final or not status.metadata or self._past.written.final is not None:
            return status
        # whoever followed the job would have told the same
        return explained(Spool(self.origin.path), self.id, self.attempt, status)

    @functools.cached_property
    def history(self) -> Sequence[JobStatus]:
        """Every status that is certain, the oldest first; it begins with NEW and ends with `status`."""
        return (*self._past.history[:-1], self.status)

    @property
    def remark(self) -> str | None:
        """What else is known of a job that has not ended for certain: a sentence, or None."""
        return self._past.remark(is_gone=self._is_gone)

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
        return Path(self._past.written.intent["directory"])

    @property
    def streams(self) -> Streams:
        """Where the output of the job goes."""
        return streams_of(self._past.written.intent, str(self.folder))

    def __repr__(self) -> str:
        return f"<SpooledJob {self.id} {self.origin.name} {self.status.state}>"


def jobs() -> list[SpooledJob]:
    """All jobs that are on disk, the oldest first.

    They are looked for in the default work directory and in those that are configured.

    Raises:
        ConfigError: the configuration is wrong.
        SubmitException: a directory cannot be read.
    """
    configured = configuration()
    targets = list(configured.targets)
    found = [
        job
        for directory in _work_directories(configured)
        for folder in spools(directory)
        for job in _in(folder, targets)
    ]
    return sorted(found, key=lambda job: (job.submitted, job.array or ("", 0), job.id))


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
        _Spelling(origin).element_ids,
        are_processes=folder.machine is not None,
    )
    try:
        written = files.read()
    except OSError as e:
        msg = f"the jobs in {folder.root} cannot be read: {e}"
        raise SubmitException(msg, e) from e
    codes = read_codes(folder.root) if folder.machine is None else None
    for it in written:
        try:
            job = SpooledJob(origin, Past(it, codes))
            # what something else wrote raises whatever comes of reading it
            _ = job.name, job.status, job.started, it.intent["directory"]
        except (AttributeError, KeyError, TypeError, ValueError):
            log.warning("job %s: its folder cannot be understood", it.job_id, exc_info=True)
        else:
            yield job


class _Spelling:
    """How the plugin of an executor spells ids, if it is there; it is looked for once, and only if needed."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin

    @functools.cached_property
    def _plugin(self) -> tuple[ExecutorHooks, Site] | None:
        name, url = self._origin.asked_for
        try:
            assembly = assemble(name, None, url, None, lowest=defaults)
        except Exception:
            # such as a plugin that is not installed any more
            log.debug("how %s spells the ids of elements is not known", name, exc_info=True)
            return None
        return assembly.stack.hooks, Site(config=assembly.config)

    def element_ids(self, native_id: str, indices: Sequence[int]) -> Sequence[str]:
        """The native ids of elements of an array."""
        if self._plugin is not None:
            hooks, site = self._plugin
            try:
                return list(hooks.element_ids(native_id=native_id, indices=indices, site=site))
            except Exception:
                log.debug("the elements of %s have no ids", native_id, exc_info=True)
        return [f"{native_id}[{index}]" for index in indices]
