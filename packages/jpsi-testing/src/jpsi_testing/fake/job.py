"""What a fake batch system knows about a job."""

from __future__ import annotations

import enum
import os
import pwd
from collections.abc import Callable
from typing import Any

import attrs

from jpsi.plugin import DependencyKind


class FakeState(enum.Enum):
    """Where a job of a fake batch system stands; a dialect has its own words for these."""

    PENDING = "pending"
    HELD = "held"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    NODE_FAIL = "node_fail"
    OUT_OF_MEMORY = "out_of_memory"

    @property
    def final(self) -> bool:
        """Whether the job has ended."""
        return self not in _UNFINISHED

    def meets(self, kind: DependencyKind) -> bool | None:
        """Whether it satisfies a dependency of this kind; None while it may or may not come to that.

        >>> FakeState.FAILED.meets(DependencyKind.NOTOK), FakeState.RUNNING.meets(DependencyKind.ANY)
        (True, None)
        """
        if not self.final:
            return None
        return kind is DependencyKind.ANY or (self is FakeState.COMPLETED) == (kind is DependencyKind.OK)


_UNFINISHED = frozenset({FakeState.PENDING, FakeState.HELD, FakeState.RUNNING})


@attrs.frozen(slots=True)
class Outcome:
    """How a job goes that is only played: no process runs, and the clock alone moves it."""

    #: How long it runs.
    seconds: float = 0.0
    #: Its exit code; -n if signal n ends it.
    exit_code: int = 0


def _user() -> str:
    return pwd.getpwuid(os.getuid()).pw_name


def _file(path: str | None) -> str | None:
    return None if path == os.devnull else path


@attrs.define(slots=True, eq=False)
class FakeJob:
    """One job of a fake batch system.

    The first half is what a dialect's submit command fills in; the second half is the scheduler's. Times are
    seconds since 1970.
    """

    native_id: str
    #: What the job runs, as a batch script; its `#!` line says by what.
    script: str = attrs.field(default="", kw_only=True)
    #: What the script finds as `$1` and so on.
    arguments: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    name: str = attrs.field(default="", kw_only=True)
    #: Any text by which the job can be found again, such as a comment.
    tag: str = attrs.field(default="", kw_only=True)
    owner: str = attrs.field(factory=_user, kw_only=True)
    queue: str = attrs.field(default="", kw_only=True)
    project: str = attrs.field(default="", kw_only=True)
    #: The whole environment of the script, the variables of the batch system among them.
    environment: dict[str, str] = attrs.field(factory=dict, kw_only=True)
    #: Variables of the environment that name a file, with what stands in it; made anew for each start.
    files: dict[str, str] = attrs.field(factory=dict, kw_only=True)
    #: Where the script runs; a directory that is not there fails the job.
    directory: str = attrs.field(default="/", kw_only=True)
    #: Where the script's output goes, relative to its directory; None is /dev/null.
    stdout: str | None = attrs.field(default=None, converter=_file, kw_only=True)
    stderr: str | None = attrs.field(default=None, converter=_file, kw_only=True)
    #: How much of the scheduler's capacity it takes.
    slots: int = attrs.field(default=1, kw_only=True)
    #: How long it may run, in seconds; None is no limit.
    time_limit: float | None = attrs.field(default=None, kw_only=True)
    #: When it may start at the earliest.
    begin: float = attrs.field(default=0.0, kw_only=True)
    #: Says why the job may not start now, or None: a dependency, a limit. Asked under the scheduler's lock.
    blocked: Callable[[], str | None] | None = attrs.field(default=None, kw_only=True)
    #: Called under the scheduler's lock before each start, to set variables such as the number of restarts.
    starting: Callable[[FakeJob], None] | None = attrs.field(default=None, kw_only=True)
    #: Whatever else a dialect wants to remember.
    attributes: dict[str, Any] = attrs.field(factory=dict, kw_only=True)
    #: Submit a job as HELD to have it wait for `release`.
    state: FakeState = attrs.field(default=FakeState.PENDING, kw_only=True)

    #: The state that the job has been asked to end with and will have once its processes are gone.
    ending: FakeState | None = attrs.field(default=None, init=False)
    submitted: float = attrs.field(default=0.0, init=False)
    started: float | None = attrs.field(default=None, init=False)
    ended: float | None = attrs.field(default=None, init=False)
    #: The exit code of the script; None while it runs, and if a signal ended it.
    exit_code: int | None = attrs.field(default=None, init=False)
    #: The signal that ended the script.
    signal: int | None = attrs.field(default=None, init=False)
    #: How often the job was put back to run again.
    restarts: int = attrs.field(default=0, init=False)
    #: Why the job is pending, or ended as it did, where that can be said: `resources`, `held`, `begin`,
    #: `node`, `launch failed: …`, or what `blocked` answered.
    why: str = attrs.field(default="", init=False)

    @property
    def is_own(self) -> bool:
        """Whether it is a job of the user who has this fake, and not of somebody else."""
        return self.owner == _user()


def strangers(lost: FakeJob, script: str) -> FakeJob:
    """A job of the same native id and shape that somebody else submits: nothing in it has the tag."""

    def is_kept(value: object) -> bool:
        return not lost.tag or not isinstance(value, str) or lost.tag not in value

    return FakeJob(
        lost.native_id,
        script=script,
        name="stranger",
        queue=lost.queue,
        project=lost.project,
        environment={name: value for name, value in lost.environment.items() if is_kept(value)},
        directory=lost.directory,
        slots=lost.slots,
        time_limit=lost.time_limit,
        starting=lost.starting,
        attributes={name: value for name, value in lost.attributes.items() if is_kept(value)},
    )


def untag(job: FakeJob) -> None:
    """Have nothing in a job carry its tag."""
    kept = strangers(job, job.script)
    job.name, job.tag, job.environment, job.attributes = kept.name, "", kept.environment, kept.attributes
