"""The values about jobs and pilots that travel as JSON between client, agent and nodes."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Self

import attrs

#: The variable that holds a job's native id, in the job's environment.
JOB_VARIABLE = "JPSI_PILOT_JOB"
#: The variable that holds the id of the Slurm job that a pilot runs in, if it runs in one.
ALLOCATION = "SLURM_JOB_ID"


class _Serializable:
    """A value that JSON can represent."""

    __slots__ = ()

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Self:  # Any: as JSON has it
        """Return the value that `to_dict` converted."""
        return cls(**raw)

    def to_dict(self) -> dict[str, Any]:  # as above
        """Return the fields by their names."""
        return attrs.asdict(self)  # type: ignore[arg-type]  # all that inherit this are attrs classes


@attrs.frozen(slots=True, kw_only=True)
class Need(_Serializable):
    """The resources that a job takes on each of its nodes, and its time limit."""

    nodes: int = 1
    cores: int = 1
    gpus: int = 0
    #: In bytes.
    memory: int = 0
    #: The longest time that it may run, in seconds.
    seconds: int


@attrs.frozen(slots=True, kw_only=True)
class Settings(_Serializable):
    """The settings of one kind of pilots; times are in seconds."""

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
        return _hash_settings(self)


@functools.lru_cache(maxsize=64)
def _hash_settings(settings: Settings) -> str:
    text = json.dumps(settings.to_dict(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@attrs.frozen(slots=True, kw_only=True)
class Task(_Serializable):
    """A run of a job, as the agent sends it to a node."""

    #: The job's native id.
    native_id: str
    #: The number of times that the job was requeued before.
    restarts: int
    #: The script, which a shell runs.
    script: str
    #: The name of the file, in the agent's directory, that holds its environment.
    environment: str
    #: Its umask.
    umask: int
    #: Variables that are added to the environment.
    variables: Mapping[str, str]
    #: The number of cores it has of each of its nodes; the agent counts them.
    cores: int = 1
    #: The number of GPUs it has of each; None if the pilot has none to assign.
    gpus: int | None = None
    #: Its time limit, and the time that it has to end after SIGTERM, in seconds.
    seconds: int
    kill_delay: float


@attrs.frozen(slots=True, kw_only=True)
class End(_Serializable):
    """The end of a run."""

    #: The exit code of its script; 128 + n after signal n. None if it never began.
    code: int | None
    #: Why it was ended: `cancel`, `timeout`, `pilot`; `unable` if it could not begin; `lost` if it no longer
    #: runs and nothing else is known; empty if it ended by itself.
    why: str = ""
    #: An explanation for the user.
    message: str = ""


@attrs.frozen(slots=True, kw_only=True)
class Share(_Serializable):
    """The GPUs that a node reserves for a job that has several nodes."""

    #: The name by which a launcher knows the node.
    node: str = ""
    #: The variables that name its GPUs there; empty if the pilot has none to assign.
    variables: Mapping[str, str] = attrs.field(factory=dict)
    #: The variables by which a launcher finds the pilot's allocation; empty if there are none.
    allocation: Mapping[str, str] = attrs.field(factory=dict)
    #: Why it reserves nothing; empty if it does.
    problem: str = ""
