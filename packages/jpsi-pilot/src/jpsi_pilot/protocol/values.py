"""What is said of jobs and pilots: values that travel as JSON between client, agent and nodes."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Self

import attrs

#: The variable that has the native id of a job, in it.
JOB_VARIABLE = "JPSI_PILOT_JOB"
#: The variable that has the id of Slurm's job that a pilot is in, where it is in one.
ALLOCATION = "SLURM_JOB_ID"


class _Plain:
    """Values that JSON can say."""

    __slots__ = ()

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Self:  # Any: as JSON has it
        """The values in what `plain` returned."""
        return cls(**raw)

    def plain(self) -> dict[str, Any]:  # as above
        """The values by their names."""
        return attrs.asdict(self)  # type: ignore[arg-type]  # all that inherit this are attrs classes


@attrs.frozen(slots=True, kw_only=True)
class Need(_Plain):
    """What a job takes: of each of its nodes, and for how long."""

    nodes: int = 1
    cores: int = 1
    gpus: int = 0
    #: In bytes.
    memory: int = 0
    #: How long it may run.
    seconds: int


@attrs.frozen(slots=True, kw_only=True)
class Settings(_Plain):
    """What pilots of one kind are; times are in seconds."""

    target: str
    #: None leaves it to the agent.
    engine: str | None
    max_pilots: int
    nodes: int
    cores: int
    gpus: int
    memory: int | None
    walltime: int
    margin: int
    idle: float
    kill_delay: float
    shared: bool
    queue_name: str | None
    project_name: str | None
    startup: tuple[str, ...] = attrs.field(converter=tuple[str, ...])
    launcher: str | None
    interface: str | None

    @property
    def key(self) -> str:
        """A name for exactly these settings."""
        return _key(self)


@functools.lru_cache(maxsize=64)
def _key(settings: Settings) -> str:
    text = json.dumps(settings.plain(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@attrs.frozen(slots=True, kw_only=True)
class Task(_Plain):
    """One run of a job, as a node gets it."""

    #: The job's native id.
    native_id: str
    #: How often it has been put back before.
    restarts: int
    #: The script, which a shell reads.
    script: str
    #: The name of the file, in the agent's folder, that holds its environment.
    environment: str
    #: Its umask.
    umask: int
    #: Variables that are set besides.
    variables: Mapping[str, str]
    #: How many cores it has of each of its nodes; the agent counts them.
    cores: int = 1
    #: How many GPUs it has of each; None where the pilot has none to share out.
    gpus: int | None = None
    #: How long it may run, and how long it has to end when it is told to.
    seconds: int
    kill_delay: float


@attrs.frozen(slots=True, kw_only=True)
class End(_Plain):
    """How a run ended."""

    #: The exit code of its script; 128 + n after signal n. None if it never began.
    code: int | None
    #: Why it was ended: `cancel`, `timeout`, `pilot`; `unable` if it could not begin; `lost` if it is known
    #: only that it runs no more; empty if it ended by itself.
    why: str = ""
    #: What is told of that.
    message: str = ""


@attrs.frozen(slots=True, kw_only=True)
class Share(_Plain):
    """What a node keeps for a job that has several nodes."""

    #: How a launcher calls the node.
    node: str = ""
    #: The variables that name its GPUs there; empty where the pilot has none to share out.
    variables: Mapping[str, str] = attrs.field(factory=dict)
    #: The variables by which a launcher finds the allocation that the pilot has; none that it knows of.
    allocation: Mapping[str, str] = attrs.field(factory=dict)
    #: Why it keeps nothing; empty if it does.
    problem: str = ""
