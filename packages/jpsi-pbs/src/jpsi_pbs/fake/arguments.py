"""The arguments of the commands, as getopt takes them apart."""

from __future__ import annotations

import getopt
from collections.abc import Iterable
from typing import NamedTuple


class WrongOptionError(ValueError):
    """An option that the command does not have, or one without its value."""


class Arguments(NamedTuple):
    """What a command was called with."""

    #: The values of each option, by its letter.
    options: dict[str, list[str]]
    words: tuple[str, ...]

    def last(self, letter: str, default: str = "") -> str:
        """The value that counts of an option."""
        return self.options.get(letter, [default])[-1]


def parse(words: Iterable[str], letters: str) -> Arguments:
    """Options and other words; `letters` as for getopt(3).

    Raises:
        WrongOptionError: one is wrong.
    """
    try:
        found, rest = getopt.getopt(list(words), letters)
    except getopt.GetoptError as e:
        raise WrongOptionError(e.opt) from e
    options: dict[str, list[str]] = {}
    for letter, value in found:
        options.setdefault(letter[1:], []).append(value)
    return Arguments(options, tuple(rest))
