"""Parses the arguments of the commands as getopt does."""

from __future__ import annotations

import getopt
from collections.abc import Iterable
from typing import NamedTuple


class WrongOptionError(ValueError):
    """An option that the command does not have, or that lacks its value."""


class Arguments(NamedTuple):
    """The parsed arguments of a command."""

    #: The values of each option, by its letter.
    options: dict[str, list[str]]
    words: tuple[str, ...]

    def last(self, letter: str, default: str = "") -> str:
        """Return the last value of an option, which is the one that counts."""
        return self.options.get(letter, [default])[-1]


def parse(words: Iterable[str], letters: str) -> Arguments:
    """Parse a command's arguments into options and other words; `letters` as for getopt(3).

    Raises:
        WrongOptionError: an option is unknown or lacks its value.
    """
    try:
        found, rest = getopt.getopt(list(words), letters)
    except getopt.GetoptError as e:
        raise WrongOptionError(e.opt) from e
    options: dict[str, list[str]] = {}
    for letter, value in found:
        options.setdefault(letter[1:], []).append(value)
    return Arguments(options, tuple(rest))
