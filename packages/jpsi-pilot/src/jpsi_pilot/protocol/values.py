"""The messages about jobs and pilots that client, agent and nodes exchange as JSON, and private files."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import attrs

from ..client import open_private

#: The variable that holds a job's native id, in the job's environment.
JOB_VARIABLE = "JPSI_PILOT_JOB"
#: The variable that holds the path of the log of the node where the job runs, in the job's environment.
LOG_VARIABLE = "JPSI_PILOT_LOG"
#: The same, in the environment of the process that starts programs for the node.
STARTER_VARIABLE = "JPSI_PILOT_STARTER"
#: The variable that holds the id of the Slurm job that a pilot runs in, if it runs in one.
ALLOCATION = "SLURM_JOB_ID"


# Any: the values of JSON have several types
class _Serializable:
    """A value whose fields JSON can represent."""

    __slots__ = ()

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Self:
        """Return the value that `to_dict` converted; TypeError if fields are unknown or missing."""
        return cls(**raw)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by their names."""
        return attrs.asdict(self)  # type: ignore[arg-type]  # all that inherit this are attrs classes


@attrs.frozen(slots=True, kw_only=True)
class Need(_Serializable):
    """The resources that a job takes on each of its nodes, and its time limit."""

    #: The number of nodes; the other numbers are for each of them.
    nodes: int = 1
    cores: int = 1
    gpus: int = 0
    #: In bytes.
    memory: int = 0
    #: The longest time that the job may run, in seconds.
    seconds: int


@attrs.frozen(slots=True, kw_only=True)
class Settings(_Serializable):
    """The settings of one kind of pilots; `PilotConfig` has the same settings, and describes all of them.

    Times are in seconds; cores, GPUs and memory are those of each node.
    """

    #: The executor or configured target that runs the pilots as jobs.
    target: str
    #: None leaves it to the agent.
    engine: str | None
    #: The largest number of pilots at a time for one client.
    max_pilots: int
    #: The number of nodes of a pilot.
    nodes: int
    cores: int
    gpus: int
    #: In bytes; None if memory is not counted.
    memory: int | None
    #: The time for which jobs can run in a pilot.
    walltime: int
    #: The time that is added to `walltime` in the request to the target: for the pilot's start and its end.
    margin: int
    #: The time for which a pilot without a job waits for another.
    idle: float
    #: The time that a cancelled job has between SIGTERM and SIGKILL.
    kill_delay: float
    #: True if the pilots take the jobs of all clients.
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
    #: The number of cores that it has on each of its nodes; the agent counts them.
    cores: int = 1
    #: The number of GPUs that it has on each of its nodes; None if the pilot has none to assign.
    gpus: int | None = None
    #: Its time limit in seconds.
    seconds: int
    #: The time between SIGTERM and SIGKILL, in seconds.
    kill_delay: float


@attrs.frozen(slots=True, kw_only=True)
class End(_Serializable):
    """The end of a run."""

    #: The exit code of its script; 128 + n after signal n. None if it never began.
    code: int | None
    #: Why it ended. Empty: by itself. `cancel`: a client cancelled the job. `timeout`: it reached its time
    #: limit. `pilot`: its pilot ended; without a code, it never began and waits again. `unable`: it could not
    #: be started. `lost`: it no longer runs, and nothing else is known.
    why: str = ""
    #: An explanation for the user.
    message: str = ""


@attrs.frozen(slots=True, kw_only=True)
class Share(_Serializable):
    """A node's answer when a job of several nodes reserves GPUs there (engine `dask` only)."""

    #: The name by which a launcher knows the node.
    node: str = ""
    #: The variables that name the job's GPUs on this node; empty if the pilot has none to assign.
    variables: Mapping[str, str] = attrs.field(factory=dict)
    #: The variables by which a launcher finds the pilot's allocation; empty if there are none.
    allocation: Mapping[str, str] = attrs.field(factory=dict)
    #: Why the node could not reserve them, for the user; empty if it did.
    problem: str = ""


def write_private(path: Path, content: bytes, *, synced: bool = False) -> None:
    """Write a file whole or not at all.

    Args:
        path: the file's path.
        content: its content.
        synced: True if the content must be on the disk when this returns.
    """
    temporary = path.with_name(f"{path.name}.new")
    with open(temporary, "wb", opener=open_private) as file:
        file.write(content)
        file.flush()
        if synced:
            os.fsync(file.fileno())
    temporary.replace(path)
