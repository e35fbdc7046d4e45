"""The exceptions of jpsi, as one tree.

    JpsiError
    ├── InvalidJobException        the job itself: its spec or its state
    │   └── DocumentError          a job document that cannot be read or written
    ├── SubmitException            anything else that kept a request from reaching the backend
    │   ├── BulkException          a request about many jobs that failed for some of them, or for all
    │   ├── TransferError          a file could not be read, written or moved
    │   └── TransportError         a command could not be run, or it is unknown how it ended
    ├── UnreachableStateException  wait(): none of the target states can be reached any more
    ├── PluginError                an executor or launcher is missing, broken or ambiguous
    └── ConfigError                a configuration value that cannot be used

`str(error)` is always a sentence for an end user, in which all unprintable characters except line ends are
escaped; the details for a developer are in `__cause__`, in the notes, and in `exception`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from jpsi.model.states import JobStatus


#: A `Job`: that class is in a higher layer than this module, and a caller needs all of it.
AnyJob = Any


class JpsiError(Exception):
    """The common base of every exception that jpsi raises on purpose.

    Plain misuse of the API (a wrong argument type, say) raises `TypeError` or `ValueError` instead.
    """

    def __init__(self, message: str, exception: BaseException | None = None) -> None:
        # escaped, so that text of users and other programs in it can be printed anywhere
        message = printable(message)
        super().__init__(message)
        #: The sentence for an end user.
        self.message = message
        #: The underlying exception, if there is one; for debugging, not for end users.
        self.exception = exception


class InvalidJobException(JpsiError):
    """The job can never be accepted as it is: its spec or its state is wrong.

    Nothing was submitted and the job is unchanged.
    """

    def __init__(
        self, message: str, exception: BaseException | None = None, *, problems: Sequence[str] = ()
    ) -> None:
        super().__init__(message, exception)
        #: All problems, one sentence each; never empty.
        self.problems: tuple[str, ...] = tuple(map(one_line, problems)) or (self.message,)

    @classmethod
    def of(cls, subject: str, problems: Sequence[str]) -> Self:
        """Return one exception that names every problem of `subject`."""
        lines = list(map(one_line, problems))
        listed = f" {lines[0]}" if len(lines) == 1 else "".join(f"\n  - {line}" for line in lines)
        return cls(f"{subject} is not valid:{listed}", problems=lines)


class DocumentError(InvalidJobException):
    """A job document violates the format of job documents."""


class DocumentWarning(UserWarning):
    """A job document contains an entry that this jpsi keeps or ignores, but does not act on."""


class SubmitException(JpsiError):
    """A request did not reach the backend, for a reason other than the job itself."""

    def __init__(
        self, message: str, exception: BaseException | None = None, *, transient: bool = False
    ) -> None:
        super().__init__(message, exception)
        #: True if the same request may succeed later (J/PSI 0: SubmitException.isTransient).
        self.transient = transient

    def is_transient(self) -> bool:
        """Return `transient`."""
        return self.transient


class BulkException(SubmitException):
    """A request about many jobs succeeded for some of them, or for none.

    `transient` is true if all failures are transient.
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
        #: The jobs for which the request succeeded, in the order of the request.
        self.done: tuple[AnyJob, ...] = tuple(done)
        #: The jobs for which it failed, in the same order, each with its error.
        self.failed: Mapping[AnyJob, JpsiError] = {} if failed is None else dict(failed)

    @classmethod
    def of(cls, what: str, done: Sequence[AnyJob], failed: Mapping[AnyJob, JpsiError]) -> Self:
        """Return one exception for all jobs that could not be `what`, such as "submitted"."""
        reasons = list(dict.fromkeys(str(error) for error in failed.values()))
        more = f"; and {len(reasons) - _MAX_REASONS} other reasons" if len(reasons) > _MAX_REASONS else ""
        named = "; ".join(reasons[:_MAX_REASONS])
        return cls(
            f"{len(failed)} of {len(done) + len(failed)} jobs could not be {what}: {named}{more}",
            next(iter(failed.values()), None),
            transient=all(isinstance(it, SubmitException) and it.transient for it in failed.values()),
            done=done,
            failed=failed,
        )


# The number of different reasons in a message.
_MAX_REASONS = 3


class TransferError(SubmitException):
    """A file could not be read, written or transferred to or from the machine where jobs run.

    The message names the file and the cause. If the connection failed, the error is a `TransportError`.
    """


class TransportError(SubmitException):
    """A command could not be run on the backend's host, or it is unknown how it ended."""

    def __init__(
        self,
        message: str,
        exception: BaseException | None = None,
        *,
        transient: bool = False,
        may_have_run: bool = False,
    ) -> None:
        super().__init__(message, exception, transient=transient)
        #: True if the command may have run nevertheless.
        self.may_have_run = may_have_run


class UnreachableStateException(JpsiError):
    """The job can reach none of the target states of `Job.wait` any more."""

    def __init__(self, message: str, status: JobStatus) -> None:
        super().__init__(message)
        #: The status of the job from which this follows.
        self.status = status

    def get_status(self) -> JobStatus:
        """Return `status`."""
        return self.status

    def __reduce__(self) -> tuple[type, tuple[str, JobStatus]]:
        return type(self), (self.message, self.status)


class PluginError(JpsiError):
    """A requested executor or launcher is missing, broken or ambiguous."""


class ConfigError(JpsiError):
    """A configuration value that cannot be used."""


def printable(text: str) -> str:
    r"""Return the text with all unprintable characters, except line ends, as escapes.

    Control characters, ANSI escapes, marks that turn the direction of writing, and lone surrogates, which no
    encoding can express, are not printable.

    >>> printable("a\x1b[31mb\n\udc80")
    'a\\x1b[31mb\n\\udc80'
    """
    if text.isprintable():
        return text
    shown = (it if it == "\n" or it.isprintable() else it.encode("unicode_escape").decode() for it in text)
    return "".join(shown)


def one_line(text: str) -> str:
    r"""Return the text as `printable` does, with line ends as escapes, too.

    >>> one_line("a\nb")
    'a\\nb'
    """
    return text if text.isprintable() else printable(text).replace("\n", r"\n")
