"""A plan, as values: what will be submitted, in which order, with what, and why."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from ..document import NO_ATTRIBUTES, Attributes, Ready, Shape, Step, When


class Kind(enum.Enum):
    """What an entry becomes."""

    #: One job.
    JOB = "job"
    #: A job for each replica, submitted together: on another machine, where nothing runs the inside of one.
    ARRAY = "array"
    #: One job, in which the tasks of a group run, or the replicas of a task that is in no group.
    ALLOCATION = "allocation"
    #: Steps about files alone, which take no job, and no part of an allocation.
    FILES = "files"
    #: Something that runs in an allocation, on a part of it.
    TASK = "task"
    #: A group in an allocation, which has a part of it.
    POOL = "pool"
    #: A command that runs in an allocation without a part of it, while what stands after it waits.
    LOCAL = "local"
    #: Something that runs until all else has ended, in an allocation or as a job for each replica.
    SERVICE = "service"


@attrs.frozen(slots=True)
class After:
    """What an entry waits for: the id of another, and which end of it."""

    id: str
    #: `ok`, `any`, `failed` or `started`.
    when: str = "ok"
    #: Whether each replica waits for the one of the same number alone.
    each: bool = False


@attrs.frozen(slots=True, kw_only=True)
class Entry:
    """One thing that will run."""

    #: Its name, behind those of the groups that it stands in: `training/fit`.
    id: str
    kind: Kind
    #: Of replicas that have an allocation of their own, the name of their task, which is that of both.
    task: str = ""
    #: The words of its command; empty of what has none.
    command: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    #: What becomes of the files of its steps, a sentence each.
    files: tuple[str, ...] = ()
    #: What each of its processes first sees to on its node: paths that it, or what it waits for, stages.
    staged: tuple[str, ...] = ()
    replicas: int = 1
    #: The resources that were chosen, by their names; empty if none were named.
    resources: str = ""
    #: Whether it runs on the first node of an allocation, without a part of it.
    is_local: bool = False
    #: What each replica has; None is all that the group has, or nothing for what is local.
    shape: Shape | None = None
    #: Inside of a group, where the choice is made when there is room: what may be taken instead.
    others: tuple[tuple[str, Shape], ...] = ()
    after: tuple[After, ...] = ()
    when: When = When.ON_SUCCESS
    attributes: Attributes = NO_ATTRIBUTES
    #: Options of the batch system that the requirements come to.
    constraints: Mapping[str, Any] = attrs.field(factory=dict)
    ready: Ready | None = None
    #: Whether a group that it stands in is watched.
    is_shown: bool = False
    #: Why it is as it is, a sentence each.
    why: tuple[str, ...] = ()
    #: What the document says that it does not come to, a sentence each.
    lost: tuple[str, ...] = ()
    #: Of a group: its tasks, each after what it waits for.
    inside: tuple[Entry, ...] = ()

    @property
    def name(self) -> str:
        """The last part of its id."""
        return self.id.rpartition("/")[2]

    @property
    def is_watched(self) -> bool:
        """True if what it writes is shown as it comes; a group writes what is watched in it, or all."""
        return self.is_shown or any(it.attributes.watch for it in self.walk())

    @property
    def replicated(self) -> Entry | None:
        """The task whose replicas an allocation runs; None if it is that of a group, or no allocation."""
        return next((it for it in self.inside if it.task), None)

    def walk(self) -> Iterator[Entry]:
        """It and all that is inside of it."""
        yield self
        for entry in self.inside:
            yield from entry.walk()


@attrs.frozen(slots=True, kw_only=True)
class Plan:
    """What a document comes to on one target."""

    #: What the document is called.
    source: str
    #: The name of the executor, or of the target.
    target: str
    #: Each after what it waits for.
    entries: tuple[Entry, ...]

    def walk(self) -> Iterator[Entry]:
        """Every entry, each before what is inside of it."""
        for entry in self.entries:
            yield from entry.walk()

    @property
    def requests(self) -> int:
        """How many jobs are asked for."""
        return sum(it.replicas for it in self.entries if it.kind is not Kind.FILES)
