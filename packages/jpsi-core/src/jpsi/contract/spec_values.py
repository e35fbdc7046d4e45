"""The requests of a spec in the forms that most batch systems need: helpers that all backends share."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeVar

from jpsi.model import Dependency, HeterogeneousResources, JobSpec, ResourceSpecV1, components

Amount = TypeVar("Amount", int, timedelta)
#: Environment variables by which an MPI library, or the program that started it, gives a process its rank. A
#: job that is submitted from such a process must not inherit them, or its own ranks would not find each
#: other.
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


def resources(spec: JobSpec) -> ResourceSpecV1:
    """Return the resources of a valid spec whose slots are of one kind; one process if it gives none.

    Raises:
        TypeError: there are several kinds, which `components` returns. A plugin only receives such a spec if
            it declares support for it.
    """
    if isinstance(spec.resources, HeterogeneousResources):
        raise TypeError("resources() is for slots of one kind; use components() for HeterogeneousResources")
    return components(spec.resources)[0]


def node_count(resources: ResourceSpecV1) -> int | None:
    """Return the number of nodes of a job; None leaves it to the batch system (J/PSI 0: setProcessCount).

    >>> node_count(ResourceSpecV1(process_count=4))
    >>> node_count(ResourceSpecV1(process_count=4, processes_per_node=2))
    2
    """
    if resources.node_count is None and resources.processes_per_node is None:
        return None
    return resources.computed_node_count


def units(amount: Amount, unit: Amount) -> int:
    """Convert an amount to whole units, rounded up, so that a job never gets less than it requested.

    >>> units(timedelta(seconds=61), timedelta(minutes=1)), units(1025, 1024)
    (2, 2)
    """
    return -(-amount // unit)


def dependencies(spec: JobSpec) -> list[Dependency]:
    """Return the dependencies of a valid spec."""
    return [Dependency.of(item) for item in spec.attributes.after or ()]
