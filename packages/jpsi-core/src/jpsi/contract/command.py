"""A command line that a backend wants run, and what came of it: values, run by a transport."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Self

import attrs

from jpsi.model import SubmitException

#: How much of a command's complaint an error message carries.
_MESSAGE_LENGTH = 500


def _tuple(items: Iterable[str]) -> tuple[str, ...]:
    if isinstance(items, str):
        msg = f"a command is a list of words such as ['ls', '-l'], not the text {items!r}"
        raise TypeError(msg)
    return tuple(items)


@attrs.frozen(slots=True)
class Command:
    """A program with its arguments; no shell takes part, so that nothing needs to be quoted.

    >>> Command(["scancel", "17", "18"]).argv
    ('scancel', '17', '18')
    """

    #: The program, looked up on PATH, and its arguments.
    argv: tuple[str, ...] = attrs.field(converter=_tuple)
    #: What it reads from standard input, encoded as UTF-8; None is /dev/null.
    stdin: str | None = attrs.field(default=None, kw_only=True)
    #: When it is taken for hung and killed; None is the `command_timeout` of the configuration.
    timeout: timedelta | None = attrs.field(default=None, kw_only=True)
    #: Environment variables to set.
    environment: Mapping[str, str] = attrs.field(factory=dict, kw_only=True)
    #: Environment variables to remove first; `NAME*` removes every one that starts with NAME.
    unset: tuple[str, ...] = attrs.field(default=(), converter=_tuple, kw_only=True)

    def __str__(self) -> str:
        return " ".join(self.argv)


@attrs.frozen(slots=True, kw_only=True)
class CommandResult:
    """How a command ended."""

    #: Its exit code; -n if signal n ended it.
    returncode: int
    #: What it printed, decoded as UTF-8 with every byte that is none replaced.
    stdout: str = ""
    stderr: str = ""
    #: Whether it was killed because it took too long: what it meant to do may have been done.
    timed_out: bool = False

    @property
    def complaint(self) -> str:
        """What it said to be wrong, in one line; its exit code if it said nothing."""
        if self.timed_out:
            return "no answer in time"
        said = " ".join((self.stderr.strip() or self.stdout.strip()).split())
        return said[:_MESSAGE_LENGTH] or f"exit code {self.returncode} without a word"

    def checked(self) -> Self:
        """This result, if the command succeeded.

        Raises:
            SubmitException: it did not; the message is the complaint.
        """
        if self.timed_out or self.returncode != 0:
            raise SubmitException(self.complaint, transient=True)
        return self

    @property
    def no_answer(self) -> SubmitException:
        """What a hook raises where the system has not answered, whatever the exit code."""
        return SubmitException(f"there is no answer in {self.complaint!r}", transient=True)


@attrs.frozen(slots=True, kw_only=True)
class BytesResult:
    """How a command ended whose output is no text."""

    #: Its exit code; -n if signal n ended it.
    returncode: int
    #: What it printed.
    stdout: bytes = b""
    #: What it said, decoded as UTF-8 with every byte that is none replaced.
    stderr: str = ""
    #: Whether it was killed because it took too long: what it meant to do may have been done.
    timed_out: bool = False
