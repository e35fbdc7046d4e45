"""The executor `jpsi` of submitit: its jobs run on any executor of jpsi.

    executor = submitit.AutoExecutor("logs", cluster="jpsi")
    executor.update_parameters(jpsi_executor="pbs", timeout_min=60, cpus_per_task=4)
    job = executor.submit(train, 0.1)
    print(job.result())

The files are those of submitit, in its folder, which the nodes must see.
"""

from __future__ import annotations

import functools
import signal
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import platformdirs
from submitit.core import logger
from submitit.core.core import InfoWatcher, PicklingExecutor
from submitit.core.core import Job as SubmititJob
from submitit.core.job_environment import JobEnvironment
from submitit.core.utils import DelayedSubmission, JobPaths

from jpsi import (
    Job,
    JobAttributes,
    JobExecutor,
    JobSpec,
    JobState,
    ResourceSpecV1,
    SubmitException,
    escape,
)
from jpsi_engine import job_store, make_private_directory

from . import submitit_task
from .locks import hold_lock

R_co = TypeVar("R_co", covariant=True)

# The exit code of a task that has to be submitted again, as with submitit's local executor.
_REQUEUE = 144
_WORDS = {JobState.NEW: "PENDING", JobState.QUEUED: "PENDING", JobState.ACTIVE: "RUNNING"}
_SIGNAL_CODES = 128
# How long a wait looks at one attempt, and how soon it looks for the next one.
_WAIT_SECONDS = 1.0
_POLL_SECONDS = 0.1


@functools.cache
def _executor(name: str, url: str) -> JobExecutor:
    return JobExecutor(name or None, url=url or None)


class JpsiJobEnvironment(JobEnvironment):
    """The environment of a task, in its job."""

    _env = {  # noqa: RUF012  as the base has it
        "job_id": "SUBMITIT_JPSI_JOB_ID",
        "num_tasks": "JPSI_SIZE",
        "num_nodes": "SUBMITIT_JPSI_NODES",
        "node": "SUBMITIT_JPSI_NODE",
        "global_rank": "JPSI_RANK",
        "local_rank": "JPSI_RANK",
    }

    def _handle_signals(self, paths: JobPaths, submission: DelayedSubmission) -> None:
        super()._handle_signals(paths, submission)
        call = submission.result

        def result() -> Any:  # noqa: ANN401  as the function returns
            try:
                return call()
            finally:
                # submitit cannot leave while it writes the result
                signal.signal(self._usr_sig(), signal.SIG_IGN)

        submission.result = result  # type: ignore[method-assign]  # of this one

    def _requeue(self, countdown: int) -> NoReturn:
        logger.get_logger().info("Requeued job %s (%d remaining timeouts)", self.job_id, countdown)
        # the program that waits for the job submits it again
        sys.exit(_REQUEUE)


class _NoWatcher(InfoWatcher):
    """Polls nothing, as jpsi follows the jobs."""

    def register_job(self, job_id: str) -> None:
        pass

    def is_done(self, job_id: str, mode: str = "standard") -> bool:  # noqa: ARG002  the base's
        """Return False: a job object that is deleted cancels its job, and a job that has ended stays."""
        return False


class JpsiJob(SubmititJob[R_co]):
    """A job of submitit on an executor of jpsi; from its folder and its id it can be made again."""

    watcher = _NoWatcher()
    _results_timeout_s = 5

    @property
    def job(self) -> Job:
        """The job of jpsi, that of the last attempt that was submitted."""
        for attempt in reversed(self._attempts()):
            job = self._recalled(attempt)
            if job is not None:
                return job
        raise SubmitException(
            f"job {self.job_id} is not on disk: the program that made it was killed before it submitted the "
            "job, or is submitting it now"
        )

    def _recalled(self, attempt: Path) -> Job | None:
        """Return the job of an attempt; None if it was not submitted, or another process submits it."""
        name, url, job_id = _read_attempt(attempt)
        followed: dict[str, Job] = self.__dict__.setdefault("_followed", {})
        if job_id not in followed:
            for job in _executor(name, url).recall([job_id]):
                if job.status.state is JobState.NEW:
                    return job
                # recalled again, it would have to be judged again
                followed[job_id] = job
        return followed.get(job_id)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled."""
        return {name: it for name, it in super().__getstate__().items() if name != "_followed"}

    def _attempts(self) -> Sequence[Path]:
        """Return the files that name the jobs of the attempts, in order."""
        found = self.paths.folder.glob(f"{self.job_id}_jpsi.*")
        return sorted((it for it in found if it.suffix[1:].isdecimal()), key=_number)

    def cancel(self, check: bool = True) -> None:  # noqa: ARG002, FBT001, FBT002  the base's
        """Cancel the job."""
        self.job.cancel()

    def done(self, force_check: bool = False) -> bool:  # noqa: ARG002, FBT001, FBT002  the base's
        """Return True if the job has ended; one that left a checkpoint is submitted again."""
        if self._sub_jobs:
            return all(it.done() for it in self._sub_jobs)
        if self.paths.result_pickle.exists():
            return True
        job = self._recalled(self._attempts()[-1])
        if job is None or job.status.state is JobState.NEW or job.status.exit_code == _REQUEUE:
            self._go_on()
            return False
        return job.status.final

    def wait(self) -> None:
        """Wait until the job has ended."""
        while not self.done():
            if self.job.wait(_WAIT_SECONDS) is not None:
                # another program submits the next one
                time.sleep(_POLL_SECONDS)

    @property
    def state(self) -> str:
        """The state, in the words of submitit's local executor, and PENDING."""
        return self.get_info()["jobState"]

    def get_info(self, mode: str = "force") -> dict[str, str]:  # noqa: ARG002  the base's
        """Return the state as a dict."""
        status = self.job.status
        code = status.exit_code
        was_killed = status.state is JobState.CANCELED or code is None or code > _SIGNAL_CODES
        return {"jobState": _WORDS.get(status.state, "INTERRUPTED" if was_killed else "FINISHED")}

    def _go_on(self) -> None:
        """Submit the job of the next attempt, unless another program does so at this moment."""
        # where the jobs of jpsi are, and not in the folder, whose file system may have no locks
        folder = platformdirs.user_state_path("jpsi") / "work" / "functions"
        make_private_directory(folder, "the directory for calls")
        with hold_lock(folder / "submitit.lock") as is_held:
            if is_held:
                self._submit_next()

    def _submit_next(self) -> None:
        """Submit the job of the next attempt, or that of the last one if a killed program did not."""
        attempt = self._attempts()[-1]
        name, url, job_id = _read_attempt(attempt)
        last = self._recalled(attempt)
        if last is not None and last.status.state is JobState.NEW:
            _executor(name, url).submit(last)
        elif last is None and any(it.id == job_id for it in job_store.jobs()):
            return  # its submit command outlives the program
        elif last is None or last.status.exit_code == _REQUEUE:
            following = Job(self.job.spec)
            number = _number(attempt) + (last is not None)
            _write_attempt(self.paths, number, name, url, following)
            _executor(name, url).submit(following)


class JpsiExecutor(PicklingExecutor):
    """The executor `jpsi` of submitit."""

    job_class = JpsiJob

    def __init__(
        self,
        folder: str | Path,
        executor: str = "",
        url: str = "",
        max_num_timeout: int = 3,
        max_pickle_size_gb: float = 1.0,
    ) -> None:
        super().__init__(folder, max_num_timeout=max_num_timeout, max_pickle_size_gb=max_pickle_size_gb)
        self.parameters.update(executor=executor, url=url)

    @classmethod
    def _valid_parameters(cls) -> set[str]:
        own = {"executor", "url", "queue_name", "project_name", "custom_attributes"}
        return {*own, "signal_delay_s", "setup"}

    @classmethod
    def affinity(cls) -> int:
        """Return 0, so that only programs that name it get it."""
        return 0

    def _internal_process_submissions(
        self, delayed_submissions: list[DelayedSubmission]
    ) -> list[SubmititJob[Any]]:
        executor = _executor(self.parameters["executor"], self.parameters["url"])
        jobs = []
        for delayed in delayed_submissions:
            delayed.set_timeout(self.parameters.get("timeout_min", 5), self.max_num_timeout)
            job = Job()
            paths = JobPaths(self.folder, job.id)
            paths.folder.mkdir(parents=True, exist_ok=True)
            delayed.dump(paths.submitted_pickle)
            job.spec = self._spec(job)
            # a configured target has a configuration that the executor's own name does not
            name = self.parameters["executor"] or executor.name
            _write_attempt(paths, 1, name, self.parameters["url"], job)
            jobs.append(job)
        executor.submit_many(jobs)
        return [JpsiJob(self.folder, it.id, range(self._num_tasks())) for it in jobs]

    def _spec(self, job: Job) -> JobSpec:
        wanted = self.parameters
        minutes = wanted.get("timeout_min", 5)
        nodes, tasks = wanted.get("nodes", 1), self._num_tasks()
        memory, gpus = wanted.get("mem_gb"), wanted.get("gpus_per_node")
        delay = wanted.get("signal_delay_s", 30)
        spec = JobSpec(sys.executable, ["-u", escape(submitit_task.__file__), escape(str(self.folder))])
        spec.name = wanted.get("name")
        spec.directory = Path.cwd()
        spec.environment = {
            "SUBMITIT_EXECUTOR": JpsiExecutor.name(),
            "SUBMITIT_JPSI_JOB_ID": job.id,
            "SUBMITIT_JPSI_NODES": nodes,
            "SUBMITIT_JPSI_WARN_AFTER": max(minutes * 60 - delay, 0),
        }
        spec.launcher = "multiple" if tasks > 1 else None
        if wanted.get("setup"):
            spec.pre_launch = JobPaths(self.folder, job.id).folder / f"{job.id}_setup.sh"
            spec.pre_launch.write_text("".join(f"{it}\n" for it in wanted["setup"]), encoding="utf-8")
        spec.attributes = JobAttributes(
            duration=timedelta(minutes=minutes),
            queue_name=wanted.get("queue_name"),
            project_name=wanted.get("project_name"),
            custom_attributes=wanted.get("custom_attributes"),
        )
        spec.resources = ResourceSpecV1(
            node_count=nodes if nodes > 1 else None,
            process_count=tasks if tasks > 1 else None,
            cpu_cores_per_process=wanted.get("cpus_per_task"),
            gpu_cores_per_process=None if gpus is None else gpus * nodes // tasks,
            memory=None if memory is None else int(memory * 2**30) * nodes,
        )
        return spec

    def _num_tasks(self) -> int:
        count: int = self.parameters.get("nodes", 1) * self.parameters.get("tasks_per_node", 1)
        return count

    # Parts of the base that run a command to submit.

    def _make_submission_file_text(self, command: str, uid: str) -> str:
        raise NotImplementedError

    def _make_submission_command(self, submission_file_path: Path) -> list[str]:
        raise NotImplementedError

    @staticmethod
    def _get_job_id_from_submission_command(string: bytes | str) -> str:
        raise NotImplementedError


def _write_attempt(paths: JobPaths, number: int, name: str, url: str, job: Job) -> None:
    """Write which job makes an attempt."""
    path = paths.folder / f"{paths.job_id}_jpsi.{number}"
    # whole from the beginning, as other programs read it
    part = path.with_name(f"{path.name}.{job.id}")
    part.write_text(f"{name}\n{url}\n{job.id}\n", encoding="utf-8")
    part.replace(path)


def _read_attempt(attempt: Path) -> Sequence[str]:
    """Return the executor, its URL, and the id of the job of an attempt."""
    return attempt.read_text(encoding="utf-8").splitlines()


def _number(attempt: Path) -> int:
    return int(attempt.suffix[1:])
