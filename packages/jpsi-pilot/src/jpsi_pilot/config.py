"""The configuration of the executor `pilot`, and its capabilities.

Sites and users set it in configuration files; hooks receive it as `site.config`.
"""

from __future__ import annotations

from datetime import timedelta

import attrs

from jpsi.plugin import Arrays, BatchConfig, Capabilities, hookimpl
from jpsi.plugin.kit import must_be

#: The target of pilots that are processes of the allocation that the program is in.
HERE = "here"
_LARGEST_ARRAY = 10_000


def _is_lines(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(it, str) and "\0" not in it for it in value)


def _to_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


_check_count = must_be("a whole number of at least 1", lambda it: type(it) is int and it >= 1)
_check_gpus = must_be("a whole number of at least 0", lambda it: type(it) is int and it >= 0)
_check_interval = must_be("a positive timedelta", lambda it: isinstance(it, timedelta) and it > timedelta(0))
_check_name = must_be("a name", lambda it: isinstance(it, str) and bool(it))
_check_lines = must_be("a list of lines of shell", _is_lines)


@attrs.frozen(slots=True, kw_only=True)
class PilotConfig(BatchConfig):
    """The configuration of the executor `pilot`, besides that of every batch system.

    Different settings mean different pilots: a job runs only in a pilot that was started with the settings of
    the job's own executor.
    """

    #: The executor that runs pilots as jobs, or a target of the configuration; `here` is the allocation that
    #: the program is in. For several of its nodes, `launcher` must be named.
    target: str = attrs.field(default="local", validator=_check_name)
    #: The engine that runs jobs inside pilots: an entry point of the group `jpsi.pilot_engines`; None is
    #: `flux` where the agent's machine has it, else `dask`.
    engine: str | None = attrs.field(default=None, validator=attrs.validators.optional(_check_name))
    #: The largest number of pilots at a time for one client.
    max_pilots: int = attrs.field(default=1, validator=_check_count)
    #: The number of nodes of a pilot.
    nodes_per_pilot: int = attrs.field(default=1, validator=_check_count)
    #: The number of cores of a node that a pilot asks for, and jobs share.
    cores_per_node: int = attrs.field(default=1, validator=_check_count)
    #: The number of GPUs of a node that a pilot asks for, and jobs share.
    gpus_per_node: int = attrs.field(default=0, validator=_check_gpus)
    #: The memory of a node that a pilot asks for, in bytes, and jobs share; None leaves it to the target, and
    #: the memory that jobs ask for is not counted.
    memory_per_node: int | None = attrs.field(default=None, validator=attrs.validators.optional(_check_count))
    #: The time for which jobs can run in a pilot, from its start on; no job starts there that could run past
    #: that.
    walltime: timedelta = attrs.field(default=timedelta(hours=1), validator=_check_interval)
    #: The time that is added to `walltime` in the request to the target, so that a pilot can start and wind
    #: up; two thirds of it are for the start.
    margin: timedelta = attrs.field(default=timedelta(seconds=30), validator=_check_interval)
    #: The time for which a pilot without a job waits for another, and so for which pilots outlive their
    #: client.
    idle_time: timedelta = attrs.field(default=timedelta(minutes=2), validator=_check_interval)
    #: True if a pilot takes the jobs of all clients, not only those of the process it was started for.
    shared: bool = False
    #: True if a job runs again whose pilot was lost while it ran; else it is FAILED. A job overrides this by
    #: the custom attribute `pilot.retry_on_pilot_loss`.
    retry_on_pilot_loss: bool = False
    #: The queue that pilots are submitted to; None leaves it to the target.
    queue_name: str | None = attrs.field(default=None, validator=attrs.validators.optional(_check_name))
    #: The project that pilots are charged to; None leaves it to the target.
    project_name: str | None = attrs.field(default=None, validator=attrs.validators.optional(_check_name))
    #: Lines of POSIX shell that a pilot runs before anything else, such as `module load python`.
    startup: tuple[str, ...] = attrs.field(default=(), converter=_to_tuple, validator=_check_lines)
    #: The launcher that starts a pilot's process on each of its nodes; None is the target's own.
    launcher: str | None = attrs.field(default=None, validator=attrs.validators.optional(_check_name))
    #: The path of a Python that has jpsi-pilot and the engine, on the host of agent and pilots; None is the
    #: one that runs the program. Where `url` names a remote host, it is required.
    python: str | None = attrs.field(default=None, validator=attrs.validators.optional(_check_name))
    #: The network interface by which nodes reach this machine, such as `ib0`; None finds one.
    interface: str | None = attrs.field(default=None, validator=attrs.validators.optional(_check_name))

    def __attrs_post_init__(self) -> None:
        if self.work_directory is not None and self.python is None:
            # a program that changes its working directory still finds its agent
            object.__setattr__(self, "work_directory", self.work_directory.expanduser().absolute())
        if self.target.lower() == HERE and self.nodes_per_pilot > 1 and self.launcher is None:
            msg = "launcher must be named, such as srun, where pilots are several nodes of this allocation"
            raise ValueError(msg)


@hookimpl
def config_class() -> type[BatchConfig]:
    """Return the configuration class."""
    return PilotConfig


@hookimpl
def capabilities() -> Capabilities:
    """Return the capabilities of pilots."""
    return Capabilities(
        default_launcher="multiple",
        # engines that run a job on several nodes set the variables that this launcher reads
        nodes_launcher="flux",
        id_variable="JPSI_PILOT_JOB",
        ids_per_query=1000,
        arrays=Arrays(
            largest=_LARGEST_ARRAY,
            id_variable="JPSI_PILOT_ARRAY",
            index_variable="JPSI_PILOT_INDEX",
            limits=True,
        ),
    )
