"""A call of a command of a fake batch system."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import attrs


def _words(argv: Iterable[str]) -> tuple[str, ...]:
    return tuple(argv)


@attrs.frozen(slots=True, kw_only=True)
class Invocation:
    """A call of a command.

    >>> Invocation(argv=["sbatch", "--parsable"], stdin="#!/bin/sh").stdin
    '#!/bin/sh'
    """

    #: The command's own name first, without its directory.
    argv: tuple[str, ...] = attrs.field(converter=_words)
    # a function reads the caller's input, which may take as long as the caller likes
    _stdin: str | Callable[[], str] = attrs.field(default="", repr=False)
    #: The environment of the call.
    environment: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    #: The working directory of the call.
    directory: str = "/"
    #: The directory that has the commands, for the PATH of jobs; empty if they are not on a PATH.
    folder: str = ""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments after the command's name."""
        return self.argv[1:]

    @property
    def stdin(self) -> str:
        """The text on standard input; read it only where the real command does, as it may wait."""
        return self._stdin() if callable(self._stdin) else self._stdin

    def reading(self, file: str) -> Invocation:
        """Return the same call with a file as its input, as submit commands take either.

        Raises:
            OSError: the file cannot be read.
        """
        text = Path(self.directory, file).read_text(encoding="utf-8", errors="surrogateescape")
        return attrs.evolve(self, stdin=text)
