"""A job as the queue of a batch system shows it to psij programs."""

from __future__ import annotations

import attrs

from .job_info import JobInfo
from .job_spec import JobSpec
from .job_status import JobStatus


@attrs.frozen
class ListedJob:
    """A job of a listing."""

    native_id: str
    status: JobStatus
    spec: JobSpec
    info: JobInfo
    #: The id of the array that the job is an element of.
    array_id: str | None = None
