"""The facts about a job that only its batch system knows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs


@attrs.define(slots=False)
class JobInfo:
    """The facts that `JobExecutor.info` found; None where the batch system does not tell.

    `vars()` returns all of them, as programs of Open OnDemand need it.
    """

    owner: str | None = None
    #: The seconds for which the job has run.
    wall_time: int = 0
    submission_time: datetime | None = None
    #: The time at which it started to run.
    dispatch_time: datetime | None = None
    #: The seconds of CPU that it has used.
    cpu_time: int | None = None
    #: Its nodes: the name of each, and the number of its processors that the job has.
    resourcelist: list[dict[str, Any]] = attrs.field(factory=list)
    #: The machine from which it was submitted.
    submit_host: str | None = None
