"""A plan as values: what will be submitted, in which order, with which resources, and why.

The planner makes it; the driver submits its entries, and reports show it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from ..document import NO_ATTRIBUTES, Attributes, Ready, Shape, Step, When


class Kind(enum.Enum):
    """The kind of an entry: how it runs."""

    #: One job.
    JOB = "job"
    #: A job for each replica, submitted together: used on remote targets, which cannot run tasks inside an
    #: allocation.
    ARRAY = "array"
    #: One job for the tasks of a group, or for the replicas of a task in no group.
    ALLOCATION = "allocation"
    #: Steps on files only, which need no job, and no share of an allocation.
    FILES = "files"
    #: A task that runs in an allocation, on a share of it.
    TASK = "task"
    #: A group in an allocation, which has a share of it.
    POOL = "pool"
    #: A command that runs in an allocation without a share of it, while later entries wait.
    LOCAL = "local"
    #: A task that runs until all others have ended, in an allocation or as a job for each replica.
    SERVICE = "service"


@attrs.frozen(slots=True)
class After:
    """A dependency of an entry: the id of another one, and when it is met."""

    id: str
    #: `ok`, `any`, `failed` or `started`.
    when: str = "ok"
    #: True if each replica waits only for the replica of the same number.
    each: bool = False


@attrs.frozen(slots=True, kw_only=True)
class Entry:
    """A unit of a plan: a job, an array, an allocation, or something inside of one."""

    #: Its name after those of the groups around it: `training/fit`.
    id: str
    kind: Kind
    #: For the replicas of a task that have an allocation of their own: the name of the task, which names
    #: both.
    task: str = ""
    #: The words of its command; empty if it has none.
    command: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    #: What happens to the files of its steps, a sentence each.
    files: tuple[str, ...] = ()
    #: Paths that each of its processes first provides on its node, as it, or a dependency, stages them.
    staged: tuple[str, ...] = ()
    replicas: int = 1
    #: The names of the chosen resources; empty if none were named.
    resources: str = ""
    #: True if it runs on the first node of an allocation, without a share of it.
    is_local: bool = False
    #: The share of each replica; None is all that the group has, or nothing for local entries.
    shape: Shape | None = None
    #: Inside of a group, alternatives to `shape`; the driver takes the first one that there is room for.
    others: tuple[tuple[str, Shape], ...] = ()
    after: tuple[After, ...] = ()
    when: When = When.ON_SUCCESS
    attributes: Attributes = NO_ATTRIBUTES
    #: Options of the batch system that express the requirements.
    constraints: Mapping[str, Any] = attrs.field(factory=dict)
    ready: Ready | None = None
    #: True if a group around it is watched.
    is_shown: bool = False
    #: Reasons of the planner's decisions, a sentence each.
    why: tuple[str, ...] = ()
    #: How its duration follows from that of its replicas; empty if it does not.
    why_duration: str = ""
    #: Parts of the document that the plan leaves out, a sentence each.
    lost: tuple[str, ...] = ()
    #: The entries of a group, each after its dependencies.
    inside: tuple[Entry, ...] = ()

    @property
    def label(self) -> str:
        """Its kind, and the number of its replicas if it has several."""
        return self.kind.value + (f" x {self.replicas}" if self.replicas > 1 else "")

    @property
    def name(self) -> str:
        """The last part of its id."""
        return self.id.rpartition("/")[2]

    @property
    def shapes(self) -> list[Shape]:
        """The share of each replica, and the alternatives to it; empty if it has all of the group."""
        return [] if self.shape is None else [self.shape, *(it for _, it in self.others)]

    @property
    def is_watched(self) -> bool:
        """True if its output is shown as it comes; a group writes that of its watched tasks, or of all."""
        return self.is_shown or any(it.attributes.watch for it in self.walk())

    @property
    def replicated(self) -> Entry | None:
        """The task whose replicas an allocation runs; None for the allocation of a group, and without one."""
        return next((it for it in self.inside if it.task), None)

    def walk(self) -> Iterator[Entry]:
        """Yield the entry and all that are inside of it."""
        yield self
        for entry in self.inside:
            yield from entry.walk()


@attrs.frozen(slots=True, kw_only=True)
class Plan:
    """The plan of a document on one target."""

    #: The name of the document.
    source: str
    #: The name of the executor, or of the target.
    target: str
    #: The entries, each after its dependencies.
    entries: tuple[Entry, ...]

    @property
    def requests(self) -> int:
        """The number of jobs that the plan submits."""
        return sum(it.replicas for it in self.entries if it.kind is not Kind.FILES)
