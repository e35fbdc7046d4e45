"""A document as values: resources, requirements, tasks and groups, each with its place."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import attrs

from .problems import NOWHERE, Position


@attrs.frozen(slots=True, kw_only=True)
class Attributes:
    """How what has them is to run; None is what was not said."""

    #: Zero is no limit.
    duration: timedelta | None = None
    #: Variables to set; None as a value unsets one.
    environment: Mapping[str, str | None] = attrs.field(factory=dict)
    cwd: str | None = None
    #: Whether its output is shown as it comes, and what stands after it waits for its end.
    watch: bool | None = None
    #: Options of one batch system, `<system>.<option>`.
    options: Mapping[str, Any] = attrs.field(factory=dict)
    #: What nobody acts upon.
    hints: Mapping[str, Any] = attrs.field(factory=dict)
    #: Two are equal if they say the same, wherever they stand.
    at: Position = attrs.field(default=NOWHERE, eq=False, repr=False, kw_only=True)

    def under(self, nearer: Attributes) -> Attributes:
        """These, where the nearer ones say nothing."""
        return Attributes(
            duration=self.duration if nearer.duration is None else nearer.duration,
            environment={**self.environment, **nearer.environment},
            cwd=self.cwd if nearer.cwd is None else nearer.cwd,
            watch=self.watch if nearer.watch is None else nearer.watch,
            options={**self.options, **nearer.options},
            hints={**self.hints, **nearer.hints},
            at=nearer.at,
        )


#: What says nothing.
NO_ATTRIBUTES = Attributes()


@attrs.frozen(slots=True, kw_only=True)
class Requirement:
    """What a node of a subsystem must say of itself: a field of its metadata, an attribute, or both."""

    #: The subsystem.
    name: str
    field: str | None = None
    match: str | None = None
    attribute: str | None = None
    value: str | None = None
    #: How values are compared; None is by the form of what is wanted.
    matcher: str | None = None
    at: Position = attrs.field(default=NOWHERE, eq=False, repr=False, kw_only=True)

    def __str__(self) -> str:
        pairs = ((self.field, self.match), (self.attribute, self.value))
        return f"{self.name}: " + " and ".join(f"{key}={value}" for key, value in pairs if key is not None)


@attrs.frozen(slots=True, kw_only=True)
class Vertex:
    """A kind of hardware, how much of it, and what each of it holds."""

    type: str
    #: How many for each that holds it; of memory and storage, 1.
    count: int = 1
    #: Whether `replicas` said how many: then each is a slot, and they may be anywhere.
    is_replicated: bool = False
    #: Bytes, of memory and storage.
    size: int | None = None
    #: Whether it is shared with no other job.
    is_exclusive: bool = False
    requires: tuple[Requirement, ...] = ()
    holds: tuple[Vertex, ...] = ()
    at: Position = attrs.field(default=NOWHERE, eq=False, repr=False, kw_only=True)

    @property
    def is_slot(self) -> bool:
        """Whether a process runs in each of them."""
        return self.is_replicated or self.type == "slot"


@attrs.frozen(slots=True, kw_only=True)
class Resource:
    """A named resource, the unit that is asked for."""

    name: str
    vertex: Vertex
    attributes: Attributes = NO_ATTRIBUTES
    #: Whether it is one of those that are scheduled; None if it does not say.
    schedule: bool | None = None
    at: Position = attrs.field(default=NOWHERE, eq=False, repr=False, kw_only=True)


@attrs.frozen(slots=True)
class Expression:
    """Names joined by `|` and `&`: alternatives in the order of preference, each of one or more names."""

    alternatives: tuple[tuple[str, ...], ...]
    at: Position = attrs.field(default=NOWHERE, eq=False, repr=False, kw_only=True)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name in it, once."""
        return tuple(dict.fromkeys(name for names in self.alternatives for name in names))

    def __str__(self) -> str:
        return "|".join("&".join(names) for names in self.alternatives)


class When(enum.Enum):
    """After which end of what it waits for something runs."""

    ON_SUCCESS = "on_success"
    ON_FAILURE = "on_failure"
    ALWAYS = "always"


@attrs.frozen(slots=True, kw_only=True)
class Needed:
    """A name in `depends_on`."""

    name: str
    #: `ok`, `any`, `failed` or `started`.
    when: str = "ok"
    #: Whether each replica waits for the one of the same number alone.
    each: bool = False
    at: Position = attrs.field(default=NOWHERE, eq=False, repr=False, kw_only=True)


@attrs.frozen(slots=True, kw_only=True)
class Step:
    """Something about files that is done before the command."""

    #: `stage`, or `write`.
    name: str
    path: str
    #: What to write.
    content: str | None = None
    at: Position = attrs.field(default=NOWHERE, eq=False, repr=False, kw_only=True)


@attrs.frozen(slots=True, kw_only=True)
class Ready:
    """How to see that a service can be used: one of the three is given."""

    tcp: str | None = None
    file: str | None = None
    command: tuple[str, ...] = ()
    at: Position = attrs.field(default=NOWHERE, eq=False, repr=False, kw_only=True)


@attrs.frozen(slots=True, kw_only=True)
class Task:
    """One item of a list of tasks: a command, a reference to a group, or steps alone."""

    #: What it is called, or the id that it got.
    name: str
    is_named: bool = True
    #: What runs, word by word; empty if nothing does.
    command: tuple[str, ...] = ()
    #: The group that stands here.
    group: str | None = None
    steps: tuple[Step, ...] = ()
    resources: Expression | None = None
    requires: Expression | None = None
    replicas: int = 1
    depends_on: tuple[Needed, ...] | None = None
    is_local: bool = False
    is_service: bool = False
    ready: Ready | None = None
    when: When | None = None
    attributes: Attributes = NO_ATTRIBUTES
    at: Position = attrs.field(default=NOWHERE, eq=False, repr=False, kw_only=True)


@attrs.frozen(slots=True, kw_only=True)
class Group:
    """Tasks that run in one allocation."""

    name: str
    tasks: tuple[Task, ...] = ()
    resources: Expression | None = None
    requires: Expression | None = None
    depends_on: tuple[Needed, ...] | None = None
    attributes: Attributes = NO_ATTRIBUTES
    at: Position = attrs.field(default=NOWHERE, eq=False, repr=False, kw_only=True)


@attrs.frozen(slots=True, kw_only=True)
class Document:
    """A whole workflow."""

    source: str = "<document>"
    resources: Mapping[str, Resource] = attrs.field(factory=dict)
    requires: Mapping[str, tuple[Requirement, ...]] = attrs.field(factory=dict)
    tasks: tuple[Task, ...] = ()
    groups: Mapping[str, Group] = attrs.field(factory=dict)
    attributes: Attributes = NO_ATTRIBUTES
    #: Carried, and never read.
    user: Any = None
