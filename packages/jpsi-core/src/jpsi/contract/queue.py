"""The batch system's report about one of its queues."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import attrs


@attrs.frozen(slots=True, kw_only=True)
class Queue:
    """A queue or partition; facts that the batch system does not report are None."""

    #: The name by which jobs choose it; empty if there is only one, which has no name.
    name: str
    #: The batch system's own words for its state.
    word: str
    #: True if it accepts jobs.
    is_open: bool | None = None
    #: True if it starts jobs.
    is_started: bool | None = None
    #: True if jobs that name no queue go to it.
    is_default: bool = False
    #: The largest walltime of a job; zero is no limit.
    longest: timedelta | None = None
    #: The walltime of a job that asks for none; zero is no limit.
    usual: timedelta | None = None
    #: The largest number of nodes of a job.
    most_nodes: int | None = None
    #: The number of its nodes.
    nodes: int | None = None
    #: The numbers of jobs that wait in it, and that run.
    pending: int | None = None
    running: int | None = None
    #: All other facts, by dotted names that begin with the system's (`slurm.MaxMemPerNode`).
    details: Mapping[str, Any] = attrs.field(factory=dict)
