"""A job of a fake batch system, its states and its simulated outcome.

The fake of a backend makes a `FakeJob` from the request; the scheduler runs it. A job may wait for others, or
for a limit of its array.
"""

from __future__ import annotations

import enum
import functools
import os
import pwd
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from jpsi.plugin import DependencyKind


class FakeState(enum.Enum):
    """The state of a job of a fake batch system; the fake of a backend prints its own words for them."""

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
        """True if the job has ended."""
        return self not in _UNFINISHED

    def meets(self, kind: DependencyKind) -> bool | None:
        """Return True if this state satisfies a dependency of this kind, None if a later state may.

        >>> FakeState.FAILED.meets(DependencyKind.NOTOK), FakeState.RUNNING.meets(DependencyKind.ANY)
        (True, None)
        """
        if not self.final:
            return None
        return kind is DependencyKind.ANY or (self is FakeState.COMPLETED) == (kind is DependencyKind.OK)


_UNFINISHED = frozenset({FakeState.PENDING, FakeState.HELD, FakeState.RUNNING})


@attrs.frozen(slots=True)
class Outcome:
    """The outcome of a simulated job: no process runs, and the job changes with the clock only."""

    #: The time for which it runs, in seconds.
    seconds: float = 0.0
    #: Its exit code; -n if signal n ends it.
    exit_code: int = 0


def _user() -> str:
    return pwd.getpwuid(os.getuid()).pw_name


def _file(path: str | None) -> str | None:
    return None if path == os.devnull else path


@attrs.define(slots=True, eq=False)
class FakeJob:
    """A job of a fake batch system.

    A fake's submit command sets the first half of the fields; the scheduler sets the second. Times are
    seconds since 1970.
    """

    native_id: str
    #: The job's batch script; its `#!` line names the interpreter.
    script: str = attrs.field(default="", kw_only=True)
    #: The arguments of the script, `$1` and so on.
    arguments: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    name: str = attrs.field(default="", kw_only=True)
    #: Any text by which a client can find the job again, such as a comment.
    tag: str = attrs.field(default="", kw_only=True)
    owner: str = attrs.field(factory=_user, kw_only=True)
    queue: str = attrs.field(default="", kw_only=True)
    project: str = attrs.field(default="", kw_only=True)
    #: The whole environment of the script, with the variables of the batch system.
    environment: dict[str, str] = attrs.field(factory=dict, kw_only=True)
    #: Variables of the environment that name a file, with the file's content; written again for each start.
    files: dict[str, str] = attrs.field(factory=dict, kw_only=True)
    #: The working directory of the script; a missing one fails the job.
    directory: str = attrs.field(default="/", kw_only=True)
    #: The file for the script's output, relative to its directory; None is /dev/null.
    stdout: str | None = attrs.field(default=None, converter=_file, kw_only=True)
    stderr: str | None = attrs.field(default=None, converter=_file, kw_only=True)
    #: The number of the scheduler's slots that it takes.
    slots: int = attrs.field(default=1, kw_only=True)
    #: Its time limit, in seconds; None is no limit.
    time_limit: float | None = attrs.field(default=None, kw_only=True)
    #: The earliest time of its start.
    begin: float = attrs.field(default=0.0, kw_only=True)
    #: Returns why the job may not start now, or None: a dependency, a limit. Called under the lock.
    blocked: Callable[[], str | None] | None = attrs.field(default=None, kw_only=True)
    #: Called under the scheduler's lock before each start, to set variables such as the number of restarts.
    starting: Callable[[FakeJob], None] | None = attrs.field(default=None, kw_only=True)
    #: The number of the array of which the job is an element; "" for other jobs.
    array: str = attrs.field(default="", kw_only=True)
    #: The index of the element.
    index: int = attrs.field(default=0, kw_only=True)
    #: Further values for the fake's own use.
    attributes: dict[str, Any] = attrs.field(factory=dict, kw_only=True)
    #: Submit a job as HELD to have it wait for `release`.
    state: FakeState = attrs.field(default=FakeState.PENDING, kw_only=True)

    #: The state that the job will have once its processes are gone, such as after a cancel.
    ending: FakeState | None = attrs.field(default=None, init=False)
    submitted: float = attrs.field(default=0.0, init=False)
    started: float | None = attrs.field(default=None, init=False)
    ended: float | None = attrs.field(default=None, init=False)
    #: The exit code of the script; None while it runs, and if a signal ended it.
    exit_code: int | None = attrs.field(default=None, init=False)
    #: The signal that ended the script.
    signal: int | None = attrs.field(default=None, init=False)
    #: The number of times that the job was requeued.
    restarts: int = attrs.field(default=0, init=False)
    #: Why the job is pending, or ended as it did, if known: `resources`, `held`, `begin`, `node`, `launch
    #: failed: …`, or the text that `blocked` returned.
    why: str = attrs.field(default="", init=False)

    @property
    def is_own(self) -> bool:
        """True if it is a job of the user who runs this fake."""
        return self.owner == _user()

    @property
    def number(self) -> str:
        """The number of the job, which all elements of an array share."""
        return self.array or self.native_id

    @property
    def failed_to_start(self) -> bool:
        """True if the script could not be started, such as for a missing directory."""
        return self.why.startswith("launch failed")

    @property
    def shell_code(self) -> int:
        """The exit code as a shell reports it: 128+n after signal n."""
        return 128 + self.signal if self.signal is not None else self.exit_code or 0


def job_with_reused_id(lost: FakeJob, script: str) -> FakeJob:
    """Return another user's job with the same native id and shape; nothing in it has the tag."""

    def is_without_tag(value: object) -> bool:
        return not lost.tag or not isinstance(value, str) or lost.tag not in value

    return FakeJob(
        lost.native_id,
        script=script,
        name="foreign",
        queue=lost.queue,
        project=lost.project,
        environment={name: value for name, value in lost.environment.items() if is_without_tag(value)},
        directory=lost.directory,
        slots=lost.slots,
        time_limit=lost.time_limit,
        starting=lost.starting,
        array=lost.array,
        index=lost.index,
        attributes={name: value for name, value in lost.attributes.items() if is_without_tag(value)},
    )


def untag(job: FakeJob) -> None:
    """Remove the tag from a job, wherever it carries it."""
    untagged = job_with_reused_id(job, job.script)
    job.name, job.tag = untagged.name, ""
    job.environment, job.attributes = untagged.environment, untagged.attributes


#: Returns why a job may not start now; None if it may.
Blocked = Callable[[], str | None]


def wait_for_jobs(  # noqa: PLR0913  the parts of a rule
    dependencies: Sequence[tuple[DependencyKind, str]],
    known: Callable[[], Iterable[FakeJob]],
    waits: str,
    never: str,
    give_up: Callable[[], object] | None = None,
    *,
    unknown: bool = True,
) -> Blocked | None:
    """Return a function that says why a job may not start yet, or None if it depends on no other.

    Args:
        dependencies: the native ids of the other jobs, each with its kind; that of an array is all its
            elements.
        known: returns the jobs that the batch system knows.
        waits: the reason while other jobs have not ended.
        never: the reason once the job can never start; `{}` in it is the id of the other job.
        give_up: called when the job can never start, for example to cancel it.
        unknown: True if jobs that the batch system does not know satisfy every dependency, False if none.
    """

    def reason() -> str | None:
        states: dict[str, list[FakeState]] = {other: [] for _, other in dependencies}
        # there may be many jobs
        for job in known():
            for name in {job.native_id, job.number} & states.keys():
                states[name].append(job.state)
        results = [
            (other, [it.meets(kind) for it in states[other]] or [unknown]) for kind, other in dependencies
        ]
        failed = next((other for other, met in results if False in met), None)
        if failed is not None:
            if give_up is not None:
                give_up()
            return never.replace("{}", failed)
        return waits if any(None in met for _, met in results) else None

    return reason if dependencies else None


def _is_running(job: FakeJob) -> bool:
    return job.state is FakeState.RUNNING


def limit(
    jobs: Sequence[FakeJob],
    at_a_time: int,
    why: str,
    is_active: Callable[[FakeJob], bool] = _is_running,
) -> None:
    """Let at most `at_a_time` of these jobs run at a time, such as the elements of an array; 0 is no limit.

    The others wait with the reason `why`, unless their own `blocked` already returns a reason. `is_active`
    returns True for a job that runs, or that no one can keep from running.
    """

    def reason(own_reason: Blocked | None) -> str | None:
        found = None if own_reason is None else own_reason()
        is_full = sum(map(is_active, jobs)) >= at_a_time
        return why if found is None and is_full else found

    for job in jobs if at_a_time else ():
        job.blocked = functools.partial(reason, job.blocked)
