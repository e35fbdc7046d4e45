"""The calls of commands of a fake batch system, and the log of all calls.

A fake's function gets an `Invocation` with the arguments; tests look up in the `Log` which commands jpsi has
run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path

import attrs

from jpsi.plugin import CommandResult

# Fakes print local times in a zone other than UTC, unless their environment has TZ=UTC0.
_LOCAL_ZONE = timezone(timedelta(hours=5))


class CommandError(Exception):
    """The end of a command that refuses its request, with what it prints."""

    def __init__(self, returncode: int, stderr: str = "", stdout: str = "") -> None:
        super().__init__(stderr or stdout)
        #: The result of the command.
        self.result = CommandResult(returncode=returncode, stdout=stdout, stderr=stderr)


def as_words(argv: Iterable[str]) -> tuple[str, ...]:
    """Return words as a tuple."""
    return tuple(argv)


@attrs.frozen(slots=True, kw_only=True)
class Invocation:
    """A call of a command.

    >>> Invocation(argv=["sbatch", "--parsable"], stdin="#!/bin/sh").stdin
    '#!/bin/sh'
    """

    #: The command's own name first, without its directory.
    argv: tuple[str, ...] = attrs.field(converter=as_words)
    # the text, or a function that reads it from the caller and may wait for it
    _stdin: str | Callable[[], str] = attrs.field(default="", repr=False)
    #: The environment of the call.
    environment: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    #: The working directory of the call.
    directory: str = "/"
    #: The directory that has the commands, for the PATH of jobs; empty if they are not on a PATH.
    folder: str = ""
    #: The zone of the times that the call prints; None is that of this machine.
    zone: tzinfo | None = attrs.field(default=_LOCAL_ZONE, repr=False)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments after the command's name."""
        return self.argv[1:]

    @property
    def stdin(self) -> str:
        """The text on standard input; read it only where the real command does, as it may wait."""
        return self._stdin() if callable(self._stdin) else self._stdin

    def reading_script(self, words: Sequence[str], refusal: str) -> Invocation:
        """Return the same call whose input is the file that the first word names, if there is a word.

        Raises:
            CommandError: the file cannot be read; `{file}` and `{error}` in the refusal are replaced.
        """
        if not words:
            return self
        try:
            text = Path(self.directory, words[0]).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError as e:
            raise CommandError(1, refusal.format(file=words[0], error=e)) from e
        return attrs.evolve(self, stdin=text)

    def local_time(self, seconds: float) -> datetime:
        """Return a time as the call prints it."""
        zone = UTC if self.environment.get("TZ") == "UTC0" else self.zone
        return datetime.fromtimestamp(int(seconds), UTC).astimezone(zone)


@attrs.frozen(slots=True)
class Call:
    """A logged call of a command."""

    #: The time of the call, by the scheduler's clock.
    time: float
    invocation: Invocation

    @property
    def command(self) -> str:
        """The command's name."""
        return self.invocation.argv[0]


class Log(list[Call]):
    """All calls of commands, in order, with those that met a fault."""

    def of(self, command: str) -> list[Call]:
        """Return the calls of one command."""
        return [call for call in self if call.command == command]

    def count(self, command: object) -> int:
        """Return the number of calls of a command."""
        return sum(1 for call in self if call.command == command)
