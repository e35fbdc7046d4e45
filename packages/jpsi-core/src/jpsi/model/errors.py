"""What can go wrong, as one tree of exceptions.

    JpsiError
    ├── InvalidJobException        the job itself: its spec or its state
    │   └── DocumentError          a job document that cannot be read or written
    ├── SubmitException            anything else that kept a request from reaching the backend
    │   ├── BulkException          a request about many jobs that some of them kept from being done
    │   ├── TransferError          a file could not be read, written or moved
    │   └── TransportError         a command could not be run, or it is unknown how it ended
    ├── UnreachableStateException  wait(): none of the target states can be reached any more
    ├── PluginError                an executor or launcher is missing, broken or ambiguous
    └── ConfigError                a configuration value that cannot be used

`str(error)` is always a sentence for an end user, in which all that is not printable, but for line ends, is
escaped; what a developer needs is in `__cause__`, in the notes, and in `exception`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from jpsi.model.printable_text import one_line, printable

if TYPE_CHECKING:
    from jpsi.model.states import JobStatus


#: A `Job`: that class stands above these, and a program needs all of it, such as to submit the job again.
AnyJob = Any


class JpsiError(Exception):
    """The common root of every exception that jpsi raises on purpose.

    Plain misuse of the API (a wrong argument type, say) raises `TypeError` or `ValueError` instead.
    """

    def __init__(self, message: str, exception: BaseException | None = None) -> None:
        # whatever users and other programs have brought into it, it can be printed anywhere
        message = printable(message)
        super().__init__(message)
        #: The sentence for an end user.
        self.message = message
        #: The underlying exception, if there is one; for debugging, not for end users.
        self.exception = exception

    def __str__(self) -> str:
        return self.message


class InvalidJobException(JpsiError):
    """The job can never be accepted as it stands: its spec or its state is wrong.

    Nothing was submitted and the job is unchanged.
    """

    def __init__(
        self,
        message: str,
        exception: BaseException | None = None,
        *,
        problems: Sequence[str] = (),
    ) -> None:
        super().__init__(message, exception)
        #: Everything that is wrong, one sentence each; never empty.
        self.problems: tuple[str, ...] = tuple(map(one_line, problems)) or (self.message,)

    @classmethod
    def of(cls, subject: str, problems: Sequence[str]) -> Self:
        """One exception that names every problem found in `subject`."""
        lines = list(map(one_line, problems))
        return cls(_listed(f"{subject} is not valid", lines), problems=lines)


class DocumentError(InvalidJobException):
    """A job document does not say what a job document must say."""


class DocumentWarning(UserWarning):
    """A job document says something that this jpsi carries or ignores, but does not act on."""


class SubmitException(JpsiError):
    """A request did not reach the backend, for a reason that does not lie in the job."""

    def __init__(
        self,
        message: str,
        exception: BaseException | None = None,
        *,
        transient: bool = False,
    ) -> None:
        super().__init__(message, exception)
        #: Whether the same request may succeed later (J/PSI 0: SubmitException.isTransient).
        self.transient = transient

    def is_transient(self) -> bool:
        """The same as `transient`."""
        return self.transient


class BulkException(SubmitException):
    """A request about many jobs was done for some of them, or for none.

    `transient` is true if that is what all failures are.
    """

    def __init__(
        self,
        message: str,
        exception: BaseException | None = None,
        *,
        transient: bool = False,
        done: Sequence[AnyJob] = (),
        failed: Mapping[AnyJob, JpsiError] | None = None,
    ) -> None:
        super().__init__(message, exception, transient=transient)
        #: The jobs for which it was done, in the order in which they were given.
        self.done: tuple[AnyJob, ...] = tuple(done)
        #: The jobs for which it was not, in that order, each with the reason.
        self.failed: Mapping[AnyJob, JpsiError] = {} if failed is None else dict(failed)

    @classmethod
    def of(cls, what: str, done: Sequence[AnyJob], failed: Mapping[AnyJob, JpsiError]) -> Self:
        """One exception for all jobs for which `what`, such as "submitted", could not be done."""
        reasons = list(dict.fromkeys(str(error) for error in failed.values()))
        more = f"; and {len(reasons) - _TOLD} other reasons" if len(reasons) > _TOLD else ""
        told = "; ".join(reasons[:_TOLD])
        return cls(
            f"{len(failed)} of {len(done) + len(failed)} jobs could not be {what}: {told}{more}",
            next(iter(failed.values()), None),
            transient=all(isinstance(it, SubmitException) and it.transient for it in failed.values()),
            done=done,
            failed=failed,
        )


# How many different reasons a message tells.
_TOLD = 3


class TransferError(SubmitException):
    """A file could not be read, written or moved to where jobs run or from there.

    The message names it, and the cause. Where the connection is what failed, it is a `TransportError`.
    """


class TransportError(SubmitException):
    """A command could not be run where the backend is, or it is unknown how it ended."""

    def __init__(
        self,
        message: str,
        exception: BaseException | None = None,
        *,
        transient: bool = False,
        may_have_run: bool = False,
    ) -> None:
        super().__init__(message, exception, transient=transient)
        #: Whether the command may have run all the same.
        self.may_have_run = may_have_run


class UnreachableStateException(JpsiError):
    """None of the states that `Job.wait` was asked for can be reached any more."""

    def __init__(self, message: str, status: JobStatus) -> None:
        super().__init__(message)
        #: The status from which it follows that the target states cannot be reached.
        self.status = status

    def get_status(self) -> JobStatus:
        """The same as `status`."""
        return self.status

    def __reduce__(self) -> tuple[type, tuple[str, JobStatus]]:
        return type(self), (self.message, self.status)


class PluginError(JpsiError):
    """An executor or launcher that was asked for is missing, broken or ambiguous."""


class ConfigError(JpsiError):
    """A configuration value that cannot be used."""


def _listed(subject: str, problems: Sequence[str]) -> str:
    if len(problems) == 1:
        return f"{subject}: {problems[0]}"
    return f"{subject}:" + "".join(f"\n  - {problem}" for problem in problems)
