"""What a batch system says about one of its queues."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import attrs


@attrs.frozen(slots=True, kw_only=True)
class Queue:
    """One queue or partition; what the batch system does not say is None."""

    #: The name that jobs give to be sent there; empty where there is but one, which has no name.
    name: str
    #: The system's own words for its state.
    word: str
    #: Whether it takes jobs,
    is_open: bool | None = None
    #: and whether it starts them.
    is_started: bool | None = None
    #: Whether jobs go there that name none.
    is_default: bool = False
    #: How long a job may run; zero is no limit.
    longest: timedelta | None = None
    #: How long one may that does not say how long; zero is no limit.
    usual: timedelta | None = None
    #: How many nodes a job may have.
    most_nodes: int | None = None
    #: How many nodes there are.
    nodes: int | None = None
    #: How many jobs wait there, and how many run.
    pending: int | None = None
    running: int | None = None
    #: Whatever else is known, by dotted names that begin with the system's (`slurm.MaxMemPerNode`).
    details: Mapping[str, Any] = attrs.field(factory=dict)
