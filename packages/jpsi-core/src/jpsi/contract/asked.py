"""What a spec asks for, in forms that most batch systems want: for backends, which all need them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, overload

from jpsi.contract.config import BatchConfig
from jpsi.contract.shell import Directive
from jpsi.model.dependencies import Dependency
from jpsi.model.resources import ResourceSpecV1
from jpsi.model.spec import JobAttributes, JobSpec

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
    return spec.attributes or JobAttributes()


def resources(spec: JobSpec) -> ResourceSpecV1:
    """The resources of a valid spec; one process if it gives none."""
    return spec.resources if isinstance(spec.resources, ResourceSpecV1) else ResourceSpecV1()


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


def duration(spec: JobSpec, config: BatchConfig) -> timedelta:
    """How long a job may run: what it asks for, else what is configured; zero is no limit."""
    asked = None if spec.attributes is None else spec.attributes.duration
    return config.default_duration if asked is None else asked


def custom_options(spec: JobSpec, system: str) -> dict[str, Any]:
    """The custom attributes `<system>.<option>` of a spec, by option; the case of the system is ignored.

    >>> custom_options(JobSpec(attributes=JobAttributes(custom_attributes={"PBS.q": 1, "x.q": 2})), "pbs")
    {'q': 1}
    """
    custom = None if spec.attributes is None else spec.attributes.custom_attributes
    start = f"{system}."
    return {
        name[len(start) :]: value for name, value in (custom or {}).items() if name.lower().startswith(start)
    }


def option_text(value: object) -> str | None:
    """What a custom attribute says behind an option's name; None for an option without a value."""
    return None if value is None or isinstance(value, bool) else str(value)


def custom_problems(
    spec: JobSpec, system: str, name: re.Pattern[str], example: str, refused: Mapping[str, str]
) -> Iterator[str]:
    """What is wrong with the custom attributes for one system, one sentence each.

    Args:
        spec: a valid spec.
        system: how their names begin.
        name: what a whole option looks like.
        example: a good one.
        refused: options that would break what jpsi promises, with what to do instead.
    """
    for option, value in custom_options(spec, system).items():
        where = f"custom attribute {system}.{option}"
        if option in refused:
            yield f"{where} cannot be set: {refused[option]}"
        elif not name.fullmatch(option):
            yield f"{where}: an option's whole name is needed, such as {system}.{example}"
        if value is not None and not isinstance(value, str | int | float):
            yield (
                f"{where} must be text, a number, True for an option without a value, "
                f"or None or False to leave the option out, not {value!r}"
            )


def empty_names(spec: JobSpec) -> Iterator[str]:
    """What is said of names that are given and empty; no batch system has a queue without a name."""
    attributes = spec.attributes or JobAttributes()
    for name in ("queue_name", "project_name", "reservation_id"):
        if getattr(attributes, name) == "":
            yield f"attributes.{name} is empty; None leaves the choice to the batch system"


def unsayable(
    mark: str, options: Iterable[tuple[str, str | None]], *, joint: str = "=", longest: int | None = None
) -> Iterator[str]:
    """Why options cannot be said by directives, one sentence each.

    Args:
        mark: how each directive begins.
        options: names, with dashes, and values.
        joint: what stands between them.
        longest: how many bytes a value may have.
    """
    for option, value in options:
        try:
            Directive.of(mark, option, value, joint=joint)
            length = len((value or "").encode())
        except ValueError as e:
            yield str(e)
        else:
            if longest is not None and length > longest:
                yield f"{option} has {length} bytes, more than the {longest} that are possible"
