"""A command line that a backend wants to run, and its result: values; a transport runs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Self

import attrs

from jpsi.model import SubmitException

#: The number of characters of a command's error output that an error message contains.
_MESSAGE_LENGTH = 500


def _tuple(items: Iterable[str]) -> tuple[str, ...]:
    if isinstance(items, str):
        raise TypeError(f"a command is a list of words such as ['ls', '-l'], not the text {items!r}")
    return tuple(items)


@attrs.frozen(slots=True)
class Command:
    """A program with its arguments; no shell is involved, so nothing needs to be quoted.

    >>> Command(["scancel", "17", "18"]).argv
    ('scancel', '17', '18')
    """

    #: The program, looked up on PATH, and its arguments.
    argv: tuple[str, ...] = attrs.field(converter=_tuple)
    #: Its standard input, encoded as UTF-8; None is /dev/null.
    stdin: str | None = attrs.field(default=None, kw_only=True)
    #: The time after which it is considered hung and killed; None is the configured `command_timeout`.
    timeout: timedelta | None = attrs.field(default=None, kw_only=True)
    #: Environment variables to set.
    environment: Mapping[str, str] = attrs.field(factory=dict, kw_only=True)
    #: Environment variables to remove first; `NAME*` removes every variable that starts with NAME.
    unset: tuple[str, ...] = attrs.field(default=(), converter=_tuple, kw_only=True)

    def __str__(self) -> str:
        return " ".join(self.argv)


@attrs.frozen(slots=True, kw_only=True)
class CommandResult:
    """The exit code and output of a command."""

    #: Its exit code; -n if signal n ended it.
    returncode: int
    #: Its output, decoded as UTF-8; invalid bytes are replaced.
    stdout: str = ""
    stderr: str = ""
    #: True if it was killed at its timeout: it may have done its work nevertheless.
    timed_out: bool = False

    @property
    def complaint(self) -> str:
        """Its error output in one line; its exit code if there is no output."""
        if self.timed_out:
            return "no answer in time"
        text = " ".join((self.stderr.strip() or self.stdout.strip()).split())
        return text[:_MESSAGE_LENGTH] or f"exit code {self.returncode} and no message"

    def checked(self) -> Self:
        """Return this result if the command succeeded.

        Raises:
            SubmitException: the command failed; the message is the complaint.
        """
        if self.timed_out or self.returncode != 0:
            raise SubmitException(self.complaint, transient=True)
        return self

    @property
    def no_answer(self) -> SubmitException:
        """The error that a hook raises if the batch system did not answer, whatever the exit code."""
        return SubmitException(f"the batch system gave no answer: {self.complaint}", transient=True)


@attrs.frozen(slots=True, kw_only=True)
class BytesResult:
    """The exit code and output of a command whose output is no text."""

    #: Its exit code; -n if signal n ended it.
    returncode: int
    #: Its output.
    stdout: bytes = b""
    #: Its error output, decoded as UTF-8; invalid bytes are replaced.
    stderr: str = ""
    #: True if it was killed at its timeout: it may have done its work nevertheless.
    timed_out: bool = False

    @property
    def decoded(self) -> CommandResult:
        """The same with the output decoded as UTF-8; invalid bytes are replaced."""
        return CommandResult(
            returncode=self.returncode,
            stdout=self.stdout.decode(errors="replace"),
            stderr=self.stderr,
            timed_out=self.timed_out,
        )
