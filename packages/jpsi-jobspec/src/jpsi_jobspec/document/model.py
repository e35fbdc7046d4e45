"""The document as values: resources, requirements, tasks and groups, each with its position.

The loader makes them; the rules and the planner read them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import attrs

from jpsi_engine import JOB_ATTRIBUTES

from .problems import NOWHERE, Position


@attrs.frozen(slots=True)
class _Part:
    """A part of a document; parts at different positions are equal if they have the same values."""

    at: Position = attrs.field(default=NOWHERE, eq=False, repr=False, kw_only=True)


@attrs.frozen(slots=True, kw_only=True)
class Attributes(_Part):
    """Attributes of a task, group or resource; None if the document does not set one."""

    #: Zero is no limit.
    duration: timedelta | None = None
    #: Variables to set; None as a value unsets one.
    environment: Mapping[str, str | None] = attrs.field(factory=dict)
    cwd: str | None = None
    #: True if its output is shown as it is written, and later entries wait for its end.
    watch: bool | None = None
    #: Options of one batch system, `<system>.<option>`.
    options: Mapping[str, Any] = attrs.field(factory=dict)
    #: Fields of jobs as job documents have them, such as `queue_name`.
    job: Mapping[str, Any] = attrs.field(factory=dict)

    def overridden_by(self, nearer: Attributes) -> Attributes:
        """Return these attributes, overridden by those that the nearer ones set."""
        return Attributes(
            duration=self.duration if nearer.duration is None else nearer.duration,
            environment={**self.environment, **nearer.environment},
            cwd=self.cwd if nearer.cwd is None else nearer.cwd,
            watch=self.watch if nearer.watch is None else nearer.watch,
            options={**self.options, **nearer.options},
            job={**self.job, **nearer.job},
            at=nearer.at,
        )

    def of_processes(self) -> Attributes:
        """Return these attributes without those of jobs for batch systems."""
        return attrs.evolve(self, job={key: it for key, it in self.job.items() if key not in JOB_ATTRIBUTES})

    def of_job(self) -> Attributes:
        """Return these attributes without the fields of processes, of a job that starts others."""
        return attrs.evolve(self, job={key: it for key, it in self.job.items() if key in JOB_ATTRIBUTES})


#: No attribute is set.
NO_ATTRIBUTES = Attributes()


@attrs.frozen(slots=True, kw_only=True)
class Requirement(_Part):
    """A requirement that a node of a subsystem must meet: a field of its metadata, an attribute, or both."""

    #: The subsystem.
    name: str
    field: str | None = None
    match: str | None = None
    attribute: str | None = None
    value: str | None = None
    #: The matcher that compares values; None chooses it by the form of the wanted value.
    matcher: str | None = None

    def __str__(self) -> str:
        pairs = ((self.field, self.match), (self.attribute, self.value))
        return f"{self.name}: " + " and ".join(f"{key}={value}" for key, value in pairs if key is not None)


@attrs.frozen(slots=True, kw_only=True)
class Vertex(_Part):
    """A kind of hardware, its amount, and what each unit holds."""

    type: str
    #: Units in each vertex that holds it; 1 for memory and storage.
    count: int = 1
    #: True if `replicas` gave the number: each is a slot then, and may be on any node.
    is_replicated: bool = False
    #: Bytes, of memory and storage.
    size: int | None = None
    #: True if no other job shares it.
    is_exclusive: bool = False
    requires: tuple[Requirement, ...] = ()
    children: tuple[Vertex, ...] = ()

    @property
    def is_slot(self) -> bool:
        """True if a process runs in each unit."""
        return self.is_replicated or self.type == "slot"

    def all_requirements(self) -> list[Requirement]:
        """Return the requirements of this and of all vertices inside of it."""
        return [*self.requires, *(it for child in self.children for it in child.all_requirements())]


@attrs.frozen(slots=True, kw_only=True)
class Resource(_Part):
    """A named resource, the unit that tasks and groups ask for."""

    name: str
    vertex: Vertex
    attributes: Attributes = NO_ATTRIBUTES
    #: The value of `schedule`: True if jobs ask for it; None if the document does not set it.
    schedule: bool | None = None


@attrs.frozen(slots=True)
class Expression(_Part):
    """Names joined by `|` and `&`: alternatives in the order of preference, each of one or more names."""

    alternatives: tuple[tuple[str, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Every name in the expression, once."""
        return tuple(dict.fromkeys(name for names in self.alternatives for name in names))

    def __str__(self) -> str:
        return "|".join("&".join(names) for names in self.alternatives)


class When(enum.Enum):
    """The outcome of its dependencies after which a task runs."""

    ON_SUCCESS = "on_success"
    ON_FAILURE = "on_failure"
    ALWAYS = "always"


@attrs.frozen(slots=True, kw_only=True)
class Needed(_Part):
    """A name in `depends_on`."""

    name: str
    #: `ok`, `any`, `failed` or `started`.
    when: str = "ok"
    #: True if each replica waits only for the replica of the same number.
    each: bool = False


@attrs.frozen(slots=True, kw_only=True)
class Step(_Part):
    """A step that handles a file before the command runs."""

    #: `stage`, or `write`.
    name: str
    path: str
    #: The text to write.
    content: str | None = None


@attrs.frozen(slots=True, kw_only=True)
class Ready(_Part):
    """The probe that finds that a service can be used; the document gives one of the three."""

    tcp: str | None = None
    file: str | None = None
    command: tuple[str, ...] = ()


@attrs.frozen(slots=True, kw_only=True)
class Requester(_Part):
    """A task or a group: what it needs, and what it waits for."""

    #: The name in the document, or a generated id.
    name: str
    resources: Expression | None = None
    requires: Expression | None = None
    depends_on: tuple[Needed, ...] | None = None
    attributes: Attributes = NO_ATTRIBUTES


@attrs.frozen(slots=True, kw_only=True)
class Task(Requester):
    """An item of a list of tasks: a command, a reference to a group, or steps alone."""

    #: False if its name was generated.
    is_named: bool = True
    #: The words of the command; empty if the task has none.
    command: tuple[str, ...] = ()
    #: The group that the task names.
    group: str | None = None
    steps: tuple[Step, ...] = ()
    replicas: int = 1
    is_local: bool = False
    is_service: bool = False
    ready: Ready | None = None
    when: When | None = None


@attrs.frozen(slots=True, kw_only=True)
class Group(Requester):
    """Tasks that run in one allocation."""

    tasks: tuple[Task, ...] = ()


@attrs.frozen(slots=True, kw_only=True)
class Document:
    """A whole workflow."""

    source: str = "<document>"
    resources: Mapping[str, Resource] = attrs.field(factory=dict)
    requires: Mapping[str, tuple[Requirement, ...]] = attrs.field(factory=dict)
    tasks: tuple[Task, ...] = ()
    groups: Mapping[str, Group] = attrs.field(factory=dict)
    attributes: Attributes = NO_ATTRIBUTES
    #: Kept for the user; jpsi never reads it.
    user: Any = None

    def all_tasks(self) -> Iterator[Task]:
        """Yield every task: those at the top, then those of each group."""
        yield from self.tasks
        for group in self.groups.values():
            yield from group.tasks

    def top_items(self) -> list[Requester]:
        """Return the tasks at the top, and the groups that are in no other group."""
        inside = {it.group for group in self.groups.values() for it in group.tasks}
        return [*self.tasks, *(it for it in self.groups.values() if it.name not in inside)]
