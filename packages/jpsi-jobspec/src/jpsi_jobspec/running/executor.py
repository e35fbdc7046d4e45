"""The protocol of executors by which a driver runs jobs.

`JobExecutor` has these methods, and so has the `SplitExecutor` that a group uses in its allocation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from jpsi import Job, JobFiles, JobStatus, System


class JobDetails(Protocol):
    """The details that an executor knows of a job."""

    @property
    def details(self) -> Mapping[str, Any]:
        """Details of this kind of executor only, by `<system>.<word>`."""


class Executor(Protocol):
    """The methods of an executor that a driver uses."""

    @property
    def system(self) -> System:
        """The system that runs the jobs."""

    @property
    def files(self) -> JobFiles:
        """The files on the host where its jobs run."""

    def set_job_status_callback(self, callback: Callable[[Job, JobStatus], None], /) -> None:
        """Have a callback called with every job status."""

    def recall(self, job_ids: Iterable[str]) -> Sequence[Job]:
        """Return the jobs with these ids that the executor knows."""

    def submit_many(self, jobs: Sequence[Job]) -> None:
        """Submit jobs."""

    def cancel_many(self, jobs: Iterable[Job], *, unmet: str = "") -> None:
        """Cancel jobs, with `unmet` because a dependency of them cannot be met, for that reason."""

    def info(self, job: Job) -> JobDetails | None:
        """Return what the executor knows of a job now."""
