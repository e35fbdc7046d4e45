"""The executor that programs for psij submit jobs to: one of jpsi."""

from __future__ import annotations

import builtins
import contextlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

import attrs
from packaging.version import Version

import jpsi
from jpsi.plugin import NotOffered
from jpsi.plugin.engine import assemble

from .job import Callback, Job
from .job_executor_config import JobExecutorConfig
from .job_spec import spec_for_jpsi
from .job_state import JobState
from .listed_job import ListedJob
from .listing import list_jobs

#: The executors of psij that jpsi does not have, each with the advice for its users.
_WITHOUT = {
    "cobalt": "jpsi has no executor for Cobalt, whose development has ended; use 'pbs', its successor",
    "saga": "jpsi has no executor for SAGA; use that of the batch system, 'slurm' for example",
    "rp": "jpsi has no executor for RADICAL-Pilot; use 'pilot', with many jobs in one allocation",
}
_OTHER_NAMES = {"slurm_single": "slurm"}


class JobExecutor:
    """An executor: submits jobs to one batch system, or runs them on this machine, and follows them."""

    #: The names of the executor in a subclass for one batch system, the usual one first.
    NAMES: ClassVar[tuple[str, ...]] = ("local",)
    _classes: ClassVar[dict[str, type[JobExecutor]]] = {}

    def __init_subclass__(cls) -> None:
        """Have `get_instance` find the subclass by its names."""
        JobExecutor._classes |= dict.fromkeys(cls.__dict__.get("NAMES", ()), cls)

    def __init__(
        self,
        url: str | None = None,
        config: JobExecutorConfig | None = None,
        *,
        name: str | None = None,
        version_constraint: str | None = None,
    ) -> None:
        """Open an executor, as `get_instance` does."""
        self._name = name or self.NAMES[0]
        self.url = url
        self.config = config or JobExecutorConfig.DEFAULT
        self.callback: Callback | None = None
        known = self._name.lower()
        if known in _WITHOUT:
            raise ValueError(_WITHOUT[known])
        known = _OTHER_NAMES.get(known, known)
        try:
            settings = None
            if config is not None and (changes := config.settings_for_jpsi()):
                current = assemble(known, version_constraint, url, None).config
                fields = attrs.fields_dict(type(current))
                settings = attrs.evolve(current, **{key: it for key, it in changes.items() if key in fields})
            self._executor = jpsi.JobExecutor(known, version_constraint, url, settings)
        except (jpsi.PluginError, jpsi.ConfigError) as e:
            raise ValueError("; ".join([str(e), *_unread_descriptors()])) from e

    @staticmethod
    def get_instance(
        name: str,
        version_constraint: str | None = None,
        url: str | None = None,
        config: JobExecutorConfig | None = None,
    ) -> JobExecutor:
        """Return an executor by its name.

        Raises:
            ValueError: there is no such executor.
        """
        kind = JobExecutor._classes.get(name.lower(), JobExecutor)
        return kind(url, config, name=name, version_constraint=version_constraint)

    @staticmethod
    def get_executor_names() -> set[str]:
        """Return the names of the installed executors."""
        found = [it for it in jpsi.plugins() if it.kind == "executor" and it.chosen]
        return {name for it in found for name in (it.name, *it.aliases)}

    @property
    def name(self) -> str:
        """The name by which the executor was opened."""
        return self._name

    @property
    def version(self) -> Version:
        """The version of the distribution that the executor came from."""
        return self._executor.version

    def set_job_status_callback(self, cb: Callback | None) -> None:
        """Call a function or a `JobStatusCallback` for every status of every job; None removes it."""
        self.callback = cb

    def submit(self, job: Job) -> None:
        """Submit a job; returns once the batch system has it.

        Raises:
            InvalidJobException: the job can never run as it is.
            SubmitException: the job did not reach the batch system for another reason.
        """
        with self._reserved(job, is_new=True):
            # a submission whose outcome was unclear is settled by submitting the same job again
            inner = job._jpsi_job or jpsi.Job()
            inner.spec = self._spec_for_jpsi(job)
            job._follow(self, inner)
            self._executor.submit(inner)
            job._native_id = inner.native_id

    def _spec_for_jpsi(self, job: Job) -> jpsi.JobSpec:
        if job.spec is None:
            raise jpsi.InvalidJobException(f"job {job.id} has no spec")
        return spec_for_jpsi(job.spec, self.name)

    def attach(self, job: Job, native_id: str) -> None:
        """Connect a job that was not submitted to one that the batch system has.

        Raises:
            InvalidJobException: the job was submitted or attached already.
            SubmitException: the files on disk cannot be read.
        """
        with self._reserved(job, is_new=False):
            inner = jpsi.Job()
            job._follow(self, inner)
            self._executor.attach(inner, native_id)
            job._native_id = str(native_id)

    @contextlib.contextmanager
    def _reserved(self, job: Job, *, is_new: bool) -> Iterator[None]:
        """Bind a job to this executor, before its callbacks are called; unbind it after an error."""
        with job._condition:
            if job.executor is not None or (is_new and job.status.state is not JobState.NEW):
                msg = f"job {job.id} was submitted already: it is {job.status.state}"
                raise jpsi.InvalidJobException(msg)
            job.executor = self
            before = job._jpsi_job
        try:
            yield
        except BaseException:
            job.executor = None
            if not is_new:
                job._jpsi_job = before
            raise

    def list(self) -> list[str]:
        """Return the native ids of the jobs of this executor that have not ended."""
        return self._executor.list()

    def cancel(self, job: Job) -> None:
        """Request the end of a job, which may carry no more than a native id.

        Raises:
            SubmitException: the batch system refused, or the request did not reach it.
        """
        if job.executor is None and not self._executor.system.has_commands:
            self._attached(job)
        self._control("cancel", job)

    def hold(self, job: Job) -> None:
        """Keep a job that waits, which may carry no more than a native id, from starting; as `cancel`."""
        self._control("hold", job)

    def release(self, job: Job) -> None:
        """Let a held job start, as `hold`."""
        self._control("release", job)

    def _control(self, action: str, job: Job) -> None:
        if job.executor is not None and job._jpsi_job is not None:
            getattr(job.executor._executor, action)(job._jpsi_job)
            return
        system = self._executor.system
        native_id = job.native_id
        if native_id is None:
            raise jpsi.SubmitException(f"job {job.id} has no native id: it was not submitted")
        if not system.has_commands:
            raise jpsi.SubmitException(f"the executor {self.name} cannot {action} jobs")
        site, hooks = system.site(), system.hooks
        try:
            native_id = hooks.canonical_id(native_id=native_id, site=site)
        except ValueError as e:
            # it could select other jobs
            raise jpsi.SubmitException(f"{native_id!r} is no native id of {self.name}: {e}", e) from e
        if action == "cancel":
            command = hooks.cancel(native_ids=[native_id], site=site, seen={})
        else:
            command = getattr(hooks, action)(native_ids=[native_id], site=site)
        if isinstance(command, NotOffered):
            raise jpsi.SubmitException(f"the executor {self.name} cannot {action} jobs")
        parse = getattr(hooks, f"parse_{action}")
        refusals = parse(result=system.query(command), native_ids=[native_id], site=site)
        if refusals:
            raise jpsi.SubmitException(f"job {native_id}: {next(iter(refusals.values()))}")

    def _attached(self, job: Job) -> None:
        if job.native_id is None:
            raise jpsi.SubmitException(f"job {job.id} has no native id: it was not submitted")
        self.attach(job, job.native_id)

    def info(self, jobs: Iterable[Job] | None = None, owner: str | None = None) -> builtins.list[Job]:
        """Return the jobs of all users that have not ended, with their state, spec and `current_info`.

        Args:
            jobs: the jobs to return, each with its native id; if None, all that the batch system shows. For
                executors other than `slurm` and `pbs` these are the jobs that jpsi has submitted.
            owner: the user whose jobs to return, or several, separated by commas.

        Raises:
            SubmitException: the batch system does not answer.
        """
        wanted: dict[str | None, builtins.list[Job]] = {}
        for job in jobs or ():
            if job.native_id is not None:
                wanted.setdefault(job.native_id, []).append(job)
        owners = None if owner is None else set(owner.split(","))
        found = []
        for listed in list_jobs(self._executor, self.config.settings_for_jpsi().get("work_directory")):
            if owners is not None and listed.info.owner not in owners:
                continue
            # an array has the facts of the first of its elements
            matches = [Job()] if jobs is None else wanted.pop(listed.native_id, [])
            matches += wanted.pop(listed.array_id, [])
            for job in matches:
                _fill_in(job, listed)
            found += matches
        return found

    def __str__(self) -> str:
        return f"{type(self).__name__}[{self.name}]"


def _fill_in(job: Job, listed: ListedJob) -> None:
    """Give a job what the batch system shows of it."""
    job.spec = job.spec or listed.spec
    job.current_info = listed.info
    job._native_id = job.native_id or listed.native_id
    if job._jpsi_job is None:
        job._status = listed.status


def _unread_descriptors() -> Iterator[str]:
    """Yield a sentence for each folder in which sites publish plugins for psij-python."""
    for directory in sys.path:
        folder = Path(directory, "psij-descriptors")
        if folder.is_dir():
            yield f"psij-python's plugins in {folder} are not read"
