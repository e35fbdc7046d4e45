"""Describes which requests of jobs an executor changes or ignores: rounded time limits, queues on `local`.

The commands that submit jobs, run workflows and make requests report it in these sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

import jpsi
from jpsi.plugin import components

_LOCAL = "local"
# The attributes that no process of this machine has.
_IGNORED = ("queue_name", "project_name", "reservation_id", "licenses", "qos", "mail", "gpu_type")
# The requests that nothing on this machine grants.
_IGNORED_RESOURCES = ("memory", "memory_per_cpu", "memory_per_gpu")
# The prefixes of custom attributes for batch systems, whether or not their plugins are installed.
_SYSTEMS = frozenset({"slurm", "pbs", "torque", "lsf", "flux", "gridengine", "sge", "oar", "pilot"})
# Of how many attributes all are named.
_MAX_NAMED = 6


def describe_rounding(executor: str, unit: timedelta, specs: Iterable[jpsi.JobSpec | None]) -> str | None:
    """Return that an executor rounds the time limits of jobs up; None if it does not.

    Args:
        executor: the name of the executor.
        unit: the unit of its time limits, as its capabilities name it.
        specs: the specs of the jobs; a job may have none.
    """
    durations = {it.attributes.duration for it in specs if it is not None}
    rounded = sorted(it for it in durations if it and it % unit)
    # some executors, such as local, keep fractions of a second
    if not rounded or unit <= timedelta(seconds=1):
        return None
    others = f", and {len(rounded) - 1} more" if len(rounded) > 1 else ""
    return f"{executor} rounds the time limit {rounded[0]} up to {round_up(rounded[0], unit)}{others}"


def round_up(duration: timedelta, unit: timedelta) -> timedelta:
    """Return the time limit that a batch system keeps which rounds to a unit.

    >>> str(round_up(timedelta(seconds=61), timedelta(minutes=1)))
    '0:02:00'
    """
    return -(-duration // unit) * unit


def describe_ignored(
    executor: str, specs: Iterable[jpsi.JobSpec | None], rename: Callable[[str], str] = str
) -> str | None:
    """Return which requests of jobs have no effect on this machine; None if all have, or it is not `local`.

    Args:
        executor: the name of the executor.
        specs: the specs of the jobs; a job may have none.
        rename: returns the caller's word for a field such as `attributes.queue_name` or `resources.memory`.
    """
    if executor != _LOCAL:
        return None
    fields = [name for it in specs if it is not None for name in _ignored(it)]
    renamed = (rename(it) for it in dict.fromkeys(fields))
    names = list(dict.fromkeys(it.removeprefix("attributes.").removeprefix("resources.") for it in renamed))
    if len(names) > _MAX_NAMED:
        # the count takes the place of one
        names = [*names[: _MAX_NAMED - 1], f"{len(names) - _MAX_NAMED + 1} more"]
    *first, last = names or [""]
    which = f"{', '.join(first)} and {last} have" if first else f"{last} has"
    return f"{_LOCAL} is no batch system: {which} no effect" if names else None


def _ignored(spec: jpsi.JobSpec) -> Iterator[str]:
    attributes = spec.attributes
    for kind in components(spec.resources):
        yield from (f"resources.{name}" for name in _IGNORED_RESOURCES if getattr(kind, name))
    yield from (f"attributes.{name}" for name in _IGNORED if getattr(attributes, name) is not None)
    for name in attributes.custom_attributes or ():
        if name.partition(".")[0].lower() in _SYSTEMS:
            yield name
