"""The job of a cluster: one or several workers of Dask."""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import dask
from dask_jobqueue.core import Job
from distributed.deploy.spec import ProcessInterface

import jpsi
from jpsi.plugin import word

from .requests import JobRequests

log = logging.getLogger(__name__)


class JpsiJob(Job):  # type: ignore[misc]  # dask-jobqueue is not typed
    """A job of a cluster, which runs workers of Dask.

    Parameters
    ----------
    executor : str
        The executor of jpsi, or a target of its configuration. None is the configured default, else `local`.
    url : str
        The host of the batch system, such as ssh://login.example.org.
    queue : str
        The queue or partition.
    account : str
        The account or project that is charged.
    walltime : str or timedelta
        The time limit of the job, such as 2h or 02:00:00.
    gpus : int
        GPUs of the job.
    job_extra_directives : dict or list
        Options of one batch system, {"slurm.qos": "debug"} or ["slurm.qos=debug"].

    The other parameters are those that all jobs of dask-jobqueue have.
    """

    config_name = "jpsi"
    job_id_regexp = r"(?P<job_id>\S+)"

    def __init__(  # noqa: PLR0913, PLR0917  dask-jobqueue's first two, and each other by its name
        self,
        scheduler: str | None = None,
        name: str | None = None,
        executor: str | JobRequests | None = None,
        url: str | None = None,
        queue: str | None = None,
        account: str | None = None,
        walltime: str | timedelta | None = None,
        gpus: int | None = None,
        config_name: str | None = None,
        **options: Any,  # noqa: ANN401  dask-jobqueue's
    ) -> None:
        if _setting(config_name or self.config_name, "python", options.get("python")) is None:
            # it becomes a word of the script
            options["python"] = word(sys.executable)
        super().__init__(scheduler=scheduler, name=name, config_name=config_name, **options)
        if self.job_directives_skip:
            raise ValueError("jpsi writes the directives: instead of job_directives_skip, request less")
        self._requests = open_requests(self.config_name, executor, url)
        walltime = self._setting("walltime", walltime)
        self._attributes = jpsi.JobAttributes(
            queue_name=self._setting("queue", queue),
            project_name=self._setting("account", account),
            duration=jpsi.parse_duration(walltime) if isinstance(walltime, str) else walltime,
            custom_attributes=_custom_attributes(self.job_extra_directives),
        )
        self._gpus = self._setting("gpus", gpus)
        self._job: jpsi.Job | None = None
        self._is_closing = False
        self.job_header = ""
        self.job_header = self._directives()

    async def close(self) -> None:
        """Cancel the job, if it has not ended."""
        self._is_closing = True
        if self._job is not None and self._job.executor is None:
            # its submission is under way, also if Dask has given it up
            self._job.set_job_status_callback(_cancel_at_once)
        if self._job is not None and self._job.executor is not None:
            try:
                await self._requests.cancellations.add(self._job)
            except jpsi.JpsiError as e:
                log.warning("worker %s may still run: %s. Try: jpsi cancel %s", self.name, e, self._job.id)
        await ProcessInterface.close(self)

    async def _submit_job(self, _: str) -> str:
        self._job = job = jpsi.Job(self._make_spec(self.job_script()))
        job.set_job_status_callback(self._report_end)
        await self._requests.submissions.add(job)
        return job.id

    def _report_end(self, job: jpsi.Job, status: jpsi.JobStatus) -> None:
        """Log why a job ended by itself; Dask itself notices only that a worker is gone, if it ever came."""
        # workers that Dask has told to end return 0
        if status.final and status.state is not jpsi.JobState.COMPLETED and not self._is_closing:
            reason = f", {status.reason.value}" if status.reason else ""
            log.warning("worker %s ended: %s%s. More: jpsi explain %s", self.name, status, reason, job.id)

    def _setting(self, name: str, value: Any) -> Any:  # noqa: ANN401  of any type
        return _setting(self.config_name, name, value)

    def _directives(self) -> str:
        """Return the directives that the batch system will read; or why jpsi would refuse the job."""
        try:
            preview = self._requests.executor.preview(jpsi.Job(self._make_spec(self.job_script())))
        except jpsi.JpsiError as e:
            return "\n".join(f"# jpsi: {it}" for it in str(e).splitlines())
        directives = [it for it in (preview.script or "").splitlines()[1:] if it.startswith("#")]
        # no other system reads them, and so their directives need not be there
        attributes = self._attributes.custom_attributes or {}
        return "\n".join([*directives, *(f"# jpsi: {name}={value}" for name, value in attributes.items())])

    def _make_spec(self, script: str) -> jpsi.JobSpec:
        interpreter, *words = shlex.split(self.shebang.removeprefix("#!"))
        spec = jpsi.JobSpec(
            interpreter,
            [*words, "-c", jpsi.escape(script)],
            name=self.job_name,
            resources=jpsi.ResourceSpecV1(
                cpu_cores_per_process=self.worker_cores,
                gpu_cores_per_process=self._gpus,
                memory=int(self.worker_memory),
            ),
            attributes=self._attributes,
            launcher="single",
        )
        if self._requests.executor.files.are_local:
            spec.directory = Path.cwd()
            if self.log_directory is not None:
                stream = Path(self.log_directory).absolute() / f"{self.job_name}-{self.name}"
                spec.stdout_path, spec.stderr_path = Path(f"{stream}.out"), Path(f"{stream}.err")
        return spec


def _cancel_at_once(job: jpsi.Job, status: jpsi.JobStatus) -> None:
    """Cancel a job whose worker was closed before the job was submitted."""
    if status.state is jpsi.JobState.QUEUED:
        try:
            job.cancel()
        except jpsi.JpsiError as e:
            log.warning("a worker may still run: %s. Try: jpsi cancel %s", e, job.id)


def open_requests(config_name: str, executor: str | JobRequests | None, url: str | None) -> JobRequests:
    """Return the requests to an executor, by default that of a section of Dask's configuration."""
    if isinstance(executor, JobRequests):
        return executor
    return JobRequests(_setting(config_name, "executor", executor), _setting(config_name, "url", url))


def _setting(config_name: str, name: str, value: Any) -> Any:  # noqa: ANN401  of any type
    return dask.config.get(f"jobqueue.{config_name}.{name}", None) if value is None else value


def _custom_attributes(directives: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    """Return custom attributes, given as a mapping or as texts.

    >>> _custom_attributes(["slurm.qos=debug", "slurm.requeue"])
    {'slurm.qos': 'debug', 'slurm.requeue': ''}
    """
    if isinstance(directives, Mapping):
        return dict(directives)
    return {name: value for name, _, value in (it.partition("=") for it in directives)}
