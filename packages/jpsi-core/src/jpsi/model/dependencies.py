"""The dependencies of a job: other jobs that it waits for, the forms of their ids, and how they must end."""

from __future__ import annotations

import enum
import re
from typing import Protocol, TypeGuard, runtime_checkable

import attrs

from jpsi.model.states import JobState, JobStatus

_LONGEST_ID = 200
# It becomes the name of a directory.
_JOB_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*\Z")
_NATIVE_ID = re.compile(r"(?!-)[!-~]+\Z")


class DependencyKind(enum.Enum):
    """The way in which another job must have ended before a job may start."""

    #: The other job is COMPLETED.
    OK = "ok"
    #: The other job has ended in any final state.
    ANY = "any"
    #: The other job is FAILED or CANCELED.
    NOTOK = "notok"

    def is_met(self, state: JobState) -> bool | None:
        """Return True if a job in this state satisfies the dependency; None while the job is not final.

        >>> DependencyKind.OK.is_met(JobState.FAILED), DependencyKind.NOTOK.is_met(JobState.FAILED)
        (False, True)
        """
        if not state.final:
            return None
        return self is DependencyKind.ANY or (state is JobState.COMPLETED) == (self is DependencyKind.OK)


@runtime_checkable
class OtherJob(Protocol):
    """A job as its dependents see it; a `Job` is one."""

    @property
    def id(self) -> str:
        """The id that jpsi gave the job."""

    @property
    def native_id(self) -> str | None:
        """The id that the backend gave the job; None before it was submitted."""

    @property
    def status(self) -> JobStatus:
        """Its latest status."""


def _kind(value: DependencyKind | str) -> DependencyKind | str:
    # A value that is no kind stays as it is: `problems` reports it at submit.
    is_name = isinstance(value, str) and value in {kind.value for kind in DependencyKind}
    return DependencyKind(value) if is_name else value


@attrs.frozen(slots=True)
class Dependency:
    """A job that another waits for."""

    #: A submitted Job, or the native id of a job or an array of the same batch system.
    job: OtherJob | str
    #: The way in which it must have ended; `"ok"`, `"any"` and `"notok"` are accepted as well.
    kind: DependencyKind = attrs.field(default=DependencyKind.OK, converter=_kind)

    @classmethod
    def of(cls, item: Dependency | OtherJob | str) -> Dependency:
        """Return the dependency for an item of `JobAttributes.after`: a job alone must be COMPLETED."""
        return item if isinstance(item, Dependency) else cls(item)

    @property
    def native_id(self) -> str | None:
        """The native id of the job; None if it was not submitted yet."""
        return self.job if isinstance(self.job, str) else self.job.native_id

    def describe_unmet(self, name: str, state: JobState) -> str:
        """Return why a job can never start whose dependency, of this name, ended in this state."""
        required = "complete" if self.kind is DependencyKind.OK else "fail"
        return f"attributes.after waits for the job {name} to {required}, but it is {state.value}"


def is_job_id(text: object) -> TypeGuard[str]:
    """Return True if `text` can be the id that jpsi gave a job.

    >>> is_job_id("06c9a39d-1"), is_job_id("../06c9a39d"), is_job_id("")
    (True, False, False)
    """
    return isinstance(text, str) and len(text) <= _LONGEST_ID and _JOB_ID.match(text) is not None


def is_native_id(text: object) -> TypeGuard[str]:
    """Return True if `text` can be a native id: one printable word that no command takes for an option.

    >>> is_native_id("4711.pbs"), is_native_id("-1"), is_native_id("4711 4712")
    (True, False, False)
    """
    return isinstance(text, str) and len(text) <= _LONGEST_ID and _NATIVE_ID.match(text) is not None
