"""The protocol of executors that a driver runs jobs by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from jpsi import Job, JobFiles, JobStatus, System


class JobDetails(Protocol):
    """What an executor knows of a job."""

    @property
    def details(self) -> Mapping[str, Any]:
        """What belongs to its kind alone, `<system>.<word>`."""


class Executor(Protocol):
    """What a driver needs of an executor."""

    @property
    def system(self) -> System:
        """What can be found out about it."""

    @property
    def files(self) -> JobFiles:
        """The files where its jobs run."""

    def set_job_status_callback(self, callback: Callable[[Job, JobStatus], None], /) -> None:
        """Have something told of every status."""

    def recall(self, job_ids: Iterable[str]) -> Sequence[Job]:
        """The jobs with these ids that it knows."""

    def submit_many(self, jobs: Sequence[Job]) -> None:
        """Submit jobs."""

    def cancel_many(self, jobs: Iterable[Job]) -> None:
        """Have jobs end."""

    def info(self, job: Job) -> JobDetails | None:
        """What is known of a job now."""
