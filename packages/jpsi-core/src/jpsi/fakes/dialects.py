"""How a batch system's commands read and answer: what a backend ships to be tested without a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import attrs

from jpsi.contract.command import CommandResult
from jpsi.model.errors import PluginError

if TYPE_CHECKING:
    from jpsi.fakes.scheduler import FakeScheduler

#: The entry-point group in which backends offer their dialects.
GROUP = "jpsi.fakes"


def _words(argv: Iterable[str]) -> tuple[str, ...]:
    return tuple(argv)


@attrs.frozen(slots=True, kw_only=True)
class Invocation:
    """One call of a command.

    >>> Invocation(argv=["sbatch", "--parsable"], stdin="#!/bin/sh").stdin
    '#!/bin/sh'
    """

    #: The command's own name first, without its directory.
    argv: tuple[str, ...] = attrs.field(converter=_words)
    # a function reads what the caller has to say, which may take as long as the caller likes
    _stdin: str | Callable[[], str] = attrs.field(default="", repr=False)
    #: The environment it is called with.
    environment: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    #: The directory it is called in.
    directory: str = "/"
    #: The directory that has the commands, for the PATH of jobs; empty if they are not on a PATH.
    folder: str = ""

    @property
    def arguments(self) -> tuple[str, ...]:
        """What follows the command's name."""
        return self.argv[1:]

    @property
    def stdin(self) -> str:
        """What can be read from standard input; ask only where the real command reads it."""
        return self._stdin() if callable(self._stdin) else self._stdin

    def reading(self, file: str) -> Invocation:
        """The same call with the content of a file for its input: commands that submit take either.

        Raises:
            OSError: the file cannot be read.
        """
        text = Path(self.directory, file).read_text(encoding="utf-8", errors="surrogateescape")
        return attrs.evolve(self, stdin=text)


#: A command: does to the scheduler what it is asked to, and returns what the real one would print, or a
#: `TaskLaunch` for processes that it starts. It is called under the scheduler's lock, so that it sees one
#: moment and is never in two threads.
CommandFunction = Callable[["FakeScheduler", Invocation], CommandResult]


class Dialect(Protocol):
    """What an entry point of the group `jpsi.fakes` leads to: a module with these two names, or an object."""

    @property
    def commands(self) -> Mapping[str, CommandFunction]:
        """The commands of this batch system by name, such as `sbatch`."""

    def unreachable(self, command: str) -> CommandResult:
        """What this command prints, and returns, when it cannot contact the batch system."""


def dialect(name: str) -> Dialect:
    """The dialect of this name that a backend offers, installed or on the plugin path; case does not matter.

    Raises:
        PluginError: no backend offers it, it cannot be loaded, or it is no dialect.
    """
    from jpsi.registry.discovery import installed  # noqa: PLC0415  slow to import, and rarely needed

    candidate = installed().find(GROUP, name)
    found = candidate.load()
    if wrong := _missing(found):
        msg = f"{candidate.label} is no dialect: {candidate.value} has no {' and no '.join(wrong)}"
        raise PluginError(msg)
    return cast("Dialect", found)


def _missing(found: object) -> list[str]:
    has_commands = isinstance(getattr(found, "commands", None), Mapping)
    return [
        *([] if has_commands else ["`commands`, a mapping of names to functions"]),
        *([] if callable(getattr(found, "unreachable", None)) else ["function `unreachable`"]),
    ]
