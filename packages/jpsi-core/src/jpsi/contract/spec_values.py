"""What a spec asks for, in forms that most batch systems want: for backends, which all need them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, overload

from jpsi.contract.config import BatchConfig
from jpsi.model import Dependency, HeterogeneousResources, JobAttributes, JobSpec, ResourceSpecV1, components

#: Variables by which an MPI, or what started one, tells a process which rank it is. A job that is submitted
#: from there must not have them, or its own ranks would not find each other.
RANK_VARIABLES = (
    "PMI_*",
    "PMIX_RANK",
    "PMIX_NAMESPACE",
    "PMIX_SERVER_*",
    "OMPI_COMM_WORLD_*",
    "OMPI_MCA_ess",
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
)


def attributes(spec: JobSpec) -> JobAttributes:
    """The attributes of a spec, also if it gives none."""
    return spec.attributes


def resources(spec: JobSpec) -> ResourceSpecV1:
    """The resources of a valid spec whose slots are of one kind; one process if it gives none.

    Raises:
        TypeError: there are several kinds, which `components` gives. No plugin is asked about such a spec
            unless it says that it takes them.
    """
    if isinstance(spec.resources, HeterogeneousResources):
        msg = "resources() is for slots of one kind; use components() for HeterogeneousResources"
        raise TypeError(msg)
    return components(spec.resources)[0]


def node_count(resources: ResourceSpecV1) -> int | None:
    """How many nodes a job wants; None leaves it to the batch system (J/PSI 0: setProcessCount).

    >>> node_count(ResourceSpecV1(process_count=4))
    >>> node_count(ResourceSpecV1(process_count=4, processes_per_node=2))
    2
    """
    if resources.node_count is None and resources.processes_per_node is None:
        return None
    return resources.computed_node_count


def time_limit(spec: JobSpec, config: BatchConfig, unit: timedelta) -> int | None:
    """How long a job may run, in whole units: what it asks for, else what is configured; None is no limit.

    >>> time_limit(JobSpec(), BatchConfig(default_duration=timedelta(seconds=61)), timedelta(minutes=1))
    2
    """
    asked = attributes(spec).duration
    limit = config.default_duration if asked is None else asked
    return units(limit, unit) if limit else None


@overload
def units(amount: int, unit: int) -> int: ...
@overload
def units(amount: timedelta, unit: timedelta) -> int: ...
def units(amount: Any, unit: Any) -> int:
    """An amount in whole units, rounded up, so that a job never gets less than it asked for.

    >>> units(timedelta(seconds=61), timedelta(minutes=1)), units(1025, 1024)
    (2, 2)
    """
    return int(-(-amount // unit))


def dependencies(spec: JobSpec) -> list[Dependency]:
    """What a valid spec waits for."""
    return [Dependency.of(item) for item in attributes(spec).after or ()]
